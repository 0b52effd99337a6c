// Text that others wrote, made fit for a terminal: escape sequences could move the cursor or hide lines.

/** Control, format (bidirectional among them) and line-separating characters. */
export const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const MAX_PLACE_CHARACTERS = 200;

export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

export function bounded(text: string, maxCharacters: number): string {
  const shown = text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text;
  return printable(shown);
}

/** `rules`, 0, `scopes` as `rules[0].scopes`: fit for a terminal, and bounded. */
export function renderPlace(path: readonly PropertyKey[]): string {
  const place = path
    .map((part, at) => (typeof part === 'number' ? `[${part}]` : `${at === 0 ? '' : '.'}${String(part)}`))
    .join('');
  return bounded(place, MAX_PLACE_CHARACTERS);
}
