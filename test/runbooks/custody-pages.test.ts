// The runbooks about custody, as they stand there, in a world with a fleet under a custody ceremony.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { presentBlock } from '../support/present.ts';
import { testKey } from '../support/requests.ts';
import { tellsOneStory } from '../support/skip.ts';
import { type CustodyRunbookWorld, startCustodyRunbooks } from './custody-world.ts';
import { rehearse } from './rehearse.ts';

/** Before the present: a jump covers it. */
const BEFORE = 450_000;
const WAIT = { timeout: LONGEST_WAIT_MS, interval: 1_000 };

let world: CustodyRunbookWorld;
/** The custody key in the region of the tables. */
let lost: string;

tellsOneStory();

beforeAll(async () => {
  world = await startCustodyRunbooks();
});
afterAll(() => world?.close());

/** One after the other, each for a later epoch. */
async function votes(target: number): Promise<number[]> {
  const statuses: number[] = [];
  for (const [at, host] of world.signers.entries()) statuses.push((await world.vote(host, target + at)).status);
  return statuses;
}

/**
 * Each signs a block of the present, once it may: sealed signers did not end in order, so the first one that came back
 * waited and jumped.
 */
async function expectSignatures(): Promise<void> {
  for (const host of world.signers) await expectSignature(host);
}

async function expectSignature(host: string): Promise<void> {
  await vi.waitFor(async () => {
    const path = `/api/v1/eth2/sign/${testKey(0).publicKey}`;
    expect((await world.ask(host, path, world.clientToken, presentBlock())).status).toBe(200);
  }, WAIT);
}

it('docs/runbooks/lost-root-token.md: the new one counts, and the old one does not', async () => {
  const old = await world.custody.rootToken(world.table);
  const [first = '', second = ''] = world.signers;
  expect((await world.ask(second, '/api/v1/auth/tokens', old)).status).toBe(200);
  await rehearse('docs/runbooks/lost-root-token.md', world);
  const fresh = await world.custody.rootToken(world.table);
  for (const host of [first, second]) {
    expect((await world.ask(host, '/api/v1/auth/tokens', old)).status).toBe(403);
    expect((await world.ask(host, '/api/v1/auth/tokens', fresh)).status).toBe(200);
  }
  expect(await votes(BEFORE)).toEqual([200, 200]);
});

it('docs/runbooks/seal-and-recovery.md: sealed everywhere, and open again', async () => {
  const seen: number[] = [];
  await rehearse('docs/runbooks/seal-and-recovery.md', world, {
    before: async ({ commands }) => {
      if (commands.includes('recover ||')) seen.push(...(await votes(BEFORE + 10)));
    },
  });
  expect(seen).toEqual([503, 503]);
  await expectSignatures();
});

it('docs/runbooks/custody-key-rotation.md: the retired key is not needed any more', async () => {
  const fresh = world.createKey();
  const [retired = '', ...stay] = world.arns;
  const configuration = parse(readFileSync(join(world.folder, 'strongroom.yaml'), 'utf8'));
  const kms_keys = [fresh, ...stay].map((arn) => ({ arns: [arn] }));
  const ceremony = { ...configuration.ceremony, generation: 2, kms_keys };
  const write = (name: string, members: object) =>
    writeFileSync(join(world.folder, name), stringify({ ...configuration, ceremony: { ...ceremony, ...members } }));
  write('new.yaml', { retired_kms_keys: [{ arns: [retired] }] });
  write('final.yaml', {});
  const values = { ...world.values, CUSTODY_KEYS: [fresh, ...stay].join(' '), RETIRED_KEYS: retired };
  await rehearse('docs/runbooks/custody-key-rotation.md', { ...world, values }, { elsewhere: 2 });
  await expectSignatures();
  world.configure((all) => Object.assign(all, { ceremony }));
  lost = fresh;
});

it('docs/runbooks/region-loss.md: the other region signs what is new, and the old one nothing', async () => {
  const { custody, standby, signers } = world;
  const [first = ''] = signers;
  custody.kms.setBehaviour(lost, 'unreachable');
  await rehearse('docs/runbooks/region-loss.md', world, { elsewhere: 1 });
  expect((await world.vote(standby, BEFORE + 40)).status).toBe(412);
  await expectSignature(standby);
  await world.systemctl(first, 'start');
  expect(world.trouble?.()).toContain('bound to another region');
});
