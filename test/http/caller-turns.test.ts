// Whose request goes on after its head, in each turn of the event loop: with a loop that the test turns, and in the
// application, where all requests of one test come in one turn.

import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../common/observe/clock.ts';
import { createStaticAuthenticator, type StaticAuthenticator } from '../../signer/auth/static.ts';
import {
  type CallerTurns,
  callerTurns,
  MAX_PER_TURN,
  MAX_WAITING,
  MAX_WAITING_OF_CALLER,
} from '../../signer/http/caller-turns.ts';
import { mountReload } from '../../signer/http/routes/reload.ts';
import { keylessApp } from '../support/auth-app.ts';
import { recordingLog } from '../support/recording-log.ts';

const TWO_EPOCHS_MS = 2 * 32 * 12_000;
const MANY = 5 * MAX_PER_TURN;

describe('turns', () => {
  let turns: CallerTurns;
  let planned: (() => void)[];
  let now: number;
  let went: string[];

  beforeEach(() => {
    planned = [];
    now = 0;
    went = [];
    turns = callerTurns({ nextTurn: (work) => void planned.push(work), monotonic: () => now });
  });

  const nextTurn = (): void => {
    for (const work of planned.splice(0)) work();
  };
  const ask = (caller: string, count = 1): number => {
    let places = 0;
    for (let each = 0; each < count; each++) if (turns.takeTurn(caller, () => void went.push(caller))) places += 1;
    return places;
  };
  const share = (): void => {
    ask('one');
    ask('other');
    while (planned.length > 0) nextTurn();
    went = [];
  };

  it('are not taken by one caller alone: all of its requests go on at once', () => {
    expect(ask('one', 10 * MAX_WAITING)).toBe(10 * MAX_WAITING);
    expect(went).toHaveLength(10 * MAX_WAITING);
    expect(planned).toEqual([]);
  });

  it('let a few go on at once, the others in later turns, until none waits', () => {
    share();
    expect(ask('one', MANY)).toBe(MANY);
    for (let turn = 1; turn <= MANY / MAX_PER_TURN; turn++) {
      expect(went).toHaveLength(turn * MAX_PER_TURN);
      expect(turns.waiting).toBe(MANY - turn * MAX_PER_TURN);
      nextTurn();
    }
    expect(went).toHaveLength(MANY);
    nextTurn();
    expect(planned).toEqual([]);
  });

  it('let the first request of another caller go on at once, whoever waits', () => {
    share();
    ask('one', MANY);
    went = [];
    ask('other');
    expect(went).toEqual(['other']);
  });

  it('go round the callers that wait', () => {
    share();
    ask('one', MANY);
    ask('other', 3);
    went = [];
    nextTurn();
    expect(went.slice(0, 5)).toEqual(['one', 'other', 'one', 'other', 'one']);
    expect(went).toHaveLength(MAX_PER_TURN);
  });

  it('keep the order of one caller', () => {
    share();
    const order: number[] = [];
    for (let each = 0; each < MANY; each++) turns.takeTurn('one', () => void order.push(each));
    while (turns.waiting > 0) nextTurn();
    expect(order).toEqual(Array.from({ length: MANY }, (_, each) => each));
  });

  it('end two epochs after the last request of another caller', () => {
    share();
    now += TWO_EPOCHS_MS;
    ask('one', MANY);
    expect(went).toHaveLength(MANY);
  });

  it('have so many places for one caller, and one for each other when all are taken', () => {
    share();
    expect(ask('one', MAX_WAITING)).toBe(MAX_PER_TURN + MAX_WAITING_OF_CALLER);
    expect(ask('other', MAX_WAITING)).toBe(1 + MAX_WAITING_OF_CALLER);
    expect(turns.waiting).toBe(MAX_WAITING);
    expect(ask('third', 5)).toBe(2);
    expect(ask('one')).toBe(0);
    went = [];
    while (turns.waiting > 0) nextTurn();
    expect(went).toHaveLength(MAX_WAITING + 1);
  });

  it('tell who waited that it did', () => {
    share();
    const waited: boolean[] = [];
    for (let each = 0; each <= MAX_PER_TURN; each++) turns.takeTurn('one', (hasWaited) => void waited.push(hasWaited));
    nextTurn();
    expect(waited).toEqual([...Array.from({ length: MAX_PER_TURN }, () => false), true]);
  });
});

describe('the application', () => {
  const FLOOD = 'sr_client_TEST_TOKEN_of_a_flood_000000000000001';
  const OTHER = 'sr_client_TEST_TOKEN_of_the_other_client_000001';
  const NEW = 'sr_client_TEST_TOKEN_that_comes_later_000000001';
  const policies = [{ name: 'look', rules: [{ effect: 'allow' as const, scopes: ['reload' as const] }] }];
  const tokensOf = (...secrets: string[]) => ({
    policies,
    anonymousPolicies: [],
    tokens: secrets.map((secret) => ({ secret: Buffer.from(secret), policies: ['look'], boundCidrs: [] })),
  });
  let app: FastifyInstance;
  let authenticator: StaticAuthenticator;

  beforeEach(async () => {
    authenticator = createStaticAuthenticator(tokensOf(FLOOD, OTHER));
    app = await keylessApp({
      authenticator,
      clock: systemClock,
      log: recordingLog(),
      mountOwn: (mounted) => mountReload(mounted, { status: { status: 'idle' }, begin: () => true }),
    });
    await Promise.all([look(FLOOD), look(OTHER)]);
  });
  afterEach(() => app.close());

  async function look(token: string): Promise<number> {
    const headers = { authorization: `Bearer ${token}` };
    return (await app.inject({ url: '/reload', headers })).statusCode;
  }

  it('answers a request of another token before most of what one token asked earlier', async () => {
    const answered: string[] = [];
    const note = (token: string) => look(token).then((status) => void answered.push(`${token} ${status}`));
    await Promise.all([...Array.from({ length: MANY }, () => note(FLOOD)), note(OTHER)]);
    expect(answered).toHaveLength(MANY + 1);
    expect(new Set(answered)).toEqual(new Set([`${FLOOD} 200`, `${OTHER} 200`]));
    expect(answered.indexOf(`${OTHER} 200`)).toBeLessThanOrEqual(2 * MAX_PER_TURN);
  });

  it('looks again at the credential of a request that waited', async () => {
    const asked = Array.from({ length: MANY }, () => look(FLOOD));
    while (!(await isGone(asked[0]))) await new Promise(setImmediate);
    authenticator.replace(tokensOf(NEW));
    const statuses = await Promise.all(asked);
    expect(statuses[0]).toBe(200);
    expect(statuses.at(-1)).toBe(403);
  });

  function isGone(answer: Promise<number> | undefined): Promise<boolean> {
    return Promise.race([Promise.resolve(answer).then(() => true), Promise.resolve().then(() => false)]);
  }
});
