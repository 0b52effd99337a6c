// Writes that share a request: which do, behind what, and that each has a condition and an outcome of its own.

import { describe, expect, it } from 'vitest';
import { MAX_STATEMENTS } from '../../../../signer/slashing/dynamodb/operations/statements.ts';
import { markPartition } from '../../../../signer/slashing/dynamodb/tables/items.ts';
import type { SlashingBackend } from '../../../../signer/slashing/types.ts';
import { FAULTS, type Fault, faultTimes, type ProxiedRequest } from '../../../support/fault-proxy.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { block, history, publicKeyOf, stream, vote } from '../../../support/slashing.ts';
import { outcome } from '../../../support/slashing-dynamodb-world.ts';
import {
  all,
  KEYS,
  ONE_ATTEMPT,
  observe,
  open,
  openWarm,
  operations,
  sharedKeys,
  storedTarget,
  together,
  votes,
  world,
} from '../gathered-writes.ts';

describe('what shares a request', () => {
  it('writes that start together, with one statement an item', async () => {
    const backend = await openWarm();
    expect(await together(backend, votes(3, 'a'))).toEqual(all('safe'));
    expect(operations()).toEqual(['BatchExecuteStatement']);
    expect(new Set(sharedKeys()[0]).size).toBe(KEYS);
    expect(await storedTarget(3)).toBe('3');
  });

  it('a write that is alone is a request of its own, at once', async () => {
    const backend = await openWarm();
    expect(await outcome(backend, vote(1, 2, 3, 'a'))).toBe('safe');
    expect(operations()).toEqual(['PutItem']);
  });

  it('no more than the service takes, and none is forgotten', async () => {
    const keys = 3 * MAX_STATEMENTS + 7;
    const backend = await openWarm({ keys });
    expect(await together(backend, votes(3, 'a', keys))).toEqual(all('safe', keys));
    const sizes = sharedKeys().map((shared) => shared.length);
    expect(Math.max(...sizes)).toBe(MAX_STATEMENTS);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(keys);
  });

  it('the first write after an import does not: there is nothing that an UPDATE could begin with', async () => {
    const backend = await open();
    const keys = Array.from({ length: KEYS }, (_, key) => key);
    await backend.importHistories(stream(keys.map((key) => history(key, [], [[1, 2, null]]))));
    observe();
    expect(await together(backend, votes(3, 'a'))).toEqual(all('safe'));
    expect(new Set(operations())).toEqual(new Set(['PutItem']));
  });

  it('first records of keys go together in transactions of their own, one after another', async () => {
    const backend = await open();
    observe();
    const messages = [...votes(3, 'a'), ...Array.from({ length: KEYS }, (_, key) => block(key, 5, 'a'))];
    expect(await together(backend, messages)).toEqual(all('safe', 2 * KEYS));
    expect(new Set(operations())).toEqual(new Set(['GetItem', 'TransactWriteItems']));
    expect(operations().filter((operation) => operation === 'TransactWriteItems').length).toBeLessThan(KEYS);
  });

  it('never two writes of one item: the later one finds what the earlier one left', async () => {
    const backend = await openWarm();
    const twice = [
      vote(1, 2, 3, 'a'),
      vote(1, 3, 4, 'b'),
      vote(2, 2, 3, 'a'),
      vote(2, 2, 3, 'rival'),
      vote(3, 2, 3, 'a'),
    ];
    const outcomes = await together(backend, twice);
    expect(outcomes[4]).toBe('safe');
    expect(outcomes.slice(2, 4).toSorted()).toEqual(['double_vote', 'safe']);
    expect(outcomes[1]).toBe('safe');
    for (const keys of sharedKeys()) expect(new Set(keys).size).toBe(keys.length);
    expect(await storedTarget(1)).toBe('4');
  });
});

