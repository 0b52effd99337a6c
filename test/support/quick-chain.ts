// Mainnet with epochs of a few seconds, in real time, for signers without a state table: their jump covers two minutes,
// and nothing further ahead is signed. So a test that signs after a jump waits for an epoch, and not for minutes.

import { expect, vi } from 'vitest';
import { MAINNET_ROOT } from './messages.ts';
import { LONGEST_WAIT_MS } from './patience.ts';

const SLOT_MS = 100;
const EPOCH_MS = 32 * SLOT_MS;
const PRESENT_EPOCH = 480_000;
/** The largest tolerance: what a jump covers is what may be signed. */
const TOLERANCE_SECONDS = 120;
const GENESIS_SECONDS = Math.floor((Date.now() - PRESENT_EPOCH * EPOCH_MS) / 1000);

export const QUICK_CHAIN = {
  network: { name: 'custom', fork_schedule: { electra: 364_032, fulu: 411_392 } },
  custom_network: {
    genesis_validators_root: MAINNET_ROOT,
    genesis_time: GENESIS_SECONDS,
    slot_duration_ms: SLOT_MS,
    fork_versions: {
      phase0: '0x00000000',
      altair: '0x01000000',
      bellatrix: '0x02000000',
      capella: '0x03000000',
      deneb: '0x04000000',
      electra: '0x05000000',
      fulu: '0x06000000',
    },
  },
};

const epochAt = (ms: number): number => Math.floor((ms - GENESIS_SECONDS * 1000) / EPOCH_MS);

export const presentEpoch = (): number => epochAt(Date.now());

/** Later than an epoch, and than what a jump made until now covers; resolves once it may be signed. */
export async function nextEpoch(after = 0): Promise<number> {
  const latest = (): number => epochAt(Date.now() + TOLERANCE_SECONDS * 1000);
  const epoch = Math.max(after, latest()) + 1;
  await vi.waitFor(() => expect(latest()).toBeGreaterThanOrEqual(epoch), { timeout: LONGEST_WAIT_MS });
  return epoch;
}

export const withTolerance = (antiSlashing: object) => ({
  ...antiSlashing,
  clock_tolerance_seconds: TOLERANCE_SECONDS,
});
