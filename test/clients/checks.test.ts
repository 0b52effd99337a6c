// What `make test-clients` would see: a chain with everything on it is right, and each thing that is missing is named.

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { JUDGED_EPOCHS, judge, type Seen } from './checks.ts';
import { interopKey, SLOTS_PER_EPOCH, VALIDATORS } from './devnet.ts';

const SLOTS = Array.from({ length: SLOTS_PER_EPOCH * (JUDGED_EPOCHS.length + 2) }, (_, slot) => slot);
const DUTIES = [
  ...['AGGREGATION_SLOT', 'AGGREGATE_AND_PROOF', 'BLOCK_V2', 'SYNC_COMMITTEE_MESSAGE'],
  ...['SYNC_COMMITTEE_SELECTION_PROOF', 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF'],
];

function everything(): Seen {
  const clientLog = join(mkdtempSync(join(tmpdir(), 'strongroom-checks-')), 'client.log');
  writeFileSync(clientLog, 'info: Published attestations\n');
  const line = (operation: string, place: object, key = 0) => {
    return { audit: true, outcome: 'ok', operation, public_key: `key ${key}`, ...place };
  };
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
      ...[0, 1].map((key) => line('ATTESTATION', { slot, target_epoch: Math.floor(slot / SLOTS_PER_EPOCH) }, key)),
      line('RANDAO_REVEAL', { epoch: Math.floor(slot / SLOTS_PER_EPOCH) }),
      line('VALIDATOR_REGISTRATION', {}),
      line('VOLUNTARY_EXIT', { epoch: 2 }),
    ]),
    registrations: VALIDATORS,
    exiting: '15',
    logFiles: [clientLog],
  };
}

const problemsOf = (seen: Seen) => judge(seen).checks.flatMap(({ problem }) => problem ?? []);
const of = (duty: string, ...slots: readonly number[]) => {
  return ({ operation, slot }: Seen['audit'][number]) => operation === duty && slots.includes(Number(slot));
};

describe('the judgement of make test-clients', () => {
  it('has nothing against a chain with everything, and nothing to count', () => {
    expect(problemsOf(everything())).toEqual([]);
    expect(judge(everything()).counted).toEqual([]);
  });

  it('names a refusal that nothing explains, and counts one that the client explains', () => {
    const { audit, ...rest } = everything();
    const refused = (reason: string) => ({ operation: 'ATTESTATION', outcome: 'refused', reason });
    const of = (reason: string) => ({ ...rest, audit: [...audit, refused(reason)] });
    expect(problemsOf(of('overloaded'))).toEqual([expect.stringContaining('overloaded')]);
    expect(problemsOf(of('client_closed'))).toEqual([]);
    expect(judge(of('client_closed')).counted).toEqual(['requests that the client hung up on: 1']);
  });

  it('names what is on the chain and was not signed', () => {
    const { audit, ...rest } = everything();
    const without = (duty: string, slot: number) => ({ ...rest, audit: audit.filter((line) => !of(duty, slot)(line)) });
    expect(problemsOf(without('BLOCK_V2', 9))).toEqual(['slot 9: 1 blocks']);
    expect(problemsOf(without('ATTESTATION', 9))).toEqual(['slot 9: 2 votes']);
    expect(problemsOf(without('SYNC_COMMITTEE_MESSAGE', 9))).toEqual(['slot 10: 32 seats of a sync committee']);
    const exits = rest.blocks.map((block) => ({
      ...block,
      exits: block.slot < 8 ? ['1', '2', '3', '4', '5', '6'] : [],
    }));
    expect(problemsOf({ ...rest, audit, blocks: exits })).toEqual(['48 exits']);
  });

  it('names a kind that was never signed, that the chain never took, and what client and node say', () => {
    const seen = everything();
    const never = seen.audit.filter(({ operation }) => operation !== 'AGGREGATION_SLOT');
    expect(problemsOf({ ...seen, audit: never })).toEqual(['AGGREGATION_SLOT']);
    expect(problemsOf({ ...seen, registrations: 0 })).toEqual(['registrations']);
    const empty = seen.blocks.map((block) => ({ ...block, syncBits: '0x0' }));
    expect(problemsOf({ ...seen, blocks: empty })).toEqual(['seats of a sync committee']);
    const [log = ''] = seen.logFiles;
    writeFileSync(log, 'error: Error on submitPoolSyncCommitteeSignatures - timeout\n');
    expect(problemsOf(seen)).toEqual([]);
    writeFileSync(log, 'error: Error signing attestation\nwarn: ATTESTATION_ERROR_INVALID_SIGNATURE\n');
    expect(problemsOf(seen)).toEqual([expect.stringMatching(/signing.*INVALID/s)]);
  });

  it('counts what a busy machine does: duties not asked for, and what came too late for a block', () => {
    const { audit, blocks, ...rest } = everything();
    const late = {
      ...rest,
      registrations: 15,
      exiting: '3',
      audit: audit.filter(
        (line) => !of('ATTESTATION', 12)(line) && !of('AGGREGATION_SLOT', ...SLOTS.slice(16, 24))(line),
      ),
      blocks: blocks
        .filter(({ slot }) => ![9, 13].includes(slot))
        .map((block) => (block.slot === 18 ? { ...block, votes: [], syncBits: '0xffff0000' } : block)),
    };
    expect(problemsOf(late)).toEqual([]);
    expect(judge(late).counted).toEqual([
      'duties of an epoch not asked for: 1',
      'votes not asked for: 2',
      'blocks signed, and not on the chain: 2',
      'votes signed and in no block: 4',
      'empty seats of sync committees: 16',
      expect.stringMatching('^exits signed and in no block: '),
      'registrations that the builder lacks: 1',
    ]);
  });
});

describe('interop keys', () => {
  it('are those of the consensus specification', () => {
    expect(interopKey(0).secret).toBe('0x25295f0d1d592a90b333e26e85149708208e9f8e8bc18f6c77bd62f8ad7a6866');
    expect(interopKey(1).publicKey).toMatch(/^0xb89bebc699769726a318c8e9971bd3171297c61aea4a6578a7a4f94b547dcba5/);
  });
});
