// What `make test-clients` would see: a chain with everything on it is right, and each thing that is missing is named.

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checksOf, JUDGED_EPOCHS, type Seen } from './checks.ts';
import { interopKey, SLOTS_PER_EPOCH, VALIDATORS } from './devnet.ts';

const SLOTS = Array.from({ length: SLOTS_PER_EPOCH * (JUDGED_EPOCHS.length + 2) }, (_, slot) => slot);
const DUTIES = [
  ...['AGGREGATION_SLOT', 'AGGREGATE_AND_PROOF', 'BLOCK_V2', 'SYNC_COMMITTEE_MESSAGE'],
  ...['SYNC_COMMITTEE_SELECTION_PROOF', 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF'],
];

function everything(): Seen {
  const clientLog = join(mkdtempSync(join(tmpdir(), 'strongroom-checks-')), 'client.log');
  writeFileSync(clientLog, 'info: Published attestations\n');
  const line = (operation: string, place: object) => ({ audit: true, outcome: 'ok', operation, ...place });
  return {
    // Two validators vote in a slot; the list's own last bit is the third.
    blocks: SLOTS.map((slot) => ({
      slot,
      votes: [{ slot: slot - 1, index: '0', bits: '0x07' }],
      syncBits: '0xffffffff',
      exits: slot === SLOTS_PER_EPOCH * 2 ? ['15'] : [],
    })),
    audit: SLOTS.flatMap((slot) => [
      ...DUTIES.map((operation) => line(operation, { slot })),
      line('ATTESTATION', { slot, target_epoch: Math.floor(slot / SLOTS_PER_EPOCH) }),
      line('RANDAO_REVEAL', { epoch: Math.floor(slot / SLOTS_PER_EPOCH) }),
      line('VALIDATOR_REGISTRATION', {}),
      line('VOLUNTARY_EXIT', { epoch: 2 }),
    ]),
    registrations: VALIDATORS,
    exiting: '15',
    clientLog,
  };
}

const problemsOf = (seen: Seen) => checksOf(seen).flatMap(({ problem }) => problem ?? []);

describe('the checks of make test-clients', () => {
  it('have nothing against a chain with everything', () => {
    expect(problemsOf(everything())).toEqual([]);
  });

  it('name a request that the signer refused', () => {
    const { audit, ...rest } = everything();
    const refused = { operation: 'ATTESTATION', outcome: 'refused', reason: 'fork_mismatch' };
    expect(problemsOf({ ...rest, audit: [...audit, refused] })).toEqual([expect.stringContaining('fork_mismatch')]);
  });

  it('name what was not asked for, what is in no block, and what the client says', () => {
    const seen = everything();
    const without = (name: string, epoch: number) =>
      seen.audit.filter(({ operation, slot }) => operation !== name || Math.floor(Number(slot) / 8) !== epoch);
    expect(problemsOf({ ...seen, audit: without('AGGREGATION_SLOT', 2) })).toEqual(['AGGREGATION_SLOT of epoch 2']);
    expect(problemsOf({ ...seen, exiting: '3' })).toEqual(['in none']);
    expect(problemsOf({ ...seen, registrations: 15 })).toEqual(['15']);
    const unheard = seen.blocks.map((block) => (block.slot === 18 ? { ...block, votes: [] } : block));
    expect(problemsOf({ ...seen, blocks: unheard })).toEqual(['epoch 2: 14 of 16']);
    const halfSync = seen.blocks.map((block) => (block.slot === 18 ? { ...block, syncBits: '0xffff0000' } : block));
    expect(problemsOf({ ...seen, blocks: halfSync })).toEqual(['slot 18: 16 of 32']);
    expect(problemsOf({ ...seen, blocks: seen.blocks.filter(({ slot }) => slot !== 9) })).toEqual([
      '9',
      'epoch 1: 14 of 16',
    ]);
    writeFileSync(seen.clientLog, 'error: Error signing attestation\n');
    expect(problemsOf(seen)).toEqual([expect.stringContaining('signing')]);
  });
});

describe('interop keys', () => {
  it('are those of the consensus specification', () => {
    expect(interopKey(0).secret).toBe('0x25295f0d1d592a90b333e26e85149708208e9f8e8bc18f6c77bd62f8ad7a6866');
    expect(interopKey(1).publicKey).toMatch(/^0xb89bebc699769726a318c8e9971bd3171297c61aea4a6578a7a4f94b547dcba5/);
  });
});
