// Which keys the combiner serves, by what participants list: also while some are away, and when one lies about shares.

import { describe, expect, it } from 'vitest';
import {
  answering,
  distribute,
  expected,
  type FakeParticipant,
  lastAfter,
  startCombiner,
  startParticipants,
} from './fake-participants.ts';

const MESSAGE = { type: 'RANDAO_REVEAL' };
const LIST = '/api/v1/eth2/publicKeys';
const ACCOUNTS = '/api/v1/eth2/distributed/accounts';

describe('the list of keys', () => {
  it('is held while participants are away that may hold more, whoever starts first; so is a signature', async () => {
    const keys = [distribute(3, 4, 'a'), distribute(3, 4, 'b')] as const;
    const participants = await startParticipants(keys, false);
    const combiner = await startCombiner(participants);
    let isListed = false;
    const listed = combiner.get(LIST).finally(() => (isListed = true));
    const signed = combiner.sign(keys[0], MESSAGE);
    for (const [place, participant] of participants.slice(0, 3).entries()) {
      expect(isListed).toBe(false);
      await participant.start();
      await expect.poll(() => combiner.lines.join()).toContain(`participant p${place + 1} lists its shares`);
    }
    expect(JSON.parse((await listed).text)).toEqual(keys.map(({ publicKey }) => publicKey).sort());
    expect(await signed).toMatchObject({ status: 200, text: expected(keys[0], MESSAGE) });
  });

  it('has no answer, and no error, when the client waits in vain', async () => {
    const participants = await startParticipants([distribute(3, 4)]);
    const combiner = await startCombiner(participants);
    for (const participant of participants.slice(0, 2)) await participant.stop();
    await expect.poll(async () => (await combiner.get('/healthcheck')).status).toBe(503);
    const held = combiner.get(LIST);
    combiner.stop();
    await expect(held).rejects.toThrow('fetch failed');
  });

  it('has what is imported, and not what is gone', async () => {
    const [first, second] = [distribute(2, 3, 'first'), distribute(2, 3, 'second')];
    const participants = await startParticipants([first]);
    const combiner = await startCombiner(participants);
    expect(JSON.parse((await combiner.get(LIST)).text)).toEqual([first.publicKey]);
    for (const [place, participant] of participants.entries())
      participant.shares = second.shares.slice(place, place + 1);
    await expect.poll(async () => JSON.parse((await combiner.get(LIST)).text)).toEqual([second.publicKey]);
    expect(await combiner.sign(second, MESSAGE)).toMatchObject({ status: 200, text: expected(second, MESSAGE) });
    expect(await combiner.sign(first, MESSAGE)).toMatchObject({ status: 404 });
  });

  it('does not wait for a participant that is away, and had none of the key that too few hold', async () => {
    const [key, left] = [distribute(3, 4, 'key'), distribute(3, 4, 'left')];
    const participants = await startParticipants([key, left]);
    for (const participant of participants.slice(0, 2)) participant.shares = participant.shares.slice(0, 1);
    const combiner = await startCombiner(participants);
    await participants[0]?.stop();
    await expect.poll(async () => (await combiner.get('/healthcheck')).text).toContain('3 of 4 answer');
    expect(combiner.lines.join()).toContain('p1 lists no shares (ECONNREFUSED): trying on');
    expect(JSON.parse((await combiner.get(LIST)).text)).toEqual([key.publicKey]);
  });

  it('asks no participant for each unknown key', async () => {
    const participants = await startParticipants([distribute(2, 3)]);
    const combiner = await startCombiner(participants);
    const elsewhere = distribute(2, 3, 'elsewhere');
    for (let times = 0; times < 20; times++)
      expect(await combiner.sign(elsewhere, MESSAGE)).toMatchObject({
        status: 404,
        text: expect.stringContaining('unknown_key'),
      });
    for (const { asked } of participants) expect(asked.filter(({ path }) => path === ACCOUNTS).length).toBeLessThan(5);
  });
});

describe('shares of two sets', () => {
  it('never combine: too few of each are no key', async () => {
    const [old, next] = [distribute(3, 4, 'key', 1), distribute(3, 4, 'key', 2)];
    const participants = await startParticipants([old]);
    for (const [place, participant] of participants.entries())
      participant.shares = (place < 2 ? old : next).shares.slice(place, place + 1);
    const combiner = await startCombiner(participants);
    expect(JSON.parse((await combiner.get(LIST)).text)).toEqual([]);
    expect(await combiner.sign(old, MESSAGE)).toMatchObject({ status: 404 });
    for (const { votes } of participants) expect(votes).toHaveLength(0);
  });

  it('sign as soon as enough of the next set are there, and only those of it', async () => {
    const [old, next] = [distribute(3, 5, 'key', 1), distribute(3, 5, 'key', 2)];
    const participants = await startParticipants([old]);
    for (const [place, participant] of participants.entries())
      participant.shares = (place < 2 ? old : next).shares.slice(place, place + 1);
    const combiner = await startCombiner(participants);
    expect(await combiner.sign(next, MESSAGE)).toMatchObject({ status: 200, text: expected(next, MESSAGE) });
    expect(participants.map(({ votes }) => votes.length)).toEqual([0, 0, 1, 1, 1]);
  });
});

