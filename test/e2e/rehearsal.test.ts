// A rehearsal of a ceremony: the whole first boot on stand-ins, with the participants' own recipients, so that each of
// them takes the step of the day.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateAgeIdentity } from '../../ceremony/age-identity.ts';
import { parseCeremony } from '../../ceremony/definition.ts';
import { encryptRootToken } from '../../ceremony/root-token.ts';
import { openRootToken as openForSigner } from '../../ceremony/root-token-opening.ts';
import { startCustody } from '../../rehearsal/custody.ts';
import { rehearseOpening } from '../../rehearsal/opening.ts';
import { thresholdRefusal } from '../../rehearsal/rehearse.ts';
import { runStrongroom } from '../../rehearsal/signer.ts';
import { keyArn } from '../config/loading.ts';

const TOKEN = /sr_(?:mgmt|client)_[\w-]{20}/;
const alice = await generateAgeIdentity();
const bob = await generateAgeIdentity();
const mallory = await generateAgeIdentity();
const BLOCK = {
  generation: 1,
  kms_threshold: 2,
  kms_keys: [1, 2, 3].map((number) => ({ arns: [keyArn(number)] })),
  root_token_recipients: [alice.recipient, bob.recipient],
};

let folder: string;
const at = (name: string): string => join(folder, name);

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-rehearsal-'));
  writeFileSync(at('ceremony.yaml'), JSON.stringify(BLOCK));
  writeFileSync(at('alice.age'), alice.identity, { mode: 0o600 });
  writeFileSync(at('mallory.age'), mallory.identity, { mode: 0o600 });
});
afterAll(() => rmSync(folder, { recursive: true }));

describe.skipIf(process.platform !== 'linux')('a rehearsal', () => {
  it('runs the ceremony, opens the root token as a participant would, and says REHEARSAL in every line', async () => {
    const args = ['--identity', at('alice.age'), '--output', at('row.json')];
    const { code, stdout, stderr } = await runStrongroom(['ceremony', 'rehearse', at('ceremony.yaml'), ...args]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const line of stdout.trimEnd().split('\n')) expect(line).toMatch(/^REHEARSAL(?: {2}.*\S)?$/);
    const opening = /== Opening the root token\n([\s\S]*?)\nREHEARSAL\n/.exec(stdout)?.[1] ?? '';
    expect(opening).toContain('encrypted to 2 recipients, any one of whom opens it alone');
    for (const { recipient } of [alice, bob]) {
      expect(opening).toMatch(new RegExp(`${recipient}\n.* jq -r .Item.value.S row.json \\| age -d -i IDENTITY`));
    }
    expect(opening).toContain(`open-root-token --identity ${at('alice.age')} --row row.json`);
    expect(opening).toMatch(/sr_mgmt_… {2}opened by strongroom/);
    expect(opening).not.toContain('operator');
    expect(stdout).toMatch(/== Using the root token[^\n]*\n[^\n]*strongroom operator status\n[^\n]*Unsealed/);
    expect(stdout).toMatch(/unsealed without .*000000000001/);
    expect(stdout).toMatch(/needs 2 of its 3 custody keys and 1 served/);
    expect(stdout).not.toMatch(TOKEN);
    // Bob has the row on a machine of his own.
    const row = JSON.parse(readFileSync(at('row.json'), 'utf8')) as { Item: { value: { S: string } } };
    expect(await openForSigner(row.Item.value.S, [bob.identity])).toMatchObject({ ok: true });
  });

  it.each([
    ['an identity that no recipient has', ['--identity', 'mallory.age'], 'opens nothing that is encrypted to'],
    ['a file for the row that exists', ['--output', 'alice.age'], 'exists already'],
  ])('refuses %s before it starts anything', async (_, [flag = '', name = ''], words) => {
    const result = await runStrongroom(['ceremony', 'rehearse', at('ceremony.yaml'), flag, at(name)]);
    expect(result).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining(words) });
  });

  it('without a participant says that the root token was not opened', async () => {
    const custody = await startCustody();
    try {
      const table = await custody.createTable();
      const value = await encryptRootToken(Buffer.from(`sr_mgmt_${'t'.repeat(43)}`), BLOCK.root_token_recipients);
      await custody.putRow(table, { pk: { S: 'ROOT_TOKEN_BOOTSTRAP' }, value: { S: value } });
      const said: string[] = [];
      const say = (text: string): void => void said.push(text);
      const options = { participants: [], rowFile: undefined, isForced: false };
      const stage = { custody, table, say, heading: say };
      expect(await rehearseOpening(stage, parseCeremony(BLOCK), options, process)).toBeUndefined();
      expect(said.at(-1)).toMatch(/^NOT opened here: no participant is here/);
    } finally {
      await custody.close();
    }
  });
});

it('a start that fails for another reason does not pass for a proof of the threshold', () => {
  const refusal = 'strongroom: cannot start: the master key needs 2 of its 3 custody keys and 1 served:\n  …';
  expect(thresholdRefusal(`exit 1: ${refusal}`, 2, 3)).toBe(refusal);
  const others = [
    undefined,
    'exit 1: strongroom: cannot start: the table cannot be read',
    refusal.replace('1 s', '0 s'),
  ];
  for (const other of others) expect(() => thresholdRefusal(other, 2, 3)).toThrow('the signer');
});
