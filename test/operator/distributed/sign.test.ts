// What the combiner answers to a validator client while participants sign, are away, are slow or refuse.

import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import {
  answering,
  away,
  type Behaviour,
  type DistributedKey,
  distribute,
  expected,
  type FakeParticipant,
  lastAfter,
  never,
  type RunningCombiner,
  refusing,
  startCombiner,
  startParticipants,
  together,
  whenSigning,
} from './fake-participants.ts';

const MESSAGE = { type: 'ATTESTATION', attestation: { slot: '1' } };

describe('a signature', () => {
  it.each([
    [2, 2],
    [2, 3],
    [3, 4],
    [5, 7],
  ])('of %i of %i is that of the whole key, whichever participants answer', async (threshold, count) => {
    const key = distribute(threshold, count);
    const participants = await startParticipants([key]);
    const combiner = await startCombiner(participants);
    for (const [place, those] of subsets(participants, threshold).entries()) {
      for (const participant of participants)
        participant.behave = whenSigning((asked, response, of) => !those.includes(of) && away(asked, response, of));
      const message = { ...MESSAGE, place };
      expect(await combiner.sign(key, message)).toMatchObject({ status: 200, text: expected(key, message) });
    }
  });

  it('is answered as text, or as JSON to a client that accepts it', async () => {
    const key = distribute(2, 3);
    const combiner = await startCombiner(await startParticipants([key]));
    const path = `/api/v1/eth2/sign/${key.publicKey}`;
    expect(await combiner.sign(key, MESSAGE)).toMatchObject({ type: 'text/plain; charset=utf-8' });
    expect(await combiner.post(path, MESSAGE, { accept: 'application/json' })).toEqual({
      ...{ status: 200, type: 'application/json' },
      text: JSON.stringify({ signature: expected(key, MESSAGE) }),
    });
  });

  it('needs the same bytes of each participant, with the token of that participant', async () => {
    const key = distribute(3, 4);
    const participants = await startParticipants([key]);
    const combiner = await startCombiner(participants);
    await combiner.sign(key, MESSAGE);
    const votes = participants.flatMap((participant) => participant.votes.map((vote) => ({ participant, vote })));
    expect(votes.length).toBeGreaterThanOrEqual(3);
    for (const { participant, vote } of votes) {
      expect(vote).toMatchObject({
        body: JSON.stringify(MESSAGE),
        path: `/api/v1/eth2/distributed/sign/${key.publicKey}`,
      });
      expect(vote.headers.authorization).toBe(`Bearer ${participant.token}`);
    }
    for (const { token } of participants) expect(combiner.lines.join()).not.toContain(token);
  });

  it('does not wait for a participant that is frozen: one more than needed is asked at once', async () => {
    const key = distribute(3, 5);
    const participants = await startParticipants([key]);
    const combiner = await startCombiner(participants);
    (participants[0] as FakeParticipant).behave = never;
    for (const slot of ['1', '2', '3', '4'])
      expect(await combiner.sign(key, { ...MESSAGE, slot })).toMatchObject({ status: 200 });
  });

  it('is made with the others, too, when it takes longer than usual', async () => {
    const key = distribute(3, 5);
    const participants = await startParticipants([key]);
    const combiner = await startCombiner(participants);
    const hanging = new Set<FakeParticipant>();
    for (const participant of participants)
      participant.behave = whenSigning((_, __, of) => hanging.size < 2 && hanging.add(of) !== undefined);
    expect(await combiner.sign(key, MESSAGE)).toMatchObject({ status: 200, text: expected(key, MESSAGE) });
    expect(hanging.size).toBe(2);
    expect(participants.filter(({ votes }) => votes.length === 1)).toHaveLength(5);
  });

  it('goes on after the participants have closed their idle connections', async () => {
    const key = distribute(3, 3);
    const participants = await startParticipants([key]);
    const combiner = await startCombiner(participants);
    await combiner.sign(key, MESSAGE);
    for (const participant of participants) {
      await participant.stop();
      await participant.start();
    }
    await expect.poll(() => combiner.sign(key, MESSAGE)).toMatchObject({ status: 200, text: expected(key, MESSAGE) });
  });
});

describe('many signatures', () => {
  it('of one root are verified together', async () => {
    const keys = Array.from({ length: 200 }, (_, at) => distribute(2, 3, `key ${at}`));
    const participants = await startParticipants(keys);
    for (const participant of participants) together(participant, keys.length);
    const combiner = await startCombiner(participants, { maxConnections: 256 });
    const replies = await Promise.all(keys.map((key) => combiner.sign(key, MESSAGE)));
    expect(replies.map(({ text }) => text)).toEqual(keys.map((key) => expected(key, MESSAGE)));
    expect(await combiner.metric('signatures_total')).toBe(200);
    expect(await combiner.metric('checks_total')).toBeLessThan(40);
  });
});

