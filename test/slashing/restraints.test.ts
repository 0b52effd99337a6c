// The restraints around a store, method by method: what each refuses when the right to use the store is missing,
// and when it is lost while the store works.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NO_MARKS } from '../../signer/slashing/history/head.ts';
import { type Hindrance, type RestrainedStore, restrainStore, sealedStore } from '../../signer/slashing/restraints.ts';
import type { SlashingBackend, StoreFloor, ValidatorHistory } from '../../signer/slashing/types.ts';
import { block, collect, history, MAIN_ROOT, publicKeyOf, verdictName, vote } from '../support/slashing.ts';
import { memoryBackend, newMemoryRecords } from '../support/slashing-memory.ts';

let bare: SlashingBackend;
let reason: ReturnType<Hindrance>;

beforeEach(() => {
  bare = memoryBackend(newMemoryRecords(MAIN_ROOT));
  reason = undefined;
});
afterEach(() => bare.close());

const KEY = publicKeyOf(1);
async function* histories(onEach: () => void = () => undefined): AsyncGenerator<ValidatorHistory> {
  onEach();
  yield history(1, [[5, 'a']], []);
}

const ASKED = {
  endTenures: (store) => store.endTenures([KEY]),
  beginTenures: (store) => store.beginTenures(new Map([[KEY, 1]])),
  signedBlockRoot: (store) => store.signedBlockRoot(KEY, 9),
  importHistories: (store) => store.importHistories(histories()),
  exportHistories: async (store) => collect(store.exportHistories()),
  pruneStep: (store) => store.pruneStep(10),
  status: (store) => store.status(),
} satisfies Partial<Record<keyof RestrainedStore, (store: RestrainedStore) => Promise<unknown>>>;
/** Members that speak of no key; tenures are read, and compared at every check. */
const NOT_ASKED = ['name', 'batchLimits', 'checkHealth', 'close', 'hindrance', 'marksBeyond', 'tenures'];
/** Slashing protection asks when it hands over a batch, and the signature is asked for (test/sign/right.test.ts). */
const ASKED_BEFORE = ['checkAndRecord'];
const CASES = Object.entries(ASKED);

it('every method of a restrained store is in the table of this test, and none of the bare store alone is there', () => {
  const store = restrainStore(bare, { hindrance: () => reason });
  expect(Object.keys(store).sort()).toEqual([...Object.keys(ASKED), ...ASKED_BEFORE, ...NOT_ASKED].sort());
  expect(Object.keys(sealedStore('sqlite')).sort()).toEqual(Object.keys(store).sort());
});

describe.each(CASES)('%s', (method, call) => {
  it('is done with the right to use the store, and refused without', async () => {
    const store = restrainStore(bare, { hindrance: () => reason });
    await call(store);
    reason = 'slashing_unbound';
    await expect(call(store)).rejects.toMatchObject({ reason: 'slashing_unbound' });
  });

  it('reaches no store without the right', async () => {
    reason = 'slashing_unbound';
    const unreachable = new Proxy(bare, {
      get: (target, name) => {
        const member = Reflect.get(target, name, target) as unknown;
        if (name !== method) return typeof member === 'function' ? member.bind(target) : member;
        return () => {
          throw new Error('the store was reached');
        };
      },
    });
    const store = restrainStore(unreachable, { hindrance: () => reason });
    await expect(call(store)).rejects.toMatchObject({ reason: 'slashing_unbound' });
  });

  it('answers nothing when the right was lost after the first question', async () => {
    let questions = 0;
    const store = restrainStore(bare, { hindrance: () => (questions++ > 0 ? 'slashing_unbound' : undefined) });
    await expect(call(store)).rejects.toMatchObject({ reason: 'slashing_unbound' });
    expect(questions).toBeGreaterThan(1);
  });

  it('of a sealed signer is refused', async () => {
    const answer = async (): Promise<unknown> => call(sealedStore('sqlite'));
    await expect(answer()).rejects.toMatchObject({ reason: 'sealed' });
  });
});

it('an import whose right is lost while the file is read merges nothing', async () => {
  const store = restrainStore(bare, { hindrance: () => reason });
  const losing = histories(() => {
    reason = 'slashing_unbound';
  });
  await expect(store.importHistories(losing)).rejects.toMatchObject({ reason: 'slashing_unbound' });
  expect(await collect(bare.exportHistories())).toEqual([]);
});

it('of a sealed signer nothing is recorded', async () => {
  const answer = sealedStore('sqlite').checkAndRecord([block(1, 9, 'a')], [NO_MARKS]);
  await expect(answer).rejects.toMatchObject({ reason: 'sealed' });
});

it('with a clock and no floor, what lies ahead is not recorded, and what is of the present is', async () => {
  const latest: StoreFloor = { slot: 3200, sourceEpoch: 99, targetEpoch: 100 };
  const store = restrainStore(bare, { latest: () => latest, hindrance: () => undefined });
  const messages = [block(1, 3201, 'a'), block(2, 3200, 'a'), vote(3, 99, 101, 'a'), vote(4, 99, 100, 'a')];
  const verdicts = await store.checkAndRecord(
    messages,
    messages.map(() => NO_MARKS),
  );
  expect(verdicts.map(verdictName)).toEqual(['ahead_of_clock', 'safe', 'ahead_of_clock', 'safe']);
  const recorded = await collect(bare.exportHistories());
  expect(recorded.map(({ publicKey }) => publicKey)).toEqual([publicKeyOf(2), publicKeyOf(4)].sort());
});
