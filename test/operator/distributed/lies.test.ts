// Participants that lie, in every way: no signature is lost by it, none is wrong, and the liar is named and asked last.

import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { SecretKey } from '@chainsafe/blst';
import { describe, expect, it } from 'vitest';
import { randomNumbers } from '../../support/fault-proxy.ts';
import { sized } from '../../support/scale.ts';
import {
  answering,
  away,
  type Behaviour,
  distribute,
  expected,
  type FakeParticipant,
  hexOf,
  lastAfter,
  never,
  refusing,
  rootOf,
  startCombiner,
  startParticipants,
  together,
  whenSigning,
} from './fake-participants.ts';

const MESSAGE = { type: 'ATTESTATION', attestation: { slot: '1' } };

const STRANGER = SecretKey.fromKeygen(randomBytes(32));
/** On the curve of G2, and not in the group: x = 2 of the compressed form, which a point of the curve has. */
const NOT_IN_GROUP = `0x80${'00'.repeat(94)}02`;

/** What it answers in place of its partial signature. */
const LIES: Readonly<Record<string, (honest: Record<string, string>, message: unknown) => object>> = {
  'a signature of another key': (honest, message) => ({
    ...honest,
    signature: hexOf(STRANGER.sign(rootOf(message)).toBytes()),
  }),
  'a signature of another message': (honest) => ({
    ...honest,
    signature: hexOf(STRANGER.sign(randomBytes(32)).toBytes()),
  }),
  'another root': (honest) => ({ ...honest, signing_root: hexOf(randomBytes(32)) }),
  'the id of another participant': (honest) => ({ ...honest, participant_id: '2' }),
  'a point outside of the group': (honest) => ({ ...honest, signature: NOT_IN_GROUP }),
  'no point': (honest) => ({ ...honest, signature: `0x${'ff'.repeat(96)}` }),
  'the point at infinity': (honest) => ({ ...honest, signature: `0xc0${'00'.repeat(95)}` }),
};

function lying(lie: (honest: Record<string, string>, message: unknown) => object): Behaviour {
  return whenSigning(({ path, body }, response, of) => {
    const message: unknown = JSON.parse(body);
    const honest = of.sign(path.slice(path.lastIndexOf('/') + 1), message);
    answering(response, 200, lie(honest ?? {}, message));
    return true;
  });
}

