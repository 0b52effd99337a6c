// Words of commands: fit for a terminal, as text.ts says, and in the number of what they count.

import { bounded, UNPRINTABLE } from './text.ts';

const MAX_QUOTED_CHARACTERS = 60;

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function quoted(text: string): string {
  return bounded(text, MAX_QUOTED_CHARACTERS);
}

/** In JSON's strings the escapes mean the same, and elsewhere none of these belong. */
export function printableJson(json: string): string {
  return json.replace(UNPRINTABLE, (character) => (character === '\n' ? character : escapeUnits(character)));
}

/** RFC 8259 §7: a character beyond the first plane is two escapes. */
function escapeUnits(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}

/** A text as one word of a command that is copied into a shell. */
export function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
