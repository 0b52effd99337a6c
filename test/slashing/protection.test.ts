// Grouping, order, limits and doubt: slashing protection in front of a backend whose answers the test gives itself.

import { describe, expect, it, vi } from 'vitest';
import { BATCHES_CLOSE_WAIT_MS } from '../../signer/slashing/protection.ts';
import { block } from '../support/slashing.ts';
import { attempt, SAFE, setUp, start, turn } from './stalled-protection.ts';

describe('grouping', () => {
  it('a lone request starts at once, and so does the next lone one: no timer is involved', async () => {
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

  it('requests that arrive together share a batch, up to its limit', async () => {
    const { protection, sizes } = setUp();
    for (let key = 0; key < 6; key += 1) start(protection.check(block(key, 1, 'a')));
    await turn();
    expect(sizes()).toEqual([4]);
    expect(protection.load).toEqual({ queued: 2, inFlight: 4 });
  });

  it('requests wait for the batch under way and then go together', async () => {
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

  it('under load batches start at least the interval apart', async () => {
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

  it('never more batches under way than the backend allows', async () => {
    const { protection, batch, sizes } = setUp({}, { maxMessages: 1, maxInFlight: 2, minIntervalMs: 0 });
    for (let key = 0; key < 5; key += 1) start(protection.check(block(key, 1, 'a')));
    await turn();
    expect(sizes()).toEqual([1, 1]);
    await batch(1).answer();
    expect(sizes()).toEqual([1, 1, 1]);
  });

  it('one message of a key at a time, in the order of arrival, over all batches under way', async () => {
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
  it('a full queue is overloaded at once', async () => {
    const { protection } = setUp({ maxQueuedChecks: 2 });
    start(protection.check(block(0, 1, 'a')));
    start(protection.check(block(1, 1, 'a')));
    await expect(protection.check(block(2, 1, 'a'))).rejects.toMatchObject({ reason: 'overloaded' });
  });

  it('a request that goes away before its check begins frees its place and is never recorded', async () => {
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

  it('a request whose signal aborted already never begins', async () => {
    const { protection } = setUp();
    await expect(protection.check(block(1, 1, 'a'), AbortSignal.abort(new Error('late')))).rejects.toThrow('late');
    expect(protection.load).toEqual({ queued: 0, inFlight: 0 });
  });

  it('going away after the check has begun changes nothing', async () => {
    const { protection, batch } = setUp();
    const leaving = new AbortController();
    const outcome = protection.check(block(1, 1, 'a'), leaving.signal);
    await turn();
    leaving.abort();
    await batch(0).answer();
    expect(await outcome).toEqual({ kind: 'safe', repeat: false });
  });

  it('closing refuses what waits, lets the batch under way finish, then closes the backend', async () => {
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

it('closing does not wait for ever for a store that does not answer', async () => {
  const { protection, closed } = setUp();
  start(protection.check(block(1, 1, 'a')));
  await turn();
  const closing = protection.close();
  await vi.advanceTimersByTimeAsync(BATCHES_CLOSE_WAIT_MS - 1);
  expect(closed()).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  await closing;
  expect(closed()).toBe(1);
});

it('closing takes no longer than it is given, for the batches and for the store', async () => {
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

it('hooks that throw are in the way of no answer', async () => {
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

it('a key that somebody else holds gets its own 503, and leaves no doubt behind', async () => {
  const world = setUp();
  const held = await attempt(world, block(1, 5, 'a'), { kind: 'unavailable', reason: 'slashing_unavailable' });
  expect(held.answer).toMatchObject({ reason: 'slashing_unavailable' });
  expect((await attempt(world, block(1, 5, 'b'), SAFE)).answer).toEqual(SAFE);
  expect(world.protection.health.status).toBe('up');
});
