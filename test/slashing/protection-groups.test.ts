// Groups of messages in front of slashing protection: decided together, each for itself.

import { describe, expect, it, vi } from 'vitest';
import { SignerError } from '../../signer/api/errors.ts';
import type { SlashableMessage } from '../../signer/slashing/types.ts';
import { block, vote } from '../support/slashing.ts';
import { LIMITS, SAFE, setUp, start, turn } from './stalled-protection.ts';

describe('a group', () => {
  const never = new AbortController().signal;
  const votes = (count: number, root = 'a'): SlashableMessage[] =>
    Array.from({ length: count }, (_, key) => vote(key, 1, 2, root));

  it('has an outcome for each message, in their order, whatever becomes of the others', async () => {
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

  it('shares one commit, and a commit that fails puts each of its messages in doubt', async () => {
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

  it('is overtaken by single messages, and gets a share beside a flood of them', async () => {
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

  it('has smaller commits while single messages come, which wait for them', async () => {
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

  it('keeps no single message waiting, once its own commit is over', async () => {
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
    expect(sizes()).toEqual([128, 1 + 16]); // and so do other single messages, from each other
  });

  it('keeps the order of a key: nothing of that key overtakes it', async () => {
    const { protection, batch, time } = setUp({}, { ...LIMITS, maxMessages: 2 });
    start(protection.checkGroup(votes(6), never));
    await turn();
    start(protection.check(vote(5, 2, 3, 'alone')));
    time.now += 5;
    await batch(0).answer();
    await vi.advanceTimersByTimeAsync(5);
    // The single check brings its key to the front, and what that key was asked before goes first.
    expect(batch(1).messages[0]).toEqual(vote(5, 1, 2, 'a'));
  });

  it('that is given up frees the places of what has not begun', async () => {
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

  it('is refused whole when there is no room for all of it, and when protection is closed', async () => {
    const { protection, batches } = setUp({ maxQueuedChecks: 5 });
    await expect(protection.checkGroup(votes(6), never)).rejects.toMatchObject({ reason: 'overloaded' });
    await protection.close();
    await expect(protection.checkGroup(votes(1), never)).rejects.toMatchObject({ reason: 'shutting_down' });
    expect(batches).toEqual([]);
  });

  it('of nothing has no outcomes', async () => {
    expect(await setUp().protection.checkGroup([], never)).toEqual([]);
  });
});
