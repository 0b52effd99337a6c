// Text that others wrote, made fit for a terminal: a token's description or a refusal's message could hold escape
// sequences that move the cursor, hide lines or turn the writing direction. They are shown as what they are.

/** Control, format (bidirectional among them) and line-separating characters. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const MAX_PLACE_CHARACTERS = 200;
const MAX_QUOTED_CHARACTERS = 60;

export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function bounded(text: string, maxCharacters: number): string {
  const shown = text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text;
  return printable(shown);
}

export function quoted(text: string): string {
  return bounded(text, MAX_QUOTED_CHARACTERS);
}

/** In JSON's strings the escapes mean the same, and elsewhere none of these belong. */
export function printableJson(json: string): string {
  return json.replace(UNPRINTABLE, (character) => (character === '\n' ? character : escapeUnits(character)));
}

/** `rules`, 0, `scopes` as `rules[0].scopes`. Others may have chosen the names: fit for a terminal, and bounded. */
export function renderPlace(path: readonly PropertyKey[]): string {
  const place = path
    .map((part, at) => (typeof part === 'number' ? `[${part}]` : `${at === 0 ? '' : '.'}${String(part)}`))
    .join('');
  return bounded(place, MAX_PLACE_CHARACTERS);
}

/** RFC 8259 §7: a character beyond the first plane is two escapes. */
function escapeUnits(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}