describe('each has an outcome of its own', () => {
  it('what another signer wrote in between is judged anew, and the others are safe', async () => {
    const backend = await openWarm();
    const other = await open({ table: world.tableName, endpoint: world.tables.server.endpoint });
    expect(await outcome(other, vote(1, 2, 4, 'theirs'))).toBe('safe');
    expect(await outcome(other, vote(2, 2, 3, 'theirs'))).toBe('safe');
    const expected = all('safe');
    expected[1] = 'double_vote';
    expect(await together(backend, votes(4, 'ours'))).toEqual(expected);
    expect(await storedTarget(2)).toBe('4');
  });

  it('an item that was altered beside its old code is 503 for its key alone, and is not overwritten', async () => {
    const backend = await openWarm();
    const pk = markPartition({ kind: 'attestation', publicKey: publicKeyOf(5) });
    const altered = { ...(await world.tables.item(world.tableName, pk)), source_epoch: { N: '0' } };
    await world.tables.putItem(world.tableName, altered);
    const expected = all('safe');
    expected[5] = 'slashing_integrity';
    expect(await together(backend, votes(3, 'a'))).toEqual(expected);
    expect(await world.tables.item(world.tableName, pk)).toEqual(altered);
  });

  it('an item that was deleted is not made again', async () => {
    const backend = await openWarm();
    const pk = markPartition({ kind: 'attestation', publicKey: publicKeyOf(5) });
    await world.tables.deleteItem(world.tableName, pk);
    const expected = all('safe');
    expected[5] = 'slashing_rollback';
    expect(await together(backend, votes(3, 'a'))).toEqual(expected);
    expect(await world.tables.item(world.tableName, pk)).toBeUndefined();
  });

  const codes = ['ThrottlingError', 'ProvisionedThroughputExceeded', 'RequestLimitExceeded', 'InternalServerError'];
  it.each([...codes, 'TransactionConflict', 'ConditionalCheckFailed', 'DuplicateItem', 'SomethingNew'])(
    'a statement that failed of %s is written by itself',
    async (Code) => {
      const backend = await openWarm();
      const Responses = all('').map(() => ({ Error: { Code, Message: 'injected' } }));
      const answer = { kind: 'answer', body: JSON.stringify({ Responses }) } as const;
      observe(faultTimes(1, answer, 'BatchExecuteStatement') as (request: ProxiedRequest) => Fault | undefined);
      expect(await together(backend, votes(3, 'a'))).toEqual(all('safe'));
      expect(operations().toSorted()).toEqual(['BatchExecuteStatement', ...all('PutItem')]);
      expect(await storedTarget(9)).toBe('3');
    },
  );

  it.each([
    ['no list', '{}'],
    ['an empty list', '{"Responses":[]}'],
    ['one answer too few', JSON.stringify({ Responses: Array.from({ length: KEYS - 1 }, () => ({})) })],
    ['one too many', JSON.stringify({ Responses: Array.from({ length: KEYS + 1 }, () => ({})) })],
    ['something that is not JSON', '<html>'],
  ])('an answer with %s proves nothing: each is written by itself', async (_what, body) => {
    const backend = await openWarm({ client: { maxAttempts: 1 } });
    observe(faultTimes(1, { kind: 'answer', body }, 'BatchExecuteStatement') as never);
    expect(await together(backend, votes(3, 'a'))).toEqual(all('safe'));
    for (let key = 0; key < KEYS; key++) expect(await storedTarget(key)).toBe('3');
  });
});

describe('a service that takes no statements from this role', () => {
  const refusal = (Code: string): Fault => ({
    kind: 'answer',
    body: JSON.stringify({ Responses: all('').map(() => ({ Error: { Code, Message: 'injected' } })) }),
  });
  const unknown: Fault = { kind: 'error', status: 400, name: 'UnknownOperationException' };
  const invalid: Fault = { kind: 'error', status: 400, name: 'ValidationException' };

  it.each<readonly [string, Fault]>([
    ['AccessDeniedException', FAULTS.accessDenied],
    ['AccessDenied of each statement', refusal('AccessDenied')],
    ['ValidationError of each statement', refusal('ValidationError')],
    ['ValidationException', invalid],
    ['UnknownOperationException', unknown],
  ])('(%s) is asked once: every write is made by itself, and the log says what to allow', async (_what, fault) => {
    const log = recordingLog();
    const backend = await openWarm({ log });
    observe(({ operation }) => (operation === 'BatchExecuteStatement' ? fault : undefined));
    expect(await together(backend, votes(3, 'a'))).toEqual(all('safe'));
    expect(await together(backend, votes(4, 'a'))).toEqual(all('safe'));
    expect(operations().filter((operation) => operation === 'BatchExecuteStatement')).toHaveLength(1);
    const [newStore, ...others] = log.lines.map(({ message }) => message);
    expect(newStore).toContain('a new slashing database');
    expect(others).toEqual([expect.stringContaining('dynamodb:PartiQLUpdate')]);
  });

  it('a role that has lost its credentials is 503, and is asked again', async () => {
    const backend = await openWarm(ONE_ATTEMPT);
    const expired: Fault = { kind: 'error', status: 400, name: 'ExpiredTokenException' };
    observe(() => expired);
    expect(await together(backend, votes(3, 'a'))).toEqual(all('503 slashing_unavailable'));
    observe();
    expect(await together(backend, votes(3, 'a'))).toEqual(all('safe'));
    expect(operations()).toEqual(['BatchExecuteStatement']);
  });
});

describe('behind requests that are slow', () => {
  /** Two lone writes are on their way, and are not answered before `slow` is resolved. */
  async function twoHeld(backend: SlashingBackend, slow: Promise<void>): Promise<Promise<string>[]> {
    const arrived = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    observe(async (request) => {
      const key = arrived.findIndex((_, index) => request.body.includes(publicKeyOf(index)));
      arrived[key]?.resolve();
      if (key !== -1) await slow;
      return undefined;
    });
    const held: Promise<string>[] = [];
    for (const [key, { promise }] of arrived.entries()) {
      held.push(outcome(backend, vote(key, 2, 3, 'a')));
      await promise;
    }
    return held;
  }

  const later = [vote(2, 2, 3, 'a'), vote(3, 2, 3, 'a'), vote(4, 2, 3, 'a')];

  it('writes gather, share one request when these are answered, however few they are', async () => {
    const backend = await openWarm();
    const slow = Promise.withResolvers<void>();
    const held = await twoHeld(backend, slow.promise);
    const gathered = together(backend, later);
    slow.resolve();
    expect(await Promise.all(held)).toEqual(['safe', 'safe']);
    expect(await gathered).toEqual(['safe', 'safe', 'safe']);
    expect(operations()).toEqual(['PutItem', 'PutItem', 'BatchExecuteStatement']);
  });

  it('writes do not wait for an answer that does not come', async () => {
    const backend = await openWarm();
    const slow = Promise.withResolvers<void>();
    const held = await twoHeld(backend, slow.promise);
    expect(await together(backend, later)).toEqual(['safe', 'safe', 'safe']);
    slow.resolve();
    expect(await Promise.all(held)).toEqual(['safe', 'safe']);
  });
});
