// Every command of docs/guides/participants.md, as it stands there and in its order, at a terminal, with the real
// programs: also the rehearsal, with the recipients of the day, whose root token a participant opens with age. Left out
// are the blocks that say what they need (AWS, a signer); so the signers of this record are no enclaves.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseCeremony } from '../../ceremony/definition.ts';
import { encryptRootToken } from '../../ceremony/root-token.ts';
import { ceremonyRegister } from '../../ceremony/transcript/meaning.ts';
import { keyArn } from '../config/loading.ts';
import { blocksOf } from '../runbooks/page.ts';
import { lacking } from '../support/needs.ts';
import { atTerminal } from '../support/pseudo-terminal.ts';

const ROOT = join(import.meta.dirname, '../..');
const GUIDE = readFileSync(join(ROOT, 'docs/guides/participants.md'), 'utf8');
const TOKEN = `sr_mgmt_${'t'.repeat(43)}`;
const PASSPHRASE = { prompt: 'passphrase', answer: 'correct horse battery' };

const blocks = blocksOf('docs/guides/participants.md', GUIDE);
const withoutNeeds = blocks.filter(({ kind }) => kind === 'run').map(({ commands }) => commands);

let folder: string;
const at = (name: string): string => join(folder, name);

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-participants-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** What the lead, the operator and the table have by then. */
async function prepare(recipients: readonly string[]): Promise<void> {
  const block = {
    generation: 1,
    kms_threshold: 2,
    kms_keys: [1, 2, 3].map((number) => ({ arns: [keyArn(number)] })),
    root_token_recipients: recipients,
  };
  writeFileSync(at('ceremony.yaml'), JSON.stringify(block));
  writeFileSync(at('strongroom.yaml'), 'network: mainnet\n');
  const measurements = { PCR0: 'a'.repeat(96), PCR17: ceremonyRegister(parseCeremony(block)) };
  writeFileSync(at('pcrs.json'), JSON.stringify({ measurements }));
  const value = await encryptRootToken(Buffer.from(TOKEN), recipients);
  writeFileSync(at('row.json'), JSON.stringify({ Item: { pk: { S: 'ROOT_TOKEN_BOOTSTRAP' }, value: { S: value } } }));
}

async function run(block: string, env: Record<string, string> = {}): Promise<string> {
  const commands = block.replace('record start transcript.jsonl', '$& --signers hosts');
  writeFileSync(at('block.sh'), commands);
  const PATH = `${join(ROOT, 'bin')}:${process.env['PATH']}`;
  const { code, shown } = await atTerminal('sh -e block.sh', [], {
    cwd: folder,
    env: { ...env, PATH },
    always: PASSPHRASE,
  });
  if (code !== 0) throw new Error(`exit code ${code} of\n${commands}\n${shown}`);
  return shown;
}

// The rehearsal's stand-in for DynamoDB is a program for Linux.
it.skipIf(lacking('Linux', 'age', 'jq', 'script'))(
  'every command of the guide works, and each says what the guide says',
  async () => {
    expect(blocks.length - withoutNeeds.length).toBe(4);
    const [keygen = '', underPassphrase = '', ...rest] = withoutNeeds;
    await run(keygen);
    const [bob = ''] = /age1[a-z0-9]{58}/.exec(await run(underPassphrase)) ?? [];
    await prepare([readFileSync(at('alice.recipient'), 'utf8').trim(), bob]);
    const shown: string[] = [];
    let head = '';
    const tokens: string[] = [];
    for (const block of rest) {
      const said = await run(block, { HEAD_ON_PAPER: head });
      shown.push(said);
      const [, noted = ''] = /its digest, to note:\s+([0-9a-f ]{71})\r?$/m.exec(said) ?? [];
      if (block.includes('record end')) head = noted.replaceAll(' ', '');
      if (block.includes('> root-token')) tokens.push(readFileSync(at('root-token'), 'utf8'));
    }
    const all = shown.join('');
    expect(all.match(/^PROVEN: /gm)).toHaveLength(2);
    expect(all).toContain(readFileSync(at('challenge.txt'), 'utf8').trim());
    const shownTokens = all.match(/sr_mgmt_[\w-]{43}/g) ?? [];
    expect(shownTokens).toEqual([expect.stringMatching(/^sr_mgmt_/), TOKEN]); // the second is shown on purpose
    expect(shownTokens[0]).not.toBe(TOKEN);
    const rehearsal = shown.find((said) => said.includes('REHEARSAL')) ?? '';
    expect(rehearsal).toContain(`recipient 2, ${bob}`);
    // What age printed, and nothing else.
    expect(rehearsal.replaceAll(/^REHEARSAL.*$/gm, '').trim()).toBe(shownTokens[0]);
    expect(tokens).toEqual([TOKEN, `${TOKEN}\n`]);
    expect(readFileSync(at('transcript.html'), 'utf8')).toContain('Alice Example');
    expect(shown.at(-1)?.trim()).toBe(`${head}  -`);
    expect(shown.at(-2)).toMatch(/^VERIFIED: transcript.jsonl has 2\d lines[\s\S]*the one that you noted/);
  },
);
