// A store behind a floor of this process: what it refuses, what it passes on, and what it writes into files.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NO_MARKS } from '../../signer/slashing/history/head.ts';
import type { SlashingBackend, StoreFloor } from '../../signer/slashing/types.ts';
import { MAINNET_ROOT } from '../support/messages.ts';
import { behindLocalFloor } from '../support/restrained.ts';
import { block, checkOne, collect, history, publicKeyOf, stream, verdictName, vote } from '../support/slashing.ts';
import { memoryBackend, newMemoryRecords } from '../support/slashing-memory.ts';

const FLOOR: StoreFloor = { slot: 3200, sourceEpoch: 99, targetEpoch: 100 };

let store: SlashingBackend;
let backend: SlashingBackend;
let latest: StoreFloor;

beforeEach(() => {
  store = memoryBackend(newMemoryRecords(MAINNET_ROOT));
  latest = FLOOR;
  backend = behindLocalFloor(store, { floor: FLOOR, latest: () => latest });
});
afterEach(() => backend.close());

/** Time passes. */
function epochs(count: number): void {
  latest = { slot: 3200 + count * 32, sourceEpoch: 99 + count, targetEpoch: 100 + count };
}

describe('a message', () => {
  it('at or below the floor is refused, though the store knows nothing of the key', async () => {
    epochs(5);
    expect(verdictName(await checkOne(backend, block(1, 3200, 'a')))).toBe('block_below_low_water_mark');
    expect(verdictName(await checkOne(backend, vote(1, 99, 100, 'a')))).toBe('target_below_low_water_mark');
    expect(verdictName(await checkOne(backend, vote(1, 98, 101, 'a')))).toBe('source_below_low_water_mark');
    expect(await collect(store.exportHistories())).toEqual([]);
  });

  it('that an earlier process recorded is not repeated either', async () => {
    await store.checkAndRecord([block(1, 3100, 'a')], [NO_MARKS]);
    expect(verdictName(await checkOne(backend, block(1, 3100, 'a')))).toBe('block_below_low_water_mark');
  });

  it('ahead of the clock is a fault and not recorded; it is signed when its time has come', async () => {
    expect(verdictName(await checkOne(backend, block(1, 3201, 'a')))).toBe('ahead_of_clock');
    expect(verdictName(await checkOne(backend, vote(1, 100, 101, 'a')))).toBe('ahead_of_clock');
    epochs(1);
    expect(verdictName(await checkOne(backend, block(1, 3201, 'a')))).toBe('safe');
    expect(verdictName(await checkOne(backend, vote(1, 100, 101, 'a')))).toBe('safe');
    expect(verdictName(await checkOne(backend, vote(1, 100, 101, 'a')))).toBe('repeat');
    expect(verdictName(await checkOne(backend, vote(1, 100, 101, 'b')))).toBe('double_vote');
  });

  it('gets its own verdict in a batch of which the floor refuses others', async () => {
    epochs(2);
    const messages = [vote(1, 99, 100, 'a'), vote(2, 100, 101, 'a'), block(3, 9999, 'a'), vote(4, 100, 102, 'a')];
    const verdicts = await backend.checkAndRecord(
      messages,
      messages.map(() => NO_MARKS),
    );
    expect(verdicts.map(verdictName)).toEqual(['target_below_low_water_mark', 'safe', 'ahead_of_clock', 'safe']);
  });
});

describe('a file', () => {
  const marks = [{ slot: 3200, signingRoot: null }];

  it('says the floor of a key whose entries lie below it, and of a key that is asked for and has none', async () => {
    await store.importHistories(stream([history(1, [[3000, 'a']], [[90, 91, 'a']])]));
    const files = await collect(backend.exportHistories([publicKeyOf(1), publicKeyOf(2)]));
    expect(files.map(({ publicKey }) => publicKey)).toEqual([publicKeyOf(1), publicKeyOf(2)]);
    for (const { blocks, attestations } of files) {
      expect(blocks).toEqual(marks);
      expect(attestations).toEqual([{ sourceEpoch: 99, targetEpoch: 100, signingRoot: null }]);
    }
  });

  it('keeps entries above the floor, and says the higher of both where they cross', async () => {
    epochs(3);
    await checkOne(backend, vote(1, 100, 102, 'a'));
    await store.importHistories(
      stream([
        history(
          2,
          [],
          [
            [120, 121, 'x'],
            [10, 122, 'y'],
          ],
        ),
      ]),
    );
    const [one, two] = await collect(backend.exportHistories());
    expect(one?.attestations).toMatchObject([{ sourceEpoch: 100, targetEpoch: 102 }]);
    expect(two?.attestations).toEqual([{ sourceEpoch: 120, targetEpoch: 122, signingRoot: null }]);
  });
});
