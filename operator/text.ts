// Text that others wrote, made fit for a terminal: a token's description or a refusal's message could hold escape sequences
// that move the cursor, hide lines or turn the writing direction. They are shown as what they are.

/** Control, format (bidirectional among them) and line-separating characters. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** The same, and no longer than that. */
export function bounded(text: string, maxCharacters: number): string {
  const shown = text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text;
  return printable(shown);
}

/** `rules`, 0, `scopes` as `rules[0].scopes`. */
export function renderPlace(path: readonly PropertyKey[]): string {
  return path
    .map((part, at) => (typeof part === 'number' ? `[${part}]` : `${at === 0 ? '' : '.'}${String(part)}`))
    .join('');
}
