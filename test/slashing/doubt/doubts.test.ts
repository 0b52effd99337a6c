// Doubts become one paced jump, whoever has them, and nothing is signed until they are settled.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import { DOUBT_CAUSES, SignerError } from '../../../signer/api/errors.ts';
import { type Doubts, openDoubts } from '../../../signer/slashing/doubt/doubts.ts';
import { nextIncarnation, readIncarnations } from '../../../signer/slashing/incarnation.ts';
import { SlashingProtection } from '../../../signer/slashing/protection.ts';
import { restrainStore } from '../../../signer/slashing/restraints.ts';
import { type Doubt, type SlashingBackend, type StoreFloor, StoreInDoubt } from '../../../signer/slashing/types.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { block, MAIN_ROOT, rootOf, vote } from '../../support/slashing.ts';
import { memoryBackend, newMemoryRecords } from '../../support/slashing-memory.ts';

const FLOOR: StoreFloor = { slot: 3200, sourceEpoch: 99, targetEpoch: 100 };

/** Of the store's record. */
let incarnation: string;
let jumps: StoreFloor[];
let counted: string[];
let presents: number;
let unconfirmed: boolean;
let jumping: (() => Promise<void>) | undefined;
let log: ReturnType<typeof recordingLog>;
let doubts: Doubts;

beforeEach(() => {
  [jumps, counted, presents, unconfirmed, jumping, incarnation] = [[], [], 0, false, undefined, ''];
  log = recordingLog();
  doubts = openDoubts({
    store: {
      name: 'postgres',
      async jump(floor) {
        await jumping?.();
        jumps.push(floor);
        return { id: '', incarnation, floor };
      },
      identity: async () => ({ id: '', incarnation, floor: null }),
      async incarnate(expected, next) {
        if (expected !== incarnation) return false;
        incarnation = next;
        return true;
      },
    },
    async present() {
      presents += 1;
      if (unconfirmed) throw new SignerError('clock_unconfirmed', { hint: 'nothing confirms it' });
      return FLOOR;
    },
    onJump: (cause) => void counted.push(cause),
    log,
  });
});
afterEach(() => {
  doubts.close();
  vi.useRealTimers();
});

describe('one jump', () => {
  it.each(DOUBT_CAUSES.filter((cause) => cause !== 'boot'))('of %s, counted and said', async (cause) => {
    await doubts.settle({ cause, facts: { of: 'the store' } });
    expect([jumps, counted, doubts.hindrance()]).toEqual([[FLOOR], [cause], undefined]);
    const [line] = log.lines;
    expect(line?.message).toMatch(/Everything up to the present is refused/);
    expect(line?.fields).toMatchObject({ causes: [cause], of: 'the store', floor: { target_epoch: 100 } });
  });

  it('of a start changes no store, and refuses everything in this process', async () => {
    expect(doubts.floorOfStart).toBeNull();
    await doubts.settle({ cause: 'boot' });
    expect([jumps, counted, doubts.floorOfStart]).toEqual([[], ['boot'], FLOOR]);
  });

  it('for many who have one doubt at once, and none while another signer has raised the store', async () => {
    let isOver = false;
    const doubt = (): Doubt => ({ cause: 'other_server', isOver: async () => isOver });
    jumping = async () => {
      isOver = true;
    };
    await Promise.all(Array.from({ length: 50 }, () => doubts.settle(doubt())));
    expect([jumps.length, presents]).toEqual([1, 1]);
    await doubts.settle(doubt());
    expect([jumps.length, presents]).toEqual([1, 1]);
  });

  it('more for a doubt that came while one was under way', async () => {
    const under = Promise.withResolvers<void>();
    jumping = () => under.promise;
    const first = doubts.settle({ cause: 'other_server' });
    await vi.waitFor(() => expect(presents).toBe(1));
    const second = doubts.settle({ cause: 'other_server' });
    under.resolve();
    await Promise.all([first, second]);
    expect(jumps.length).toBe(2);
  });
});

describe('a jump that fails', () => {
  it('hinders everything, is not tried for each request, and is made again after a pause that grows', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    unconfirmed = true;
    const asked = Array.from({ length: 50 }, () => doubts.settle({ cause: 'lost_records' }).catch(String));
    expect(new Set(await Promise.all(asked)).size).toBe(1);
    expect([presents, doubts.hindrance()]).toEqual([1, 'clock_unconfirmed']);
    expect(doubts.unsettled).toEqual({ causes: ['lost_records'], problem: 'nothing confirms it' });
    for (let more = 0; more < 50; more++) {
      await expect(doubts.settle({ cause: 'lost_records' })).rejects.toMatchObject({ reason: 'clock_unconfirmed' });
    }
    expect([presents, log.lines.length]).toEqual([1, 1]);
    await vi.advanceTimersByTimeAsync(1_000 + 2_000 + 4_000);
    expect([presents, log.lines.length]).toEqual([4, 1]);
    unconfirmed = false;
    await vi.advanceTimersByTimeAsync(10_000);
    expect([jumps.length, doubts.hindrance(), doubts.unsettled]).toEqual([1, undefined, undefined]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is kept in the record of the store, whoever renews it, until one is made', async () => {
    const { settle } = doubts;
    unconfirmed = true;
    for (const cause of ['boot', 'other_server', 'unclean_end'] as const)
      await expect(settle({ cause })).rejects.toThrow(); // the next start finds these by itself
    expect(incarnation).toBe('');
    await expect(settle({ cause: 'lost_records' })).rejects.toThrow();
    incarnation = nextIncarnation(incarnation, null);
    expect(readIncarnations(incarnation)).toMatchObject({ doubt: 'lost_records', held: [expect.any(String)] });
    unconfirmed = false;
    await vi.waitFor(() => expect(jumps).toEqual([FLOOR]), { timeout: 5_000 });
    await vi.waitFor(() => expect(readIncarnations(incarnation).doubt).toBeUndefined());
  });

  it('of another kind says that the store is unavailable', async () => {
    jumping = () => Promise.reject(new Error('it is gone'));
    await expect(doubts.settle({ cause: 'unclean_end' })).rejects.toThrow('it is gone');
    expect(doubts.hindrance()).toBe('slashing_unavailable');
  });

  it('of a caller that asks again by itself is forgotten', async () => {
    unconfirmed = true;
    await expect(doubts.settleNow({ cause: 'other_store' })).rejects.toMatchObject({ reason: 'clock_unconfirmed' });
    expect(doubts.hindrance()).toBeUndefined();
  });
});

