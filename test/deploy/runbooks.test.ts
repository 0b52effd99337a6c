// The runbooks that alerts lead to: each command of strongroom that they state exists, with its flags, in a listing or
// in a sentence. test/runbooks follows them.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runStrongroom } from '../../rehearsal/signer.ts';

const ROOT = join(import.meta.dirname, '../..');
const PAGES = [
  'docs/runbooks/certificates-and-clocks.md',
  'docs/runbooks/key-compromise.md',
  'docs/runbooks/signer-unavailable.md',
  'docs/runbooks/slashing-database.md',
  'docs/runbooks/slashing-incident.md',
  'docs/runbooks/store-unavailable.md',
];
const text = (page: string): string => readFileSync(join(ROOT, page), 'utf8');
/** Listings with continued lines joined, and everything in single backticks. */
const stated = PAGES.flatMap((page) => {
  const listings = [...text(page).matchAll(/^ *```sh.*\n([\s\S]*?)^ *```$/gm)].map(([, listing = '']) => listing);
  const inline = [
    ...text(page)
      .replaceAll(/```[\s\S]*?```/g, '')
      .matchAll(/`([^`]+)`/g),
  ].map(([, code = '']) => code);
  return [...listings.flatMap(commandsOf), ...inline.map((code) => code.replaceAll(/\s+/g, ' '))];
});

/** A line that ends in a pipe, or within a quotation, goes on. */
function commandsOf(listing: string): string[] {
  const commands: string[] = [];
  let open = '';
  for (const line of listing.split('\n')) {
    open = open === '' ? line.trim() : `${open}\n${line.trim()}`;
    const isOpen = (open.match(/'/g) ?? []).length % 2 === 1 || open.endsWith('|');
    if (isOpen) continue;
    if (open !== '') commands.push(open);
    open = '';
  }
  return commands;
}

describe('the commands of the runbooks', () => {
  const own = [...new Set(stated.filter((command) => command.startsWith('strongroom ')))];

  it('exist, with the flags that are stated', async () => {
    expect(own.length).toBeGreaterThan(15);
    const helps = new Map<string, Promise<string>>();
    const helpOf = (words: string): Promise<string> => {
      const known = helps.get(words) ?? runStrongroom([...words.split(' '), '--help']).then(({ stdout }) => stdout);
      helps.set(words, known);
      return known;
    };
    for (const command of own) {
      const line = command.replace(/\s+[#|].*$/s, '').replaceAll(/"[^"]*"/g, 'TEXT');
      const words = /^strongroom ((?:[a-z][a-z-]*(?: |$))+)/.exec(line)?.[1]?.trim() ?? '';
      const help = await helpOf(words);
      expect({ command, usage: new RegExp(`Usage:\\s+strongroom ${words}`).test(help) }).toEqual({
        command,
        usage: true,
      });
      const flags = [...line.matchAll(/ (--?[a-z][a-z-]*)/g)].map(([, flag = '']) => flag);
      const unknown = flags.filter((flag) => !new RegExp(`(?:^|[\\s,[])${flag}\\b`, 'm').test(help));
      expect({ command, unknown }).toEqual({ command, unknown: [] });
    }
  });
});