it('two that invent a next set of the key do not take it from the five that hold it', async () => {
  const [key, invented] = [distribute(5, 7, 'key', 1), distribute(2, 3, 'key', 2)];
  const participants = await startParticipants([key]);
  for (const [place, liar] of participants.slice(0, 2).entries()) {
    liar.shares = invented.shares.slice(place, place + 1);
    liar.behave = ({ method }, response) => method === 'POST' && response.writeHead(500).end() !== undefined;
  }
  const combiner = await startCombiner(participants);
  expect(await combiner.sign(key, MESSAGE)).toMatchObject({ status: 200, text: expected(key, MESSAGE) });
});

describe('a participant that lies about its shares', () => {
  const NO_POINT = `0x${'ff'.repeat(48)}`;

  it.each<[string, (account: Record<string, unknown>) => object]>([
    ['a threshold of less than half', (account) => ({ ...account, signing_threshold: '2' })],
    ['no account', () => ({})],
  ])('with %s is not believed, and the others sign', async (_, lie) => {
    const key = distribute(3, 4);
    const participants = await startParticipants([key]);
    const [liar] = participants as [FakeParticipant];
    liar.behave = ({ path }, response, of) => {
      if (path === ACCOUNTS)
        answering(
          response,
          200,
          of.shares.map(({ account }) => lie({ ...account })),
        );
      return path === ACCOUNTS;
    };
    const combiner = await startCombiner(participants);
    expect(combiner.lines.join()).toContain('participant p1: 1 shares of its list contradict themselves');
    expect(await combiner.sign(key, MESSAGE)).toMatchObject({ status: 200, text: expected(key, MESSAGE) });
    expect(liar.votes).toHaveLength(0);
  });

  it.each<[string, object]>([
    ['another public key', { public_key: distribute(3, 4).publicKey }],
    ['another id', { participant_id: '2' }],
  ])('with %s costs no signature', async (_, lie) => {
    const key = distribute(3, 4);
    const participants = await startParticipants([key]);
    const [liar, ...others] = participants as [FakeParticipant, ...FakeParticipant[]];
    liar.shares = liar.shares.map((share) => ({ ...share, account: { ...share.account, ...lie } }));
    for (const other of others) lastAfter(other, [liar]);
    const combiner = await startCombiner(participants);
    expect(await combiner.sign(key, MESSAGE)).toMatchObject({ status: 200, text: expected(key, MESSAGE) });
  });

  it('with commitments that are no points is a group of its own, and the others sign', async () => {
    const key = distribute(3, 4);
    const participants = await startParticipants([key]);
    const [liar] = participants as [FakeParticipant];
    const commitments = [key.publicKey, NO_POINT, NO_POINT];
    liar.shares = liar.shares.map((share) => ({ ...share, account: { ...share.account, commitments } }));
    const combiner = await startCombiner(participants);
    expect(await combiner.sign(key, MESSAGE)).toMatchObject({ status: 200, text: expected(key, MESSAGE) });
    expect(liar.votes).toHaveLength(0);
  });

  it('and has those of another participant, takes its place nowhere', async () => {
    const key = distribute(3, 4);
    const participants = await startParticipants([key]);
    const [liar] = participants as [FakeParticipant];
    const [, second] = key.shares;
    liar.behave = ({ path, method }, response) => {
      if (path === ACCOUNTS) answering(response, 200, [second?.account]);
      if (method === 'POST')
        answering(response, 200, {
          participant_id: '2',
          signing_root: `0x${'ab'.repeat(32)}`,
          signature: `0xc0${'00'.repeat(95)}`,
        });
      return path === ACCOUNTS || method === 'POST';
    };
    const combiner = await startCombiner(participants);
    for (const slot of [1, 2, 3])
      expect(await combiner.sign(key, { slot })).toMatchObject({ status: 200, text: expected(key, { slot }) });
  });

  it.each<[string, string]>([
    ['no list', '{}'],
    ['no JSON', '<html>'],
    ['more than it may', JSON.stringify(Array.from({ length: 65_537 }, () => 0))],
  ])('with %s lists nothing, and is asked on', async (_, body) => {
    const key = distribute(3, 4);
    const participants = await startParticipants([key]);
    const [liar] = participants as [FakeParticipant];
    let isLying = true;
    liar.behave = ({ path }, response) => {
      if (path === ACCOUNTS && isLying) response.end(body);
      return path === ACCOUNTS && isLying;
    };
    const combiner = await startCombiner(participants);
    expect(await combiner.sign(key, MESSAGE)).toMatchObject({ status: 200, text: expected(key, MESSAGE) });
    expect(combiner.lines.join()).toContain('participant p1 lists no shares');
    isLying = false;
    await expect.poll(() => combiner.lines.join()).toContain('participant p1 lists its shares');
  });
});

