// A key with very many entries: it is read to its last ones while others have their turn, and nothing that it forbids
// is lost.

import { describe, expect, it } from 'vitest';
import { RETAINED_EPOCHS } from '../../../signer/slashing/history/prune.ts';
import { MAX_ENTRIES_OF_A_KEY, readInterchange } from '../../../signer/slashing/interchange/file.ts';
import { historyReducer, KEPT_ENTRIES } from '../../../signer/slashing/interchange/reduce.ts';
import { collect, MAIN_ROOT, stream } from '../../support/slashing.ts';
import { fileOf, KEY } from './files.ts';

describe('a key with very many entries', () => {
  /** A file of one key, piece by piece; its public key comes after its lists. */
  async function* fileOfVotes(votes: number, last = ''): AsyncGenerator<Uint8Array> {
    yield Buffer.from(`${fileOf([]).slice(0, -2)}{"signed_blocks":[],"signed_attestations":[`);
    for (let first = 0; first < votes; first += 1000) {
      const some = Array.from({ length: Math.min(1000, votes - first) }, (_, index) => first + index);
      const text = some.map((epoch) => `{"source_epoch":"${epoch}","target_epoch":"${epoch + 1}"}`).join(',');
      yield Buffer.from(first === 0 ? text : `,${text}`);
    }
    yield Buffer.from(`${last}],"pubkey":"${KEY}"}]}`);
  }

  it('is read to its last entries, and the others are counted', async () => {
    const [one, ...others] = await collect(readInterchange(fileOfVotes(30_000), MAIN_ROOT));
    expect(others).toEqual([]);
    expect(one?.publicKey).toBe(KEY);
    const kept = one?.attestations ?? [];
    expect(kept.length).toBeLessThan(2 * KEPT_ENTRIES);
    const lowest = Math.min(...kept.map(({ targetEpoch }) => targetEpoch));
    expect(lowest).toBeLessThanOrEqual(30_000 - RETAINED_EPOCHS);
    const left = { slot: null, sourceEpoch: lowest - 2, targetEpoch: lowest - 1, blocks: 0 };
    expect(one?.leftOut).toEqual({ ...left, attestations: 30_000 - kept.length });
  });

  it('the event loop has its turns while it is read', async () => {
    let turns = 0;
    const count = (): void => {
      turns += 1;
      timer = setImmediate(count);
    };
    let timer = setImmediate(count);
    await collect(readInterchange(stream([Buffer.concat(await Array.fromAsync(fileOfVotes(30_000)))]), MAIN_ROOT));
    clearImmediate(timer);
    expect(turns).toBeGreaterThan(10);
  });

  it('is refused, with the place, when no key has so many', async () => {
    const file = fileOfVotes(MAX_ENTRIES_OF_A_KEY, ',{"source_epoch":"1","target_epoch":"2"}');
    await expect(collect(readInterchange(file, MAIN_ROOT))).rejects.toMatchObject({
      place: `data[0].signed_attestations[${MAX_ENTRIES_OF_A_KEY}]`,
      message: expect.stringMatching(/more than 1000000 entries/),
    });
  });

  it('that contradicts itself at one place keeps one entry without a root, and the marks of all', () => {
    const reducer = historyReducer();
    for (let index = 0; index < 5 * KEPT_ENTRIES; index++) {
      reducer.addVote({ sourceEpoch: index % 777, targetEpoch: 900, signingRoot: Buffer.alloc(32, index) });
      reducer.addBlock({ slot: 70, signingRoot: Buffer.alloc(32, index) });
    }
    const { blocks, attestations, leftOut } = reducer.result();
    expect(blocks.length + attestations.length).toBeLessThanOrEqual(2 * KEPT_ENTRIES);
    expect(blocks[0]).toEqual({ slot: 70, signingRoot: null });
    expect(attestations[0]).toMatchObject({ targetEpoch: 900, signingRoot: null });
    expect(leftOut).toMatchObject({ slot: 70, sourceEpoch: 776, targetEpoch: 900 });
    expect(blocks.length + (leftOut?.blocks ?? 0)).toBe(5 * KEPT_ENTRIES);
    expect(attestations.length + (leftOut?.attestations ?? 0)).toBe(5 * KEPT_ENTRIES);
  });

  it('descending, it is the last entries that are kept all the same', () => {
    const reducer = historyReducer();
    for (let epoch = 5000; epoch > 0; epoch--) {
      reducer.addVote({ sourceEpoch: epoch - 1, targetEpoch: epoch, signingRoot: null });
    }
    const { attestations, leftOut } = reducer.result();
    expect(attestations).toHaveLength(RETAINED_EPOCHS + 1);
    expect(leftOut).toMatchObject({
      targetEpoch: 5000 - RETAINED_EPOCHS - 1,
      attestations: 5000 - RETAINED_EPOCHS - 1,
    });
  });
});