describe('participants that refuse', () => {
  const refuses = (status: number, reason: string): Behaviour =>
    whenSigning((_, response) => {
      refusing(response, status, reason);
      return true;
    });

  it.each<[string, readonly (readonly [number, string] | undefined)[], number, string | undefined]>([
    ['one of four: the others sign', [[412, 'double_vote']], 200, undefined],
    [
      'two of four',
      [
        [412, 'double_vote'],
        [412, 'double_vote'],
      ],
      412,
      'double_vote',
    ],
    [
      'two for two reasons: 412',
      [
        [403, 'denied'],
        [412, 'double_vote'],
      ],
      412,
      'double_vote',
    ],
    [
      'most for another reason',
      [
        [403, 'denied'],
        [403, 'denied'],
        [412, 'double_vote'],
      ],
      403,
      'denied',
    ],
    [
      'a fault of two is no refusal',
      [
        [503, 'sealed'],
        [500, 'internal_error'],
      ],
      503,
      'participants_unreachable',
    ],
    [
      'a fault and a refusal',
      [
        [503, 'sealed'],
        [412, 'double_vote'],
      ],
      503,
      'participants_unreachable',
    ],
    [
      'all of them',
      [
        [400, 'malformed_body'],
        [400, 'malformed_body'],
        [400, 'malformed_body'],
        [400, 'malformed_body'],
      ],
      400,
      'malformed_body',
    ],
  ])('%s', async (_, refusals, status, reason) => {
    const key = refusals.length === 3 ? distribute(5, 7) : distribute(3, 4);
    const participants = await startParticipants([key]);
    for (const [place, refusal] of refusals.entries())
      if (refusal !== undefined) (participants[place] as FakeParticipant).behave = refuses(...refusal);
    // Those that sign come when the refusals are there.
    const refusers = participants.slice(0, refusals.length);
    for (const participant of participants.slice(refusals.length)) lastAfter(participant, refusers);
    const reply = await (await startCombiner(participants)).sign(key, MESSAGE);
    expect(reply.status).toBe(status);
    if (reason !== undefined) expect(JSON.parse(reply.text)).toMatchObject({ code: status, reason });
    else expect(reply.text).toBe(expected(key, MESSAGE));
    if (status === 412) expect(JSON.parse(reply.text)).toMatchObject({ request_id: 'of the participant' });
  });
});

describe('a batch', () => {
  const sign = (combiner: RunningCombiner, identifiers: readonly unknown[]) =>
    combiner.post('/api/v1/eth2/sign', { identifiers, signing_request: MESSAGE });

  it('is one request to each participant, and answered in order, key by key', async () => {
    const keys = Array.from({ length: 20 }, (_, at) => distribute(3, 4, `key ${at}`));
    const participants = await startParticipants(keys);
    const combiner = await startCombiner(participants);
    const unknown = distribute(3, 4, 'elsewhere').publicKey;
    const identifiers = [...keys.map(({ publicKey }) => publicKey), unknown];
    const reply = await sign(combiner, identifiers);
    expect(JSON.parse(reply.text)).toEqual([
      ...keys.map((key) => ({ identifier: key.publicKey, signature: expected(key, MESSAGE) })),
      { identifier: unknown, error: { code: 404, reason: 'unknown_key', message: expect.any(String) } },
    ]);
    for (const { votes } of participants) expect(votes).toHaveLength(1);
    expect(await combiner.metric('checks_total')).toBeLessThan(10);
  });

  it('has a signature for each key that enough sign, and a refusal for one that too few sign', async () => {
    const keys = [0, 1, 2].map((at) => distribute(3, 5, `key ${at}`)) as [
      DistributedKey,
      DistributedKey,
      DistributedKey,
    ];
    const participants = await startParticipants(keys);
    const refuse = (of: FakeParticipant, refused: DistributedKey): void => {
      of.behave = whenSigning(({ body }, response) => {
        const { identifiers } = JSON.parse(body) as { identifiers: readonly string[] };
        const error = { code: 412, reason: 'double_vote', message: 'refused' };
        const signed = identifiers.map((identifier) => ({
          identifier,
          ...(identifier === refused.publicKey ? { error } : of.sign(identifier, MESSAGE)),
        }));
        answering(response, 200, signed);
        return true;
      });
    };
    const [one, two, three] = participants as [FakeParticipant, FakeParticipant, FakeParticipant];
    refuse(one, keys[0]);
    refuse(two, keys[1]);
    refuse(three, keys[1]);
    (participants[3] as FakeParticipant).behave = whenSigning((_, response) => {
      refusing(response, 412, 'double_vote');
      return true;
    });
    const reply = await sign(
      await startCombiner(participants),
      keys.map(({ publicKey }) => publicKey),
    );
    expect(JSON.parse(reply.text)).toEqual([
      { identifier: keys[0].publicKey, signature: expected(keys[0], MESSAGE) },
      { identifier: keys[1].publicKey, error: { code: 412, reason: 'double_vote', message: 'refused' } },
      { identifier: keys[2].publicKey, signature: expected(keys[2], MESSAGE) },
    ]);
  });

  it('that every participant refuses as a whole is refused so; one that is none is refused at once', async () => {
    const key = distribute(3, 4);
    const participants = await startParticipants([key]);
    for (const participant of participants)
      participant.behave = whenSigning((_, response) => {
        refusing(response, 400, 'unsupported_operation');
        return true;
      });
    const combiner = await startCombiner(participants, { maxBodyBytes: 1_000_000 });
    expect(await sign(combiner, [key.publicKey])).toMatchObject({
      status: 400,
      text: expect.stringContaining('unsupported_operation'),
    });
    for (const identifiers of [
      [],
      [{ toString: 1 }],
      [[key.publicKey]],
      [key.publicKey, key.publicKey],
      ['0xab'],
      Array.from({ length: 2049 }, (_, at) => `0x${String(at).padStart(96, '0')}`),
    ])
      expect(await sign(combiner, identifiers)).toMatchObject({ status: 400 });
    expect(await combiner.post('/api/v1/eth2/sign', null)).toMatchObject({ status: 400 });
  });
});

