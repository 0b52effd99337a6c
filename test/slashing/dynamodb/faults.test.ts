// The DynamoDB backend when the network and the service misbehave: nothing slashable is ever released, what was not
// refused by the data is never called refused, and when the trouble is over it works again.

import { describe, expect, it, vi } from 'vitest';
import { NO_MARKS } from '../../../signer/slashing/history/head.ts';
import type { SlashableMessage, SlashingBackend } from '../../../signer/slashing/types.ts';
import { FAULTS, type FaultName, faultTimes, randomFaults } from '../../support/fault-proxy.ts';
import { LONGEST_WAIT_MS } from '../../support/patience.ts';
import { sized } from '../../support/scale.ts';
import {
  block,
  checkOne,
  collect,
  history,
  kindOf,
  publicKeyOf,
  stream,
  verdictName,
  vote,
} from '../../support/slashing.ts';
import { type OpenOptions, startSlashingTables } from '../../support/slashing-dynamodb.ts';
import { answered, outcome, SlashingTablesBehindProxy, VOTE } from '../../support/slashing-dynamodb-world.ts';
import { areSlashable, randomMessages } from '../../support/slashing-model.ts';

const world = new SlashingTablesBehindProxy();
const { open, openImpatient } = world;

const ONE_ATTEMPT: OpenOptions = { client: { maxAttempts: 1 } };
/** `repeat` of a message that was asked again. */
const SIGNED = /^(?:safe|repeat)$/;

describe('an answer that is lost', () => {
  const lost: FaultName[] = ['dropAnswer', 'resetAfter', 'internalErrorAfterApplying'];
  it.each(lost)(
    'after the write was applied (%s): the repeated write finds its own record and is safe',
    async (name) => {
      const backend = await open();
      expect(await outcome(backend, vote(1, 1, 2, 'a'))).toBe('safe');
      world.proxy.setRule(faultTimes(1, FAULTS[name], 'PutItem'));
      expect(kindOf(await outcome(backend, vote(1, 2, 3, 'b')))).toBe('repeat');
      expect(await outcome(backend, vote(1, 2, 3, 'c'))).toBe('double_vote');
      // The first record of a kind is a transaction, which the service applies once, however often it is sent.
      world.proxy.setRule(faultTimes(1, FAULTS[name], 'TransactWriteItems'));
      expect(['safe', 'repeat']).toContain(await outcome(backend, block(1, 5, 'first of its kind')));
      expect(world.proxy.faults).toBeGreaterThanOrEqual(2);
      expect(await outcome(backend, block(1, 5, 'rival'))).toBe('double_block');
    },
  );

  it('another signer that wrote the same target in between is no record of ours: refused', async () => {
    const backend = await open();
    const other = await open({ table: world.tableName, endpoint: world.tables.server.endpoint });
    expect(await outcome(backend, vote(1, 1, 2, 'a'))).toBe('safe');
    expect(await outcome(other, vote(1, 2, 3, 'theirs'))).toBe('safe');
    world.proxy.setRule(faultTimes(1, FAULTS.resetBefore, 'PutItem'));
    expect(await outcome(backend, vote(1, 2, 3, 'ours'))).toBe('double_vote');
  });

  it.each([
    ['of a key that was signed for', 'PutItem'],
    ['of a key that is new', 'TransactWriteItems'],
  ])('for good (%s): the caller gets 503, and later only the same message may be signed there', async (_of, write) => {
    const backend = await openImpatient();
    if (write === 'PutItem') expect(await answered(backend, vote(1, 1, 2, 'earlier'))).toMatch(SIGNED);
    const { faults } = world.proxy;
    world.proxy.setRule(({ operation }) => (operation === write ? FAULTS.hang : undefined));
    // On a busy machine it may give up before it gets as far as the write.
    do expect(await outcome(backend, vote(1, 2, 3, 'a'))).toBe('503 slashing_unavailable');
    while (world.proxy.faults === faults);
    await expect.poll(async () => (await world.tables.item(world.tableName, VOTE))?.['target_epoch']?.N).toBe('3');
    world.proxy.setRule(undefined);
    expect(await answered(backend, vote(1, 2, 3, 'b'))).toBe('double_vote');
    expect(await answered(backend, vote(1, 2, 3, 'a'))).toBe('repeat');
    expect(await answered(backend, vote(1, 3, 4, 'b'))).toMatch(SIGNED);
  });
});