describe('a store in doubt', () => {
  let backend: SlashingBackend;
  beforeEach(() => {
    backend = memoryBackend(newMemoryRecords(MAIN_ROOT));
    doubts = openDoubts({ store: backend, present: presentOrNot, onJump: (cause) => void counted.push(cause), log });
  });
  afterEach(() => backend.close());
  const presentOrNot = async (): Promise<StoreFloor> => {
    if (unconfirmed) throw new SignerError('clock_unconfirmed');
    return FLOOR;
  };

  /** A store that throws a doubt once for each call of a name, then answers. */
  function doubting(): SlashingBackend {
    let isInDoubt = true;
    const throwing = <Call extends (...given: never[]) => unknown>(call: Call): Call =>
      ((...given: never[]) => {
        if (!isInDoubt) return call(...given);
        isInDoubt = false;
        throw new StoreInDoubt({ cause: 'other_server' });
      }) as unknown as Call;
    const store = backend;
    return {
      ...store,
      checkAndRecord: async (...given) => throwing(store.checkAndRecord)(...given),
      checkHealth: async (signal) => throwing(store.checkHealth)(signal),
      async *exportHistories(keys) {
        yield* throwing(store.exportHistories)(keys);
      },
    };
  }

  it('is raised, and asked again, whatever was asked', async () => {
    const calls: ((store: ReturnType<typeof restrainStore>) => Promise<unknown>)[] = [
      (store) => store.checkAndRecord([block(1, 4000, 'a')], [NO_FLOORS]),
      (store) => store.checkHealth(new AbortController().signal),
      (store) => Array.fromAsync(store.exportHistories()),
    ];
    for (const call of calls) await call(restrainStore(doubting(), { doubts }));
    expect(counted).toEqual(calls.map(() => 'other_server'));
  });

  it('of which a batch shows that records are lost: nothing of it is recorded below the floor', async () => {
    const store = restrainStore(backend, { doubts });
    const lost = { slot: 3000, sourceEpoch: null, targetEpoch: null };
    const [ofLost, ofOther] = await store.checkAndRecord([block(1, 3001, 'a'), block(2, 3001, 'a')], [lost, NO_FLOORS]);
    expect(ofLost).toEqual({ kind: 'unavailable', reason: 'slashing_rollback' });
    expect(ofOther).toEqual({ kind: 'refused', reason: 'block_below_low_water_mark' });
    expect(counted).toEqual(['lost_records']);
    expect((await backend.status()).blocks).toBe(0);
    expect(await store.checkAndRecord([block(1, 3201, 'a')], [lost])).toEqual([{ kind: 'safe', repeat: false }]);
  });

  it('a key that lies beyond the floor makes no second jump, and stops no other key', async () => {
    const store = restrainStore(backend, { doubts });
    const future = { slot: 2 ** 40, sourceEpoch: null, targetEpoch: null };
    for (let round = 1; round <= 3; round++) {
      const verdicts = await store.checkAndRecord(
        [block(1, 2 ** 41, 'a'), block(2, 4000 + round, 'a')],
        [future, NO_FLOORS],
      );
      expect(verdicts).toEqual([
        { kind: 'unavailable', reason: 'slashing_rollback' },
        { kind: 'safe', repeat: false },
      ]);
    }
    expect(counted).toEqual(['lost_records']);
  });

  it('lets no request through while the clock is not confirmed, and all when it is', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    unconfirmed = true;
    await doubts.settle({ cause: 'unclean_end' }).catch(() => undefined);
    const protection = new SlashingProtection(restrainStore(backend, { doubts }), {}, { clock: systemClock, log });
    const ask = () => protection.check({ ...vote(1, 100, 101, 'a'), signingRoot: rootOf('a') });
    await expect(ask()).rejects.toMatchObject({ reason: 'clock_unconfirmed' });
    unconfirmed = false;
    await vi.advanceTimersByTimeAsync(1_000);
    await vi.waitFor(() => expect(doubts.hindrance()).toBeUndefined());
    expect(await ask()).toEqual({ kind: 'safe', repeat: false });
    expect((await backend.status()).attestations).toBe(1);
  });
});

const NO_FLOORS = { slot: null, sourceEpoch: null, targetEpoch: null };
