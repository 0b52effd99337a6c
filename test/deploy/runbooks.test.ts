// The runbooks of an incident: the commands that they state exist, their filters find the lines in the log of a real
// signer, and a store that was lost is replaced as they say, without a slashable signature. TEST keys.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runStrongroom } from '../../rehearsal/signer.ts';
import { type Deployment, deploy } from '../support/deployment.ts';
import { attestation, block, rootOf, signCall } from '../support/requests.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Pages of this folder that are about the service alone, and run here as they stand. */
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
      const line = command.replace(/\s+#.*$/s, '').replaceAll(/"[^"]*"/g, 'TEXT');
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

describe('an incident', () => {
  const KEY = '0x8000…';
  let deployment: Deployment;
  const config = () => join(deployment.folder, 'strongroom.yaml');
  const publicKey = () => deployment.keys[0]?.publicKey ?? '';
  const slashing = (...args: string[]) => runStrongroom(['slashing', ...args, '-c', config()]);

  it('is found in the log by every filter, and a lost store is replaced without a slashable signature', async () => {
    deployment = deploy(1);
    deployment.config['anti_slashing'] = { path: join(deployment.folder, 'store/slashing.sqlite') };
    mkdirSync(join(deployment.folder, 'store'));
    const first = await deployment.start();
    expect((await signCall(first.url, publicKey(), attestation({ source: 20, target: 21 }))).status).toBe(200);
    const rival = attestation({ source: 20, target: 21, head: rootOf(9) });
    expect((await signCall(first.url, publicKey(), rival)).status).toBe(412);
    expect((await signCall(first.url, publicKey(), block({ slot: 700 }))).status).toBe(200);
    await first.stop();

    // Every filter of the pages is one that jq takes, and those of the incident find it.
    const filters = stated.filter(
      (command) => command.startsWith('journalctl -u strongroom -o cat') && command.includes('jq '),
    );
    expect(filters.length).toBeGreaterThan(8);
    const found = filters.map((filter) => {
      const said = filter
        .replace(/journalctl[^|]*\|/, 'cat |')
        .replaceAll(KEY, publicKey())
        .replaceAll('411392', '21');
      const { status, stdout, stderr } = spawnSync('sh', ['-c', said], { input: first.output(), encoding: 'utf8' });
      expect({ filter, status, stderr }).toEqual({ filter, status: 0, stderr: '' });
      return stdout;
    });
    const outputOf = (part: string): string => found[filters.findIndex((filter) => filter.includes(part))] ?? '';
    expect(outputOf('.status == 412')).toContain('"reason":"double_vote"');
    expect(outputOf('.target_epoch ==').match(/"outcome":"(?:ok|refused)"/g)).toEqual([
      '"outcome":"ok"',
      '"outcome":"refused"',
    ]);

    // docs/runbooks/slashing-database.md#lost, steps 1, 3 and 4
    const store = dirname(String((deployment.config['anti_slashing'] as { path: string }).path));
    renameSync(store, `${store}.lost`);
    mkdirSync(store);
    expect(await slashing('jump', '--dry-run')).toMatchObject({ code: 0, stdout: expect.stringContaining('would') });
    expect(await slashing('jump')).toMatchObject({ code: 0 });
    const second = await deployment.start();
    const answers = [
      await signCall(second.url, publicKey(), rival),
      await signCall(second.url, publicKey(), block({ slot: 700, body: rootOf(8) })),
    ];
    expect(answers.map(({ status }) => status)).toEqual([412, 412]);
    await second.stop();
    expect(await slashing('retire', publicKey())).toMatchObject({ code: 0 });
    expect(await slashing('status')).toMatchObject({ code: 0, stdout: expect.stringContaining(publicKey()) });
  });
});