describe('a fault is 503, never 412', () => {
  async function expectUnavailable(backend: SlashingBackend): Promise<void> {
    const checks = [block(1, 11, 'b'), block(1, 10, 'other'), block(2, 1, 'new key')];
    const results = await Promise.allSettled<unknown>([
      ...checks.map((message) => checkOne(backend, message)),
      backend.checkHealth(new AbortController().signal),
      collect(backend.exportHistories()),
      backend.status(),
      backend.importHistories(stream([history(9, [[1, null]], [])])),
    ]);
    for (const result of results) {
      expect(result).toMatchObject({ status: 'rejected', reason: { reason: 'slashing_unavailable' } });
    }
  }

  const answering = (Object.keys(FAULTS) as FaultName[]).filter((name) => name !== 'hang');
  it.each(answering)('%s without end', async (name) => {
    const backend = await open(ONE_ATTEMPT);
    expect(await outcome(backend, block(1, 10, 'a'))).toBe('safe');
    world.proxy.setRule(() => FAULTS[name]);
    await expectUnavailable(backend);
    world.proxy.setRule(undefined);
    await backend.checkHealth(new AbortController().signal);
    expect(await outcome(backend, block(1, 12, 'c'))).toBe('safe');
  });

  it('hang without end', async () => {
    const backend = await openImpatient();
    expect(await answered(backend, block(1, 10, 'a'))).toMatch(SIGNED);
    world.proxy.setRule(() => FAULTS.hang);
    await expectUnavailable(backend);
    world.proxy.setRule(undefined);
    await vi.waitFor(() => backend.checkHealth(new AbortController().signal), LONGEST_WAIT_MS);
    expect(await answered(backend, block(1, 12, 'c'))).toMatch(SIGNED);
  });

  it.each(['provisionedThroughputExceeded', 'throttled', 'unavailable', 'resetBefore'] as const)(
    '%s once is overcome without the caller noticing',
    async (name) => {
      const backend = await open();
      world.proxy.setRule(faultTimes(1, FAULTS[name], 'PutItem'));
      expect(await outcome(backend, block(1, 10, 'a'))).toBe('safe');
    },
  );

  it('one message of a batch that fails fails the batch, and the others can be asked again', async () => {
    const backend = await open(ONE_ATTEMPT);
    world.proxy.setRule(({ body }) => (body.includes(publicKeyOf(2)) ? FAULTS.throttled : undefined));
    const batch = [block(1, 1, 'a'), block(2, 1, 'a'), block(3, 1, 'a')];
    const floors = batch.map(() => NO_MARKS);
    await expect(backend.checkAndRecord(batch, floors)).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    world.proxy.setRule(undefined);
    const verdicts = await backend.checkAndRecord(batch, floors);
    expect(verdicts.map(verdictName)).toEqual(['repeat', 'safe', 'repeat']);
  });

  it('a health check ends when its caller gives up', async () => {
    const backend = await open();
    world.proxy.setRule(() => FAULTS.hang);
    const caller = new AbortController();
    const health = backend.checkHealth(caller.signal);
    caller.abort();
    await expect(health).rejects.toMatchObject({ reason: 'slashing_unavailable' });
  });
});

