// What an enclave signs before and after a restart around which all its records were lost: whatever it is asked,
// nothing of the one is slashable beside anything of the other. Each process has a new, empty store.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { type ChainTime, FLEET_TOLERANCE } from '../../signer/slashing/future.ts';
import { NO_MARKS } from '../../signer/slashing/history/head.ts';
import { floorAt } from '../../signer/slashing/jump.ts';
import { openSqliteBackend } from '../../signer/slashing/sqlite/backend.ts';
import type { SlashableMessage } from '../../signer/slashing/types.ts';
import { behindLocalFloor } from '../support/restrained.ts';
import { block, MAIN_ROOT, quietLog, verdictName, vote } from '../support/slashing.ts';
import { areSlashable } from '../support/slashing-model.ts';

const CHAIN: ChainTime = {
  genesisTimeSeconds: 0,
  slotDurationMs: 12_000,
  slotsPerEpoch: 32,
  tolerance: FLEET_TOLERANCE,
};
const EPOCH_MS = 384_000;
const folder = mkdtempSync(join(tmpdir(), 'strongroom-floor-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;

/** What an enclave that starts at a time with nothing in its tables says to one message at a later time. */
async function enclave(startedAt: number, askedAt: number, message: SlashableMessage): Promise<string> {
  files += 1;
  const path = join(folder, `${files}.sqlite`);
  const store = await openSqliteBackend({ path, genesisValidatorsRoot: MAIN_ROOT }, { log: quietLog });
  const latest = () => floorAt(askedAt, CHAIN);
  const backend = behindLocalFloor(store, { floor: floorAt(startedAt, CHAIN), latest });
  const [verdict] = await backend.checkAndRecord([message], [NO_MARKS]);
  await backend.close();
  return verdict === undefined ? 'none' : verdictName(verdict);
}

it('votes around and at the epoch of a restart are not slashable, also from a source that no chain justified yet', async () => {
  const now = 1_000 * EPOCH_MS;
  for (const source of [998, 999, 1_000]) {
    const before = vote(1, source, 1_000, 'a');
    const wasSigned = await enclave(now - 3 * EPOCH_MS, now, before);
    for (const [laterSource, laterTarget] of [
      [998, 1_000],
      [998, 1_001],
      [999, 1_001],
      [1_000, 1_001],
    ] as const) {
      const after = vote(1, laterSource, laterTarget, 'b');
      const isSigned = await enclave(now, now + EPOCH_MS, after);
      const areBoth = wasSigned === 'safe' && isSigned === 'safe';
      expect([source, laterSource, laterTarget, areBoth && areSlashable(before, after)]).toEqual([
        ...[source, laterSource, laterTarget],
        false,
      ]);
    }
  }
});

it('a duty of the present is signed, and what lies ahead of the clock is not', async () => {
  const now = 1_000 * EPOCH_MS;
  const begun = now - 3 * EPOCH_MS;
  expect(await enclave(begun, now, vote(1, 999, 1_000, 'a'))).toBe('safe');
  expect(await enclave(begun, now, vote(1, 1_000, 1_000, 'a'))).toBe('ahead_of_clock');
  expect(await enclave(begun, now, vote(1, 999, 1_001, 'a'))).toBe('ahead_of_clock');
  expect(await enclave(begun, now, block(1, 32_001, 'a'))).toBe('safe');
  expect(await enclave(begun, now, block(1, 32_002, 'a'))).toBe('ahead_of_clock');
});

it('in the first epochs too', async () => {
  expect(await enclave(-EPOCH_MS, 0, vote(1, 0, 0, 'a'))).toBe('target_below_low_water_mark');
  expect(await enclave(-EPOCH_MS, EPOCH_MS, vote(1, 0, 1, 'a'))).toBe('safe');
});