describe('a client', () => {
  it('that goes away ends what was asked for it', async () => {
    const key = distribute(3, 4);
    const participants = await startParticipants([key]);
    const closed = participants.map((participant) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      participant.behave = whenSigning((_, response) => response.once('close', resolve) !== undefined);
      return promise;
    });
    const combiner = await startCombiner(participants);
    const outgoing = request(`${combiner.url}/api/v1/eth2/sign/${key.publicKey}`, { method: 'POST' });
    outgoing.on('error', () => undefined);
    outgoing.end(JSON.stringify(MESSAGE));
    await expect.poll(() => participants.every(({ votes }) => votes.length === 1)).toBe(true);
    outgoing.destroy();
    await Promise.all(closed);
  });

  it('is answered when the combiner is told to stop meanwhile, and nothing new is taken', async () => {
    const key = distribute(2, 2);
    const participants = await startParticipants([key]);
    const { promise: mayAnswer, resolve: answer } = Promise.withResolvers<boolean>();
    for (const participant of participants) participant.behave = whenSigning(() => mayAnswer);
    const combiner = await startCombiner(participants);
    const reply = combiner.sign(key, MESSAGE);
    await expect.poll(() => participants.every(({ votes }) => votes.length === 1)).toBe(true);
    combiner.stop();
    await expect.poll(() => combiner.lines.join()).toContain('stopping');
    await expect(combiner.get('/upcheck')).rejects.toThrow('fetch failed');
    answer(false);
    expect(await reply).toMatchObject({ status: 200, text: expected(key, MESSAGE) });
    expect(await combiner.ended).toBeUndefined();
  });

  it('that is a web page, or asks for something else, is refused', async () => {
    const key = distribute(2, 2);
    const participants = await startParticipants([key]);
    const combiner = await startCombiner(participants);
    const path = `/api/v1/eth2/sign/${key.publicKey}`;
    for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }])
      expect(await combiner.post(path, MESSAGE, headers)).toMatchObject({ status: 403 });
    expect(await combiner.post(path, 'x'.repeat(100_001))).toMatchObject({ status: 413 });
    expect(await combiner.post('/api/v1/eth2/sign/0xab', MESSAGE)).toMatchObject({ status: 400 });
    expect(await combiner.post('/reload', {})).toMatchObject({ status: 404 });
    expect(await combiner.get('/api/v1/chamber/status')).toMatchObject({ status: 404 });
    expect(await combiner.get('/upcheck')).toMatchObject({ status: 200, text: 'OK' });
    for (const { votes } of participants) expect(votes).toHaveLength(0);
  });
});

function subsets<T>(of: readonly T[], size: number): readonly (readonly T[])[] {
  if (size === 0) return [[]];
  return of.flatMap((first, at) => subsets(of.slice(at + 1), size - 1).map((rest) => [first, ...rest]));
}
