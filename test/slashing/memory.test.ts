// What slashing protection remembers of commits, and what it says of its store, before a backend whose answers the test
// gives itself.

import { describe, expect, it, vi } from 'vitest';
import type { SlashingProtectionOptions } from '../../signer/slashing/protection.ts';
import type { Marks, SlashableMessage, SlashingVerdict } from '../../signer/slashing/types.ts';
import { block, vote } from '../support/slashing.ts';
import { attempt, LIMITS, SAFE, setUp, start, turn } from './stalled-protection.ts';

describe('doubt: a commit that failed may be on disk or not', () => {
  const doubted = { asked: false, answer: expect.objectContaining({ reason: 'slashing_unavailable' }) };
  const safe = { asked: true, answer: { kind: 'safe', repeat: false } };

  it('another block at or below the attempted slot is 503 and is not even asked for', async () => {
    const system = setUp();
    const failed = await attempt(system, block(1, 10, 'a'), 'fails');
    expect(failed.answer).toMatchObject({ reason: 'slashing_unavailable' });
    expect(await attempt(system, block(1, 10, 'b'), SAFE)).toEqual(doubted);
    expect(await attempt(system, block(1, 9, 'b'), SAFE)).toEqual(doubted);
    expect(await attempt(system, block(2, 9, 'b'), SAFE)).toEqual(safe);
    expect(await attempt(system, vote(1, 1, 2, 'b'), SAFE)).toEqual(safe);
  });

  it('the same block may be tried again, and its record ends the doubt', async () => {
    const system = setUp();
    await attempt(system, block(1, 10, 'a'), 'fails');
    await attempt(system, block(1, 10, 'a'), 'fails');
    expect(await attempt(system, block(1, 10, 'b'), SAFE)).toEqual(doubted);
    expect(await attempt(system, block(1, 10, 'a'), SAFE)).toEqual(safe);
    const refusal: SlashingVerdict = { kind: 'refused', reason: 'double_block' };
    expect(await attempt(system, block(1, 10, 'b'), refusal)).toEqual({ asked: true, answer: refusal });
  });

  it('a later block that is recorded ends the doubt, one that fails takes its place', async () => {
    const system = setUp();
    await attempt(system, block(1, 10, 'a'), 'fails');
    await attempt(system, block(1, 12, 'c'), 'fails');
    expect(await attempt(system, block(1, 10, 'a'), SAFE)).toEqual(doubted);
    expect(await attempt(system, block(1, 11, 'b'), SAFE)).toEqual(doubted);
    expect(await attempt(system, block(1, 13, 'd'), SAFE)).toEqual(safe);
    expect((await attempt(system, block(1, 11, 'b'), SAFE)).asked).toBe(true);
  });

  it('the same for votes: neither a smaller source nor a target at or below the attempted one', async () => {
    const system = setUp();
    await attempt(system, vote(1, 5, 10, 'a'), 'fails');
    expect(await attempt(system, vote(1, 5, 10, 'b'), SAFE)).toEqual(doubted);
    expect(await attempt(system, vote(1, 6, 9, 'b'), SAFE)).toEqual(doubted);
    expect(await attempt(system, vote(1, 4, 11, 'b'), SAFE)).toEqual(doubted);
    expect(await attempt(system, vote(1, 4, 10, 'a'), SAFE)).toEqual(doubted);
    expect(await attempt(system, vote(1, 5, 11, 'b'), SAFE)).toEqual(safe);
    expect((await attempt(system, vote(1, 5, 10, 'b'), SAFE)).asked).toBe(true);
  });

  it('requests that waited behind the failed one are doubted too', async () => {
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

  it('an answer with too few verdicts signs nothing and leaves a doubt', async () => {
    const system = setUp({}, { ...LIMITS, minIntervalMs: 0 });
    const outcomes = [1, 2].map((key) => start(system.protection.check(block(key, 10, 'a'))));
    await turn();
    await system.batch(0).answer([SAFE]);
    for (const outcome of outcomes) await expect(outcome).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    expect(await attempt(system, block(1, 10, 'b'), SAFE)).toEqual(doubted);
  });

  it('a key whose record is damaged or rolled back gets its own 503; nothing was attempted for it', async () => {
    const system = setUp();
    for (const reason of ['slashing_integrity', 'slashing_rollback'] as const) {
      const { answer } = await attempt(system, block(1, 10, 'a'), { kind: 'unavailable', reason });
      expect(answer).toMatchObject({ reason });
    }
    expect(await attempt(system, block(1, 10, 'b'), SAFE)).toEqual(safe);
  });
});

describe('memory and health', () => {
  it('the backend is told what this process recorded of a key, and nothing that failed or was refused', async () => {
    const { protection, batch } = setUp({}, { ...LIMITS, minIntervalMs: 0 });
    const steps: [SlashableMessage, SlashingVerdict | 'fails', Marks][] = [
      [block(1, 10, 'a'), SAFE, { slot: null, sourceEpoch: null, targetEpoch: null }],
      [block(1, 5, 'old'), { kind: 'safe', repeat: true }, { slot: 10, sourceEpoch: null, targetEpoch: null }],
      [vote(1, 3, 4, 'a'), SAFE, { slot: 10, sourceEpoch: null, targetEpoch: null }],
      [vote(1, 9, 9, 'a'), { kind: 'refused', reason: 'double_vote' }, { slot: 10, sourceEpoch: 3, targetEpoch: 4 }],
      [vote(1, 8, 9, 'a'), 'fails', { slot: 10, sourceEpoch: 3, targetEpoch: 4 }],
      [block(1, 11, 'b'), SAFE, { slot: 10, sourceEpoch: 3, targetEpoch: 4 }],
    ];
    for (const [index, [message, verdict, floors]] of steps.entries()) {
      start(protection.check(message));
      await turn();
      expect(batch(index).floors).toEqual([floors]);
      await (verdict === 'fails' ? batch(index).fail() : batch(index).answer([verdict]));
    }
  });

  it('the marks of many keys are kept apart', async () => {
    const { protection, batch } = setUp({}, { maxMessages: 1000, maxInFlight: 1, minIntervalMs: 0 });
    for (let key = 0; key < 1000; key += 1) start(protection.check(block(key, key, 'a')));
    await turn();
    await batch(0).answer();
    for (let key = 0; key < 1000; key += 1) start(protection.check(block(key, key + 1, 'b')));
    await turn();
    expect(batch(1).floors.map(({ slot }) => slot)).toEqual(Array.from({ length: 1000 }, (_, key) => key));
  });

  it('health follows the batches; hooks see sizes, outcomes and refusals', async () => {
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
    expect(protection.health.status).toBe('down'); // nothing was committed
    expect(onBatch.mock.calls).toEqual([
      [1, 0.007, 'failed'],
      [1, 0, 'committed'],
    ]);
    expect(onRefusal.mock.calls).toEqual([['double_block']]);
  });

  it('after a commit that failed, the health is up when the same commit has succeeded', async () => {
    const onRefusal = vi.fn<NonNullable<SlashingProtectionOptions['onRefusal']>>();
    const system = setUp({ onRefusal });
    const { protection, batches, batch } = system;
    const ask = () => protection.checkHealth(new AbortController().signal);
    await attempt(system, block(1, 10, 'a'), 'fails');
    const again = ask();
    await turn();
    expect(batch(1).messages).toEqual([block(1, 10, 'a')]);
    await batch(1).fail();
    expect(await again).toMatchObject({ status: 'down' });
    const late = protection.checkHealth(AbortSignal.abort());
    expect(await late).toMatchObject({ status: 'down' });
    const third = ask();
    await turn();
    await batch(2).answer();
    expect(await third).toMatchObject({ status: 'up' });
    expect(await ask()).toMatchObject({ status: 'up' });
    expect(batches).toHaveLength(3);
    // Recorded, as any other: the memory of the key has it.
    await attempt(system, block(1, 9, 'b'), SAFE);
    expect(batch(3).floors[0]).toMatchObject({ slot: 10 });
    // It may be refused by now, when another signer recorded another: no alarm is due.
    await attempt(system, block(2, 10, 'a'), 'fails');
    const refused = ask();
    await turn();
    await batch(5).answer([{ kind: 'refused', reason: 'double_block' }]);
    expect(await refused).toMatchObject({ status: 'up' });
    expect(onRefusal).not.toHaveBeenCalled();
  });

  it('a store that never answers is down when its time is over, and up when it answers again', async () => {
    let answer: Promise<void> = new Promise(() => undefined);
    const { protection } = setUp({}, LIMITS, () => answer);
    for (let poll = 0; poll < 2; poll += 1) {
      const time = new AbortController();
      const asked = protection.checkHealth(time.signal);
      time.abort();
      expect(await asked).toMatchObject({ status: 'down' });
    }
    answer = Promise.resolve();
    expect(await protection.checkHealth(new AbortController().signal)).toMatchObject({ status: 'up' });
  });
});
