// Grouping, order, limits and doubt: slashing protection in front of a backend whose answers the test gives itself.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { SignerError } from '../../enclave/api/errors.ts';
import { unsafeNoopBackend } from '../../enclave/slashing/noop.ts';
import {
  CLOSE_WAIT_MS,
  SlashingProtection,
  type SlashingProtectionOptions,
} from '../../enclave/slashing/protection.ts';
import type {
  BatchLimits,
  HighWaterMarks,
  SlashableMessage,
  SlashingBackend,
  Verdict,
} from '../../enclave/slashing/types.ts';
import { block, MAIN_ROOT, quietLog, vote } from '../support/slashing.ts';

const SAFE: Verdict = { kind: 'safe', repeat: false };
const LIMITS: BatchLimits = { maxMessages: 4, maxInFlight: 1, minIntervalMs: 2 };

interface Batch {
  readonly messages: readonly SlashableMessage[];
  readonly floors: readonly HighWaterMarks[];
  answer(verdicts?: Verdict[]): Promise<void>;
  fail(error?: Error): Promise<void>;
}

function setUp(options: SlashingProtectionOptions = {}, batchLimits: BatchLimits = LIMITS) {
  const batches: Batch[] = [];
  const time = { now: 1000 };
  let closed = 0;
  const closeWaits: (number | undefined)[] = [];
  const backend: SlashingBackend = {
    ...unsafeNoopBackend(MAIN_ROOT),
    batchLimits,
    checkAndRecord(messages, floors) {
      const { promise, resolve, reject } = Promise.withResolvers<Verdict[]>();
      batches.push({
        messages,
        floors,
        answer(verdicts = messages.map(() => SAFE)) {
          resolve(verdicts);
          return turn();
        },
        fail(error = new SignerError('slashing_unavailable')) {
          reject(error);
          return turn();
        },
      });
      return promise;
    },
    async close(waitMs) {
      closed += 1;
      closeWaits.push(waitMs);
    },
  };
  const clock = { now: () => time.now, monotonic: () => time.now };
  const protection = new SlashingProtection(backend, options, { clock, log: quietLog });
  const sizes = () => batches.map(({ messages }) => messages.length);
  const batch = (index: number): Batch => {
    const found = batches[index];
    if (found === undefined) throw new Error(`no batch ${index} was started`);
    return found;
  };
  return { protection, batches, batch, sizes, time, closed: () => closed, closeWaits: () => closeWaits };
}

