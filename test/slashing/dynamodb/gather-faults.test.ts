// Shared requests whose answers are lost, and tables of which 30 % of all requests fail. A shared request is believed
// about what it applied, and about nothing else.

import { describe, expect, it } from 'vitest';
import type { SlashableMessage } from '../../../signer/slashing/types.ts';
import { FAULTS, type FaultName, faultTimes, randomFaults } from '../../support/fault-proxy.ts';
import { vote } from '../../support/slashing.ts';
import { answered, outcome } from '../../support/slashing-dynamodb-world.ts';
import { areSlashable } from '../../support/slashing-model.ts';
import {
  all,
  KEYS,
  ONE_ATTEMPT,
  observe,
  open,
  openImpatient,
  openWarm,
  operations,
  storedTarget,
  together,
  votes,
  warmed,
  world,
} from './gathered-writes.ts';

describe('a shared request whose answer is lost', () => {
  const lost: FaultName[] = ['dropAnswer', 'resetAfter', 'internalErrorAfterApplying'];
  it.each(lost)('(%s): the repeated one finds its own records, and only those may be signed again', async (name) => {
    const backend = await openWarm();
    observe(faultTimes(1, FAULTS[name], 'BatchExecuteStatement') as never);
    expect(await together(backend, votes(3, 'a'))).toEqual(all('repeat'));
    expect(await together(backend, votes(3, 'b'))).toEqual(all('double_vote'));
    expect(await together(backend, votes(4, 'b'))).toEqual(all('safe'));
  });

  it('while another signer wrote the same target of one key: refused for that key', async () => {
    const backend = await openWarm();
    const other = await open({ table: world.tableName, endpoint: world.tables.server.endpoint });
    expect(await outcome(other, vote(7, 2, 3, 'theirs'))).toBe('safe');
    observe(faultTimes(1, FAULTS.dropAnswer, 'BatchExecuteStatement') as never);
    const expected = all('repeat');
    expected[7] = 'double_vote';
    expect(await together(backend, votes(3, 'ours'))).toEqual(expected);
  });

  it('for good: all get 503, and later only the same messages may be signed there', async () => {
    const backend = await warmed(await openImpatient());
    const { faults } = world.proxy;
    observe(({ operation }) => (operation === 'BatchExecuteStatement' ? FAULTS.hang : undefined));
    do expect(await together(backend, votes(3, 'a'))).toEqual(all('503 slashing_unavailable'));
    while (world.proxy.faults === faults);
    const stored = () => Promise.all(Array.from({ length: KEYS }, (_, key) => storedTarget(key)));
    await expect.poll(stored).toEqual(all('3'));
    observe();
    const togetherAtLast = (messages: readonly SlashableMessage[]) =>
      Promise.all(messages.map((message) => answered(backend, message)));
    expect(await togetherAtLast(votes(3, 'b'))).toEqual(all('double_vote'));
    expect(await togetherAtLast(votes(3, 'a'))).toEqual(all('repeat'));
    expect(await togetherAtLast(votes(4, 'b'))).toEqual(Array(KEYS).fill(expect.stringMatching(/^(?:safe|repeat)$/)));
  });

  it.each(['throttled', 'unavailable', 'resetBefore', 'provisionedThroughputExceeded'] as const)(
    'that %s without end is 503 for all and never 412, and records nothing',
    async (name) => {
      const backend = await openWarm(ONE_ATTEMPT);
      observe(({ operation }) => (operation === 'BatchExecuteStatement' ? FAULTS[name] : undefined));
      expect(await together(backend, votes(3, 'a'))).toEqual(all('503 slashing_unavailable'));
      expect(operations()).toEqual(['BatchExecuteStatement']);
      observe();
      expect(await together(backend, votes(3, 'b'))).toEqual(all('safe'));
    },
  );

  it('that is throttled once is overcome without the callers noticing', async () => {
    const backend = await openWarm();
    observe(faultTimes(1, FAULTS.throttled, 'BatchExecuteStatement') as never);
    expect(await together(backend, votes(3, 'a'))).toEqual(all('safe'));
  });
});

describe('while 30 % of all requests fail', () => {
  const SIGNERS = 3;
  const disturbances = [
    FAULTS.dropAnswer,
    FAULTS.resetBefore,
    FAULTS.resetAfter,
    FAULTS.internalError,
    FAULTS.internalErrorAfterApplying,
    FAULTS.throttled,
  ] as const;

  it.each([1, 2, 3])(
    'signers that sign for many keys at once never release a slashable pair (seed %d)',
    async (seed) => {
      const signers = [await open()];
      while (signers.length < SIGNERS) signers.push(await open({ table: world.tableName }));
      world.proxy.setRule(randomFaults(seed, 0.3, disturbances));
      const released: SlashableMessage[] = [];
      for (let target = 2; target < 22; target++) {
        const rounds = signers.map(async (signer, turn) => {
          const messages = Array.from({ length: KEYS }, (_, key) =>
            vote(key, target - 1 - ((key + turn) % 2), target + ((key + turn) % 3), `${turn} ${target}`),
          );
          const outcomes = await together(signer, messages);
          released.push(...messages.filter((_message, at) => ['safe', 'repeat'].includes(outcomes[at] ?? '')));
          const refusals = outcomes.filter((name) => name.startsWith('503'));
          expect(refusals.every((name) => name === '503 slashing_unavailable')).toBe(true);
        });
        await Promise.all(rounds);
      }
      expect(world.proxy.faults).toBeGreaterThan(20);
      expect(released.length).toBeGreaterThan(KEYS * 5);
      const pairs = released.flatMap((one, index) => released.slice(index + 1).map((other) => [one, other] as const));
      expect(pairs.filter(([one, other]) => areSlashable(one, other))).toEqual([]);
    },
  );
});