describe('the health of a combiner', () => {
  it('is good while enough participants of each key answer, and says how many do', async () => {
    const participants = await startParticipants([distribute(3, 4)]);
    const combiner = await startCombiner(participants);
    const health = async () => {
      const { status, text } = await combiner.get('/healthcheck');
      return [status, (JSON.parse(text) as { participants: object }).participants];
    };
    expect(await health()).toEqual([200, { answering: 4, of: 4 }]);
    await participants[0]?.stop();
    await expect.poll(health).toEqual([200, { answering: 3, of: 4 }]);
    await participants[1]?.stop();
    await expect.poll(health).toEqual([503, { answering: 2, of: 4 }]);
    await participants[0]?.start();
    await expect.poll(health).toEqual([200, { answering: 3, of: 4 }]);
  });

  it('is bad before any participant was there', async () => {
    const combiner = await startCombiner(await startParticipants([distribute(3, 4)], false));
    expect((await combiner.get('/healthcheck')).status).toBe(503);
  });

  it('is bad while a key that was served is at too few participants, and no client loses it', async () => {
    const [key, other] = [distribute(3, 4, 'key'), distribute(3, 4, 'other')];
    const participants = await startParticipants([key, other]);
    const combiner = await startCombiner(participants);
    const [one, two] = participants as [FakeParticipant, FakeParticipant];
    const { shares } = one;
    for (const participant of [one, two]) participant.shares = participant.shares.slice(1);
    await expect.poll(async () => (await combiner.get('/healthcheck')).text).toContain('1 of 2 have too few of them');
    expect((await combiner.get('/healthcheck')).status).toBe(503);
    expect(combiner.lines.join()).toContain(`1 keys are at too few participants now, ${key.publicKey} for one`);
    expect(await combiner.sign(key, MESSAGE)).toMatchObject({ status: 503 });
    expect(await combiner.sign(other, MESSAGE)).toMatchObject({ status: 200 });
    one.shares = shares;
    await expect.poll(async () => (await combiner.get('/healthcheck')).status).toBe(200);
    expect(await combiner.sign(key, MESSAGE)).toMatchObject({ status: 200, text: expected(key, MESSAGE) });
    for (const participant of participants) participant.shares = participant.shares.slice(-1);
    await expect.poll(async () => (await combiner.get('/healthcheck')).text).toContain('0 of 1 have too few of them');
    expect(await combiner.sign(key, MESSAGE)).toMatchObject({ status: 404 });
  });

  it('is bad while too few of those that list their shares can sign, and the log says why', async () => {
    const key = distribute(3, 4);
    const participants = await startParticipants([key]);
    const combiner = await startCombiner(participants);
    const failing = participants.slice(0, 2);
    for (const participant of failing)
      participant.behave = ({ method }, response) => {
        if (method === 'POST') answering(response, 503, { code: 503, reason: 'slashing_unavailable', message: 'no' });
        return method === 'POST';
      };
    expect(await combiner.sign(key, MESSAGE)).toMatchObject({ status: 503 });
    expect(combiner.lines.join()).toContain('participant p1 does not sign (status 503): it is asked late');
    const { status, text } = await combiner.get('/healthcheck');
    expect([status, text]).toEqual([503, expect.stringContaining('2 of 4 answer')]);
    for (const participant of failing) participant.behave = () => false;
    expect(await combiner.sign(key, MESSAGE)).toMatchObject({ status: 200 });
    await expect.poll(async () => (await combiner.get('/healthcheck')).status).toBe(200);
  });

  it('a share that is back is used, when a signature was missing without it', async () => {
    const key = distribute(3, 4);
    const participants = await startParticipants([key]);
    const [one, two] = participants as [FakeParticipant, FakeParticipant];
    const { shares } = one;
    one.shares = [];
    const combiner = await startCombiner(participants);
    one.shares = shares;
    await two.stop();
    await expect.poll(async () => (await combiner.sign(key, MESSAGE)).status, { timeout: 10_000 }).toBe(200);
  });

  it('is shown by metrics, with the names of the file', async () => {
    const key = distribute(2, 2);
    const combiner = await startCombiner(await startParticipants([key]));
    await combiner.sign(key, MESSAGE);
    const { text } = await combiner.get('/metrics');
    expect(text).toContain('svc_combiner_answers_total{participant="p2",outcome="signed"} 1\n');
    expect(text).toContain('svc_combiner_threshold_seconds_bucket{le="+Inf"} 1\n');
    expect(await combiner.metric('keys')).toBe(1);
  });
});