/** Everything that is due without a timer has happened. */
async function turn(): Promise<void> {
  for (let round = 0; round < 3; round += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Checks whose answers are looked at later, or never. */
function start(check: Promise<unknown>): Promise<unknown> {
  check.catch(() => undefined);
  return check;
}

/** Each check is a batch of its own; the verdict is given, or the commit fails. */
async function attempt(
  { protection, batches }: ReturnType<typeof setUp>,
  message: SlashableMessage,
  verdict: Verdict | 'fails',
) {
  const before = batches.length;
  const outcome = start(protection.check(message));
  await turn();
  const asked = batches.length > before;
  if (asked) await (verdict === 'fails' ? batches.at(-1)?.fail() : batches.at(-1)?.answer([verdict]));
  const answer = await outcome.catch((error: unknown) => error);
  return { asked, answer };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('grouping', () => {
  test('a lone request starts at once, and so does the next lone one: no timer is involved', async () => {
    const { protection, batch, sizes } = setUp();
    for (let slot = 1; slot <= 3; slot += 1) {
      const outcome = protection.check(block(1, slot, 'a'));
      await turn();
      await batch(slot - 1).answer();
      expect(await outcome).toEqual({ kind: 'safe', repeat: false });
    }
    expect(sizes()).toEqual([1, 1, 1]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('requests that arrive together share a batch, up to its limit', async () => {
    const { protection, sizes } = setUp();
    for (let key = 0; key < 6; key += 1) start(protection.check(block(key, 1, 'a')));
    await turn();
    expect(sizes()).toEqual([4]);
    expect(protection.load).toEqual({ queued: 2, inFlight: 4 });
  });

  test('requests wait for the batch under way and then go together', async () => {
    const { protection, batch, sizes, time } = setUp();
    start(protection.check(block(0, 1, 'a')));
    await turn();
    for (let key = 1; key <= 3; key += 1) start(protection.check(block(key, 1, 'a')));
    await turn();
    expect(sizes()).toEqual([1]);
    time.now += 5;
    await batch(0).answer();
    expect(sizes()).toEqual([1, 3]);
  });

  test('under load batches start at least the interval apart', async () => {
    const { protection, batch, sizes, time } = setUp();
    for (let key = 0; key < 3; key += 1) start(protection.check(block(key, 1, 'a')));
    await turn();
    await batch(0).answer();
    for (let key = 0; key < 3; key += 1) start(protection.check(block(key, 2, 'b')));
    time.now += 1;
    await turn();
    expect(sizes()).toEqual([3]);
    time.now += 1;
    await vi.advanceTimersByTimeAsync(2);
    expect(sizes()).toEqual([3, 3]);
  });

  test('never more batches under way than the backend allows', async () => {
    const { protection, batch, sizes } = setUp({}, { maxMessages: 1, maxInFlight: 2, minIntervalMs: 0 });
    for (let key = 0; key < 5; key += 1) start(protection.check(block(key, 1, 'a')));
    await turn();
    expect(sizes()).toEqual([1, 1]);
    await batch(1).answer();
    expect(sizes()).toEqual([1, 1, 1]);
  });

  test('one message of a key at a time, in the order of arrival, over all batches under way', async () => {
    const { protection, batch, batches } = setUp({}, { maxMessages: 4, maxInFlight: 3, minIntervalMs: 0 });
    const order: number[] = [];
    for (const slot of [1, 2, 3]) start(protection.check(block(1, slot, slot)).then(() => order.push(slot)));
    start(protection.check(block(2, 9, 'other')));
    await turn();
    expect(batches).toHaveLength(1);
    expect(batch(0).messages).toEqual([block(1, 1, 1), block(2, 9, 'other')]);
    await batch(0).answer();
    expect(batch(1).messages).toEqual([block(1, 2, 2)]);
    await batch(1).answer();
    await batch(2).answer();
    expect(order).toEqual([1, 2, 3]);
  });
});

describe('limits', () => {
  test('a full queue is overloaded at once', async () => {
    const { protection } = setUp({ maxQueuedChecks: 2 });
    start(protection.check(block(0, 1, 'a')));
    start(protection.check(block(1, 1, 'a')));
    await expect(protection.check(block(2, 1, 'a'))).rejects.toMatchObject({ reason: 'overloaded' });
  });

  test('a request that goes away before its check begins frees its place and is never recorded', async () => {
    const { protection, batches, batch } = setUp({ maxQueuedChecks: 1 });
    const leaving = new AbortController();
    const gone = start(protection.check(block(1, 1, 'gone'), leaving.signal));
    leaving.abort(new Error('the client went away'));
    await expect(gone).rejects.toThrow('the client went away');
    start(protection.check(block(1, 1, 'stays')));
    await turn();
    expect(batches).toHaveLength(1);
    expect(batch(0).messages).toEqual([block(1, 1, 'stays')]);
  });

  test('a request whose signal aborted already never begins', async () => {
    const { protection } = setUp();
    await expect(protection.check(block(1, 1, 'a'), AbortSignal.abort(new Error('late')))).rejects.toThrow('late');
    expect(protection.load).toEqual({ queued: 0, inFlight: 0 });
  });

  test('going away after the check has begun changes nothing', async () => {
    const { protection, batch } = setUp();
    const leaving = new AbortController();
    const outcome = protection.check(block(1, 1, 'a'), leaving.signal);
    await turn();
    leaving.abort();
    await batch(0).answer();
    expect(await outcome).toEqual({ kind: 'safe', repeat: false });
  });

  test('closing refuses what waits, lets the batch under way finish, then closes the backend', async () => {
    const { protection, batch, closed } = setUp();
    const begun = protection.check(block(1, 1, 'a'));
    await turn();
    const waiting = start(protection.check(block(2, 1, 'a')));
    const closing = protection.close();
    await expect(waiting).rejects.toMatchObject({ reason: 'shutting_down' });
    await expect(protection.check(block(3, 1, 'a'))).rejects.toMatchObject({ reason: 'shutting_down' });
    expect(closed()).toBe(0);
    await batch(0).answer();
    expect(await begun).toEqual({ kind: 'safe', repeat: false });
    await closing;
    expect(closed()).toBe(1);
  });
});

test('closing does not wait for ever for a store that does not answer', async () => {
  const { protection, closed } = setUp();
  start(protection.check(block(1, 1, 'a')));
  await turn();
  const closing = protection.close();
  await vi.advanceTimersByTimeAsync(CLOSE_WAIT_MS - 1);
  expect(closed()).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  await closing;
  expect(closed()).toBe(1);
});

test('closing takes no longer than it is given, for the batches and for the store', async () => {
  const { protection, closed, closeWaits, time } = setUp();
  start(protection.check(block(1, 1, 'a')));
  await turn();
  const closing = protection.close(1000);
  await vi.advanceTimersByTimeAsync(499);
  expect(closed()).toBe(0);
  time.now += 500;
  await vi.advanceTimersByTimeAsync(1);
  await closing;
  expect(closeWaits()).toEqual([500]);
});

test('hooks that throw are in the way of no answer', async () => {
  const hook = () => {
    throw new Error('a hook fails');
  };
  const { protection, batch } = setUp({ onBatch: hook, onRefusal: hook });
  const outcomes = [protection.check(block(1, 1, 'a')), protection.check(block(2, 1, 'a'))];
  await turn();
  await batch(0).answer([
    { kind: 'safe', repeat: false },
    { kind: 'refused', reason: 'double_block' },
  ]);
  expect((await Promise.all(outcomes)).map(({ kind }) => kind)).toEqual(['safe', 'refused']);
  await protection.close();
});

test('a key that somebody else holds gets its own 503, and leaves no doubt behind', async () => {
  const world = setUp();
  const held = await attempt(world, block(1, 5, 'a'), { kind: 'unavailable', reason: 'slashing_unavailable' });
  expect(held.answer).toMatchObject({ reason: 'slashing_unavailable' });
  expect((await attempt(world, block(1, 5, 'b'), SAFE)).answer).toEqual(SAFE);
  expect(world.protection.health.status).toBe('up');
});

describe('doubt: a commit that failed may be on disk or not', () => {
  const doubted = { asked: false, answer: expect.objectContaining({ reason: 'slashing_unavailable' }) };
  const safe = { asked: true, answer: { kind: 'safe', repeat: false } };

  test('another block at or below the attempted slot is 503 and is not even asked for', async () => {
    const system = setUp();
    const failed = await attempt(system, block(1, 10, 'a'), 'fails');
    expect(failed.answer).toMatchObject({ reason: 'slashing_unavailable' });
    expect(await attempt(system, block(1, 10, 'b'), SAFE)).toEqual(doubted);
    expect(await attempt(system, block(1, 9, 'b'), SAFE)).toEqual(doubted);
    expect(await attempt(system, block(2, 9, 'b'), SAFE)).toEqual(safe);
    expect(await attempt(system, vote(1, 1, 2, 'b'), SAFE)).toEqual(safe);
  });

  test('the same block may be tried again, and its record ends the doubt', async () => {
    const system = setUp();
    await attempt(system, block(1, 10, 'a'), 'fails');
    await attempt(system, block(1, 10, 'a'), 'fails');
    expect(await attempt(system, block(1, 10, 'b'), SAFE)).toEqual(doubted);
    expect(await attempt(system, block(1, 10, 'a'), SAFE)).toEqual(safe);
    const refusal: Verdict = { kind: 'refused', reason: 'double_block' };
    expect(await attempt(system, block(1, 10, 'b'), refusal)).toEqual({ asked: true, answer: refusal });
  });

  test('a later block that is recorded ends the doubt, one that fails takes its place', async () => {
    const system = setUp();
    await attempt(system, block(1, 10, 'a'), 'fails');
    await attempt(system, block(1, 12, 'c'), 'fails');
    expect(await attempt(system, block(1, 10, 'a'), SAFE)).toEqual(doubted);
    expect(await attempt(system, block(1, 11, 'b'), SAFE)).toEqual(doubted);
    expect(await attempt(system, block(1, 13, 'd'), SAFE)).toEqual(safe);
    expect((await attempt(system, block(1, 11, 'b'), SAFE)).asked).toBe(true);
  });

  test('the same for votes: neither a smaller source nor a target at or below the attempted one', async () => {
    const system = setUp();
    await attempt(system, vote(1, 5, 10, 'a'), 'fails');
    expect(await attempt(system, vote(1, 5, 10, 'b'), SAFE)).toEqual(doubted);
    expect(await attempt(system, vote(1, 6, 9, 'b'), SAFE)).toEqual(doubted);
    expect(await attempt(system, vote(1, 4, 11, 'b'), SAFE)).toEqual(doubted);
    expect(await attempt(system, vote(1, 4, 10, 'a'), SAFE)).toEqual(doubted);
    expect(await attempt(system, vote(1, 5, 11, 'b'), SAFE)).toEqual(safe);
    expect((await attempt(system, vote(1, 5, 10, 'b'), SAFE)).asked).toBe(true);
  });

  test('requests that waited behind the failed one are doubted too', async () => {
    const system = setUp();
    const first = start(system.protection.check(block(1, 10, 'a')));
    const second = start(system.protection.check(block(1, 10, 'b')));
    await turn();
    await system.batch(0).fail();
    await expect(first).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    await expect(second).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    expect(system.batches).toHaveLength(1);
    expect(system.protection.load).toEqual({ queued: 0, inFlight: 0 });
  });

  test('an answer with too few verdicts signs nothing and leaves a doubt', async () => {
    const system = setUp({}, { ...LIMITS, minIntervalMs: 0 });
    const outcomes = [1, 2].map((key) => start(system.protection.check(block(key, 10, 'a'))));
    await turn();
    await system.batch(0).answer([SAFE]);
    for (const outcome of outcomes) await expect(outcome).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    expect(await attempt(system, block(1, 10, 'b'), SAFE)).toEqual(doubted);
  });

  test('a key whose record is damaged or rolled back gets its own 503; nothing was attempted for it', async () => {
    const system = setUp();
    for (const reason of ['slashing_integrity', 'slashing_rollback'] as const) {
      const { answer } = await attempt(system, block(1, 10, 'a'), { kind: 'unavailable', reason });
      expect(answer).toMatchObject({ reason });
    }
    expect(await attempt(system, block(1, 10, 'b'), SAFE)).toEqual(safe);
  });
});

describe('memory and health', () => {
  test('the backend is told what this process recorded of a key, and nothing that failed or was refused', async () => {
    const { protection, batch } = setUp({}, { ...LIMITS, minIntervalMs: 0 });
    const steps: [SlashableMessage, Verdict | 'fails', HighWaterMarks][] = [
      [block(1, 10, 'a'), SAFE, { blockSlot: null, sourceEpoch: null, targetEpoch: null }],
      [block(1, 5, 'old'), { kind: 'safe', repeat: true }, { blockSlot: 10, sourceEpoch: null, targetEpoch: null }],
      [vote(1, 3, 4, 'a'), SAFE, { blockSlot: 10, sourceEpoch: null, targetEpoch: null }],
      [
        vote(1, 9, 9, 'a'),
        { kind: 'refused', reason: 'double_vote' },
        { blockSlot: 10, sourceEpoch: 3, targetEpoch: 4 },
      ],
      [vote(1, 8, 9, 'a'), 'fails', { blockSlot: 10, sourceEpoch: 3, targetEpoch: 4 }],
      [block(1, 11, 'b'), SAFE, { blockSlot: 10, sourceEpoch: 3, targetEpoch: 4 }],
    ];
    for (const [index, [message, verdict, floors]] of steps.entries()) {
      start(protection.check(message));
      await turn();
      expect(batch(index).floors).toEqual([floors]);
      await (verdict === 'fails' ? batch(index).fail() : batch(index).answer([verdict]));
    }
  });

  test('the marks of many keys are kept apart', async () => {
    const { protection, batch } = setUp({}, { maxMessages: 1000, maxInFlight: 1, minIntervalMs: 0 });
    for (let key = 0; key < 1000; key += 1) start(protection.check(block(key, key, 'a')));
    await turn();
    await batch(0).answer();
    for (let key = 0; key < 1000; key += 1) start(protection.check(block(key, key + 1, 'b')));
    await turn();
    expect(batch(1).floors.map(({ blockSlot }) => blockSlot)).toEqual(Array.from({ length: 1000 }, (_, key) => key));
  });

  test('health follows the batches; hooks see sizes, outcomes and refusals', async () => {
    const onBatch = vi.fn<NonNullable<SlashingProtectionOptions['onBatch']>>();
    const onRefusal = vi.fn<NonNullable<SlashingProtectionOptions['onRefusal']>>();
    const { protection, batch, time } = setUp({ onBatch, onRefusal });
    expect(protection.health.status).toBe('up');
    start(protection.check(block(1, 1, 'a')));
    await turn();
    time.now += 7;
    await batch(0).fail();
    expect(protection.health).toEqual({ status: 'down', since: 1007 });
    const outcome = protection.check(block(2, 1, 'a'));
    await turn();
    await batch(1).answer([{ kind: 'refused', reason: 'double_block' }]);
    expect(await outcome).toEqual({ kind: 'refused', reason: 'double_block' });
    expect(protection.health.status).toBe('up');
    expect(onBatch.mock.calls).toEqual([
      [1, 0.007, 'failed'],
      [1, 0, 'committed'],
    ]);
    expect(onRefusal.mock.calls).toEqual([['double_block']]);
    expect(await protection.checkHealth(new AbortController().signal)).toMatchObject({ status: 'up' });
  });
});

describe('a group', () => {
  const never = new AbortController().signal;
  const votes = (count: number, root = 'a'): SlashableMessage[] =>
    Array.from({ length: count }, (_, key) => vote(key, 1, 2, root));

  test('has an outcome for each message, in their order, whatever becomes of the others', async () => {
    const refused: string[] = [];
    const { protection, batch } = setUp({ onRefusal: (reason) => void refused.push(reason) });
    const outcomes = protection.checkGroup(votes(4), never);
    await turn();
    await batch(0).answer([
      SAFE,
      { kind: 'refused', reason: 'double_vote' },
      { kind: 'unavailable', reason: 'slashing_integrity' },
      { kind: 'safe', repeat: true },
    ]);
    expect(await outcomes).toMatchObject([
      { kind: 'safe', repeat: false },
      { kind: 'refused', reason: 'double_vote' },
      { kind: 'failed', error: { reason: 'slashing_integrity' } },
      { kind: 'safe', repeat: true },
    ]);
    expect(refused).toEqual(['double_vote', 'slashing_integrity']);
  });

  test('shares one commit, and a commit that fails puts each of its messages in doubt', async () => {
    const { protection, batch, sizes, time } = setUp({}, { ...LIMITS, maxMessages: 100 });
    const outcomes = protection.checkGroup(votes(50), never);
    await turn();
    expect(sizes()).toEqual([50]);
    await batch(0).fail();
    expect((await outcomes).map((outcome) => outcome.kind)).toEqual(Array(50).fill('failed'));
    time.now += 5;
    const others = protection.checkGroup(votes(50, 'b'), never);
    await turn();
    expect(sizes()).toEqual([50]); // the store is not asked: an earlier commit may have been made
    expect(await others).toMatchObject(
      Array.from({ length: 50 }, () => ({ kind: 'failed', error: { reason: 'slashing_unavailable' } })),
    );
  });

  test('is overtaken by messages that came alone, and gets a share beside a flood of them', async () => {
    const { protection, batch, sizes, time } = setUp({}, { ...LIMITS, maxMessages: 10 });
    start(protection.checkGroup(votes(100), never));
    await turn();
    for (let slot = 0; slot < 30; slot += 1) start(protection.check(block(1000 + slot, 1, 'a')));
    time.now += 5;
    await batch(0).answer();
    await vi.advanceTimersByTimeAsync(5);
    expect(sizes()).toEqual([10, 10]);
    const kinds = batch(1).messages.map(({ kind }) => kind);
    expect(kinds[0]).toBe('block');
    expect(kinds.filter((kind) => kind === 'block')).toHaveLength(8);
  });

  test('has smaller commits while messages come alone, which wait for them', async () => {
    const { protection, batch, sizes, time } = setUp({}, { ...LIMITS, maxMessages: 500 });
    start(protection.checkGroup(votes(1000), never));
    await turn();
    const next = async (index: number, milliseconds: number): Promise<void> => {
      time.now += milliseconds;
      await batch(index).answer();
      await vi.advanceTimersByTimeAsync(milliseconds);
    };
    await next(0, 5);
    start(protection.check(block(2000, 1, 'a')));
    await next(1, 5);
    await next(2, 5);
    await next(3, 1000);
    expect(sizes()).toEqual([128, 128, 1 + 16, 48, 128]);
  });

  test('keeps nothing waiting that comes alone, once its own commit is over', async () => {
    const { protection, batch, sizes } = setUp({}, { ...LIMITS, maxMessages: 500 });
    start(protection.checkGroup(votes(1000), never));
    await turn();
    await batch(0).answer();
    expect(sizes()).toEqual([128]); // the next one of the group keeps its distance
    start(protection.check(block(2000, 1, 'a')));
    await turn();
    expect(sizes()).toEqual([128, 1 + 16]);
    await batch(1).answer();
    start(protection.check(block(2001, 1, 'a')));
    await turn();
    expect(sizes()).toEqual([128, 1 + 16]); // and so do others that came alone, from each other
  });

  test('keeps the order of a key: nothing of that key overtakes it', async () => {
    const { protection, batch, time } = setUp({}, { ...LIMITS, maxMessages: 2 });
    start(protection.checkGroup(votes(6), never));
    await turn();
    start(protection.check(vote(5, 2, 3, 'alone')));
    time.now += 5;
    await batch(0).answer();
    await vi.advanceTimersByTimeAsync(5);
    // The check that came alone brings its key to the front, and what that key was asked before goes first.
    expect(batch(1).messages[0]).toEqual(vote(5, 1, 2, 'a'));
  });

  test('that is given up frees the places of what has not begun', async () => {
    const { protection, batch } = setUp();
    const client = new AbortController();
    const outcomes = protection.checkGroup(votes(10), client.signal);
    await turn();
    client.abort(new SignerError('client_closed'));
    expect(protection.load).toEqual({ queued: 0, inFlight: 4 });
    await batch(0).answer();
    const kinds = (await outcomes).map((outcome) => outcome.kind);
    expect(kinds).toEqual([...Array(4).fill('safe'), ...Array(6).fill('failed')]);
  });

  test('is refused whole when there is no room for all of it, and when protection is closed', async () => {
    const { protection, batches } = setUp({ maxQueuedChecks: 5 });
    await expect(protection.checkGroup(votes(6), never)).rejects.toMatchObject({ reason: 'overloaded' });
    await protection.close();
    await expect(protection.checkGroup(votes(1), never)).rejects.toMatchObject({ reason: 'shutting_down' });
    expect(batches).toEqual([]);
  });

  test('of nothing has no outcomes', async () => {
    expect(await setUp().protection.checkGroup([], never)).toEqual([]);
  });
});