describe('one that lies', () => {
  it.each(Object.entries(LIES))('with %s costs no signature, is named, and is asked last', async (_, lie) => {
    const key = distribute(3, 5);
    const participants = await startParticipants([key]);
    const [liar, ...others] = participants as [FakeParticipant, ...FakeParticipant[]];
    liar.behave = lying(lie);
    for (const other of others) lastAfter(other, [liar]);
    const pace = { lateMs: 100, note: () => undefined };
    const combiner = await startCombiner(participants, { pace });
    expect(await combiner.sign(key, MESSAGE)).toMatchObject({ status: 200, text: expected(key, MESSAGE) });
    await expect.poll(() => combiner.lines.join('\n')).toContain('participant p1 gave a wrong partial signature');
    pace.lateMs = 600_000; // none is late, however slow the machine is
    const before = liar.votes.length;
    for (let slot = 100; slot < 105; slot++) {
      const message = { ...MESSAGE, slot };
      expect(await combiner.sign(key, message)).toMatchObject({ status: 200, text: expected(key, message) });
    }
    expect(liar.votes.length).toBe(before);
  });

  it.each<[string, Behaviour]>([
    [
      'a page of a proxy',
      (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>') !== undefined,
    ],
    [
      'half an answer',
      (_, response) => response.writeHead(200, { 'content-length': 500 }).write('{"participant_id":') || true,
    ],
    ['an answer without end', (_, response) => endless(response)],
    [
      'a signature that is no hex',
      (_, response) => answering(response, 200, { participant_id: '1', signing_root: '0x', signature: 'yes' }) ?? true,
    ],
    ['null', (_, response) => answering(response, 200, null) ?? true],
  ])('with %s costs no signature, and failed', async (_, behaviour) => {
    const key = distribute(3, 4);
    const participants = await startParticipants([key]);
    (participants[0] as FakeParticipant).behave = whenSigning(behaviour);
    const combiner = await startCombiner(participants, { timeoutSeconds: 1 });
    expect(await combiner.sign(key, MESSAGE)).toMatchObject({ status: 200, text: expected(key, MESSAGE) });
    const failed = 'svc_combiner_answers_total{participant="p1",outcome="failed"} 1';
    await expect.poll(async () => (await combiner.get('/metrics')).text).toContain(failed);
  });

  it('costs no signature when there are two of five, nor when they tell the same lie', async () => {
    const key = distribute(3, 5);
    const participants = await startParticipants([key]);
    const [first, second, ...others] = participants as [FakeParticipant, FakeParticipant, ...FakeParticipant[]];
    for (const liar of [first, second]) liar.behave = lying(LIES['a signature of another key'] as Lie);
    for (const other of others) lastAfter(other, [first]);
    const combiner = await startCombiner(participants);
    for (const slot of [1, 2, 3, 4]) {
      const message = { ...MESSAGE, slot };
      expect(await combiner.sign(key, message)).toMatchObject({ status: 200, text: expected(key, message) });
    }
  });

  it('in a burst is found once: no vote of hundreds is lost, and few checks are made', async () => {
    const keys = Array.from({ length: 60 }, (_, at) => distribute(3, 4, `key ${at}`));
    const participants = await startParticipants(keys);
    const [liar, ...others] = participants as [FakeParticipant, ...FakeParticipant[]];
    liar.behave = lying(LIES['a signature of another key'] as Lie);
    expect(others).toHaveLength(3);
    for (const participant of participants) together(participant, keys.length);
    const combiner = await startCombiner(participants, { maxConnections: 128 });
    const replies = await Promise.all(keys.map((key) => combiner.sign(key, MESSAGE)));
    expect(replies.map(({ text }) => text)).toEqual(keys.map((key) => expected(key, MESSAGE)));
    expect(await combiner.metric('checks_total')).toBeLessThan(40);
  });
});

it('one that answers 101 is asked again afterwards', async () => {
  const key = distribute(2, 2);
  const participants = await startParticipants([key]);
  const combiner = await startCombiner(participants, { maxConnections: 1, maxWaiting: 0 });
  const [first] = participants as [FakeParticipant];
  first.behave = whenSigning((_, response) => {
    response.socket?.end('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n');
    return true;
  });
  expect(await combiner.sign(key, MESSAGE)).toMatchObject({ status: 503 });
  first.behave = () => false;
  expect(await combiner.sign(key, MESSAGE)).toMatchObject({ status: 200, text: expected(key, MESSAGE) });
});

describe('whatever participants do', () => {
  const misdeeds: readonly Behaviour[] = [
    ...Object.values(LIES).map(lying),
    ...[whenSigning(away), never],
    ...[412, 403, 500].map((status) => whenSigning((_, response) => refusing(response, status, 'denied') ?? true)),
  ];

  it('each answer is the signature of the whole key, and there is one while enough are honest', async () => {
    const wrong: unknown[] = [];
    for (let round = 0; round < sized(4, 40); round++) {
      const numbers = randomNumbers(round);
      const random = (below: number): number => Math.floor(numbers() * below);
      const [threshold, count] = [
        [3, 4],
        [3, 5],
        [5, 7],
      ][random(3)] as [number, number];
      const key = distribute(threshold, count);
      const participants = await startParticipants([key]);
      const combiner = await startCombiner(participants, { timeoutSeconds: 2 });
      for (let slot = 0; slot < 8; slot++) {
        const bad = random(count + 1 - threshold + (slot === 7 ? 1 : 0)) + (slot === 7 ? 1 : 0);
        const order = participants
          .map((participant) => ({ participant, at: random(1000) }))
          .sort((a, b) => a.at - b.at);
        for (const [place, { participant }] of order.entries())
          participant.behave = place < bad ? (misdeeds[random(misdeeds.length)] as Behaviour) : () => false;
        const message = { ...MESSAGE, slot };
        const { status, text } = await combiner.sign(key, message);
        const isRight = status === 200 ? text === expected(key, message) : bad > count - threshold;
        if (!isRight) wrong.push({ round, slot, bad, status, text });
      }
    }
    expect(wrong).toEqual([]);
  });
});

type Lie = (honest: Record<string, string>, message: unknown) => object;

function endless(response: ServerResponse): boolean {
  response.writeHead(200, { 'content-type': 'application/json' });
  const more = (): void => {
    while (!response.destroyed && response.write('x'.repeat(16_384)));
    if (!response.destroyed) response.once('drain', more);
  };
  more();
  return true;
}