describe('while 30 % of all requests fail', () => {
  const SIGNERS = 3;
  const ROUNDS = sized(150, 400);
  const disturbances = [
    FAULTS.dropAnswer,
    FAULTS.resetBefore,
    FAULTS.resetAfter,
    FAULTS.internalError,
    FAULTS.internalErrorAfterApplying,
    FAULTS.transactionConflict,
    { kind: 'delay', milliseconds: 2 },
  ] as const;

  it.each([1, 2, 3])('%# several signers never release a slashable pair (seed %d)', async (seed) => {
    const signers = [await open()];
    while (signers.length < SIGNERS) signers.push(await open({ table: world.tableName }));
    world.proxy.setRule(randomFaults(seed, 0.3, disturbances));
    const released: SlashableMessage[] = [];
    const messages = randomMessages({ count: ROUNDS, keys: 3, span: 60, seed });
    await Promise.all(
      signers.map(async (signer, turn) => {
        for (const message of messages.filter((_message, index) => index % SIGNERS === turn)) {
          const verdict = await checkOne(signer, message).catch(() => undefined);
          if (verdict?.kind === 'safe') released.push(message);
        }
      }),
    );
    expect(world.proxy.faults).toBeGreaterThan(ROUNDS / 10);
    expect(released.length).toBeGreaterThan(10);
    const pairs = released.flatMap((one, index) => released.slice(index + 1).map((other) => [one, other] as const));
    expect(pairs.filter(([one, other]) => areSlashable(one, other))).toEqual([]);
  });

  it('rising messages are all signed in the end: 503 until they pass, never 412', async () => {
    const backend = await open();
    world.proxy.setRule(randomFaults(4, 0.3, disturbances));
    for (let epoch = 1; epoch <= 60; epoch++) {
      const message = vote(1, epoch - 1, epoch, epoch);
      const outcomes: string[] = [];
      do outcomes.push(await outcome(backend, message));
      while (outcomes.at(-1)?.startsWith('503') && outcomes.length < 20);
      expect(['safe', 'repeat']).toContain(outcomes.at(-1));
      expect(outcomes.slice(0, -1).every((one) => one === '503 slashing_unavailable')).toBe(true);
    }
  });
});

describe('an import that is disturbed', () => {
  const large = Array.from({ length: 150 }, (_, key) => history(key, [[10, 'a']], [[1, 2, 'a']]));

  it('by a lost answer is merged all the same', async () => {
    const backend = await open();
    world.proxy.setRule(faultTimes(1, FAULTS.dropAnswer, 'TransactWriteItems'));
    await backend.importHistories(stream(large));
    expect(await collect(backend.exportHistories())).toHaveLength(150);
  });

  it('in its second transaction has only refused more, and can be repeated', async () => {
    const backend = await open(ONE_ATTEMPT);
    let transactions = 0;
    world.proxy.setRule(({ operation }) =>
      operation === 'TransactWriteItems' && transactions++ === 1 ? FAULTS.resetBefore : undefined,
    );
    await expect(backend.importHistories(stream(large))).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    expect(await collect(backend.exportHistories())).toHaveLength(50);
    await backend.importHistories(stream(large));
    const exported = await collect(backend.exportHistories());
    expect(exported).toHaveLength(150);
    expect(exported[0]).toMatchObject({ blocks: [{ slot: 10 }], attestations: [{ sourceEpoch: 1, targetEpoch: 2 }] });
  });

  it('by a signer that writes between its read and its write: both prevail', async () => {
    const backend = await open();
    const signer = await open({ table: world.tableName, endpoint: world.tables.server.endpoint });
    let epoch = 0;
    world.proxy.setRule(async ({ operation }) => {
      if (operation !== 'TransactWriteItems' || epoch === 3) return undefined;
      epoch += 1;
      expect(await outcome(signer, vote(1, 2, 10 + epoch, epoch))).toBe('safe');
      return undefined;
    });
    await backend.importHistories(stream([history(1, [[7, null]], [[3, 5, null]])]));
    expect(epoch).toBe(3);
    expect(await outcome(backend, vote(1, 3, 13, 'rival'))).toBe('double_vote');
    expect(await outcome(signer, vote(1, 2, 14, 'below the imported source'))).toBe('source_below_low_water_mark');
    expect(await outcome(backend, block(1, 7, 'x'))).toBe('double_block');
    expect(await outcome(backend, vote(1, 3, 14, 'y'))).toBe('safe');
  });
});

it('a server that stops makes the backend unavailable, and it recovers when the server is back', async () => {
  const own = await startSlashingTables({ persistent: true });
  try {
    const backend = await own.open(await own.create(), ONE_ATTEMPT);
    world.backends.push(backend);
    expect(await outcome(backend, block(1, 10, 'a'))).toBe('safe');
    await own.server.stop();
    expect(await outcome(backend, block(1, 11, 'b'))).toBe('503 slashing_unavailable');
    const { signal } = new AbortController();
    await expect(backend.checkHealth(signal)).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    await own.server.start();
    await backend.checkHealth(signal);
    expect(await outcome(backend, block(1, 10, 'other'))).toBe('double_block');
    expect(await outcome(backend, block(1, 11, 'b'))).toBe('safe');
  } finally {
    await own.close();
  }
});
