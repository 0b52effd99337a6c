// The Gloas vectors through the real program on sepolia: every message in every shape that clients send, what
// contradicts itself, what may be signed only once, and envelopes of up to 10 MiB, whose limit is theirs alone
// (specification/signing.md#gloas).

import http from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { OPERATION_ENTRIES, type Operation } from '../../signer/api/operations.ts';
import { parseSignRequest } from '../../signer/operations/parse.ts';
import { computeSigningRoot } from '../../signer/sign/message-root.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { type Deployment, deployKeys } from '../support/deployment.ts';
import { envelope, messageAt } from '../support/fork-messages.ts';
import { type GloasVector, gloasVectors, refusedGloasVectors, shapesOf, signedGloasVectors } from '../support/gloas.ts';
import { call, signCall, TEST_TOKEN, testKey } from '../support/requests.ts';
import { IS_WHOLE } from '../support/scale.ts';

const SEPOLIA = publicNetwork('sepolia');
const MIB = 1024 * 1024;
const FORKS = { previous: 'fulu', current: 'gloas', epoch: 353_024 } as const;
const SLOT = 353_030 * 32;
const json = { headers: { accept: 'application/json' } };

function deploySepolia(config: Record<string, unknown> = {}): Deployment {
  const { secret, pubkey } = gloasVectors?.key ?? { secret: testKey(0).secret, pubkey: testKey(0).publicKey };
  return deployKeys([{ secret, publicKey: pubkey }], { network: 'sepolia', ...config });
}

const KEY = gloasVectors?.key.pubkey ?? testKey(0).publicKey;

const ONLY_ATTESTATIONS = {
  name: 'attestations',
  rules: [
    { effect: 'allow', scopes: ['sign'] },
    { effect: 'deny', operations: ['EXECUTION_PAYLOAD_ENVELOPE'] },
  ],
};
const OTHER_TOKEN = 'sr_client_TEST_TOKEN_that_signs_no_envelopes_0001';

let plain: RunningSigner;
/** Signs bids, too. */
let permissive: RunningSigner;
beforeAll(async () => {
  const deployment = deploySepolia();
  const given = deployment.config['static_auth'] as { policies: object[]; tokens: object[] };
  const static_auth = {
    policies: [...given.policies, ONLY_ATTESTATIONS],
    tokens: [...given.tokens, { secret: OTHER_TOKEN, policies: ['attestations'] }],
  };
  [plain, permissive] = await Promise.all([
    deployment.start({ config: { static_auth } }),
    deploySepolia({ signing: { builder: true } }).start(),
  ]);
});
afterAll(() => Promise.all([plain.stop(), permissive.stop()]));

const inLog = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function positionMembers(line: Record<string, unknown>): Record<string, unknown> {
  const names = ['slot', 'epoch', 'source_epoch', 'target_epoch'];
  return Object.fromEntries(names.filter((name) => name in line).map((name) => [name, line[name]]));
}

/** Vectors that contradict each other (one slot, other content) are for different signers. */
function withoutConflicts(): GloasVector[][] {
  const rounds: GloasVector[][] = [];
  for (const vector of signedGloasVectors) {
    const { type } = vector.request;
    const once = ['ATTESTATION', 'PAYLOAD_ATTESTATION_MESSAGE', 'EXECUTION_PAYLOAD_BID', 'EXECUTION_PAYLOAD_ENVELOPE'];
    const hasOne = (round: GloasVector[]) => once.includes(type) && round.some(({ request }) => request.type === type);
    const free = rounds.find((round) => !hasOne(round));
    if (free === undefined) rounds.push([vector]);
    else free.push(vector);
  }
  return rounds;
}

describe.skipIf(gloasVectors === undefined)('the Gloas vectors', () => {
  const rounds = withoutConflicts();

  // The first two have every type, and votes and envelopes of both kinds.
  it.each([...rounds.keys()].slice(0, IS_WHOLE ? rounds.length : 2))(
    'are signed in every shape: round %i',
    async (round) => {
      const signer = await deploySepolia({ signing: { builder: true } }).start();
      try {
        for (const { request, signature, signing_root } of rounds[round] ?? []) {
          for (const shape of shapesOf(request)) {
            const answer = await signCall(signer.url, KEY, shape, json);
            expect([shape, answer.json]).toEqual([shape, { signature }]);
          }
          // What the audit line is for: the signature is found by what it is over.
          const line = await signer.logged('request', { signing_root });
          const operation = line['operation'] as Operation;
          expect(Object.keys(positionMembers(line))).toEqual(OPERATION_ENTRIES[operation].states.map(inLog));
        }
      } finally {
        await signer.stop();
      }
    },
  );

  it('are all in a round', () => {
    expect(rounds.flat()).toHaveLength(25);
    expect(refusedGloasVectors).toHaveLength(2);
  });
});

describe('one place', () => {
  const sign = (body: unknown) => signCall(permissive.url, KEY, body, json);

  it.each(['PAYLOAD_ATTESTATION_MESSAGE', 'EXECUTION_PAYLOAD_ENVELOPE', 'EXECUTION_PAYLOAD_BID'])(
    'of a %s is signed again, and never with other content: 412 equivocation',
    async (type) => {
      const body = messageAt(SEPOLIA, type, SLOT, FORKS);
      const member = type.toLowerCase();
      const changes = { beacon_block_root: `0x${'77'.repeat(32)}`, value: '5' };
      const other = { ...body, [member]: { ...(body[member] as object), ...changes } };
      const [first, again] = [await sign(body), await sign(body)];
      expect(first.status).toBe(200);
      expect(again.json).toEqual(first.json);
      expect((await sign(other)).json).toMatchObject({ code: 412, reason: 'equivocation' });
      const line = await permissive.logged('request', { operation: type, reason: 'equivocation' });
      expect(line).toMatchObject({ status: 412, public_key: KEY });
      const next = messageAt(SEPOLIA, type, SLOT + 1, FORKS);
      expect((await sign(next)).status).toBe(200);
    },
  );

  it('of two at once with other content one is signed', async () => {
    const body = messageAt(SEPOLIA, 'PAYLOAD_ATTESTATION_MESSAGE', SLOT + 9, FORKS);
    const message = body['payload_attestation_message'] as object;
    const other = { ...body, payload_attestation_message: { ...message, payload_present: false } };
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => sign(index % 2 === 0 ? body : other)));
    const signatures = new Set(
      answers.filter(({ status }) => status === 200).map(({ json: { signature } }) => signature),
    );
    expect(signatures.size).toBe(1);
    expect(answers.filter(({ status }) => status === 412)).toHaveLength(10);
  });

  it('of a vote: the payload status makes two votes of one target a double vote', async () => {
    const body = messageAt(SEPOLIA, 'ATTESTATION', SLOT, FORKS);
    const full = { ...body, attestation: { ...(body['attestation'] as object), index: '1' } };
    expect((await sign(body)).status).toBe(200);
    expect((await sign(full)).json).toMatchObject({ code: 412, reason: 'double_vote' });
  });
});

describe('a request that contradicts itself', () => {
  const refusal = async (body: unknown) => (await signCall(plain.url, KEY, body, json)).json;

  it('is 400, each kind with words of its own', async () => {
    const stated = messageAt(SEPOLIA, 'AGGREGATE_AND_PROOF_V2', SLOT, { ...FORKS, stated: 'FULU' });
    const stale = messageAt(SEPOLIA, 'ATTESTATION', SLOT, { previous: 'electra', current: 'fulu', epoch: 272_640 });
    const early = messageAt(SEPOLIA, 'PROPOSER_PREFERENCES', 353_023 * 32, FORKS);
    const refusals = [await refusal(stated), await refusal(stale), await refusal(early)];
    expect(refusals.map(({ code }) => code)).toEqual([400, 400, 400]);
    expect(refusals.map(({ reason }) => reason)).toEqual(['fork_mismatch', 'fork_mismatch', 'unsupported_fork']);
    expect(refusals.map(({ message }) => String(message).split(': ').slice(1).join(': '))).toEqual([
      'version: states FULU, but fork_info selects the fork version of GLOAS',
      'fork_info: selects the fork version of FULU, but epoch 353030 of the message is in GLOAS',
      'fork_info: selects the fork version of FULU, which has no PROPOSER_PREFERENCES',
    ]);
  });

  it('is a bid that nobody allowed, with the name of the option', async () => {
    const { code, reason, message } = await refusal(messageAt(SEPOLIA, 'EXECUTION_PAYLOAD_BID', SLOT, FORKS));
    expect({ code, reason }).toEqual({ code: 400, reason: 'unsupported_operation' });
    expect(message).toContain('signing.builder');
  });

  it('is an inclusion list, of which no API has the type yet: whole, and bare as Lodestar sends it', async () => {
    const list = gloasVectors?.vectors.find(({ request }) => request.type === 'INCLUSION_LIST')?.request;
    const inclusion_list = list?.['inclusion_list'] ?? { slot: '1', validator_index: '5', transactions: [] };
    for (const body of [
      { ...list, type: 'INCLUSION_LIST' },
      { type: 'INCLUSION_LIST', inclusion_list },
    ]) {
      const { code, reason, message } = await refusal(body);
      expect({ code, reason }).toEqual({ code: 400, reason: 'unsupported_operation' });
      expect(message).toContain('type: no operation of this signer');
    }
  });
});

/** An envelope whose JSON text has about so many bytes. */
function envelopeOf(bytes: number, slot: number): string {
  const body = messageAt(SEPOLIA, 'EXECUTION_PAYLOAD_ENVELOPE', slot, FORKS);
  const transaction = `0x${'5a'.repeat(2000)}`;
  const count = Math.floor((bytes - 4000) / (transaction.length + 3));
  return JSON.stringify({
    ...body,
    execution_payload_envelope: envelope(
      slot,
      Array.from({ length: count }, () => transaction),
    ),
  });
}

describe('envelopes', () => {
  interface Sending {
    readonly token?: string | null;
    readonly chunked?: boolean;
    readonly path?: string;
    readonly headersOnly?: boolean;
  }

  async function send(body: string, sending: Sending = {}): Promise<{ status: number | undefined; body: string }> {
    const { token = TEST_TOKEN, chunked = false, path = `/api/v1/eth2/sign/${KEY}`, headersOnly = false } = sending;
    const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
    const request = http.request(`${plain.url}${path}`, {
      method: 'POST',
      agent: false,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(chunked ? {} : { 'content-length': Buffer.byteLength(body) }),
      },
    });
    request.once('response', resolve).on('error', reject);
    if (headersOnly) request.flushHeaders();
    else request.end(body);
    const response = await promise;
    const answer = { status: response.statusCode, body: await text(response) };
    request.destroy();
    return answer;
  }

  it.each([
    ['1 MiB', 1 * MIB, 0, false],
    ['nearly 10 MiB', 10 * MIB - 10, 1, false],
    ['nearly 10 MiB, chunked', 10 * MIB - 10, 2, true],
    ['70 KiB', 70 * 1024, 3, false],
    ['30 KiB', 30 * 1024, 4, false],
  ])('of %s are signed with the root of their container', async (_size, bytes, offset, chunked) => {
    const body = envelopeOf(bytes, SLOT + offset);
    const parsed = parseSignRequest(Buffer.from(body));
    if (parsed.kind === 'refused') throw new Error(parsed.hint);
    const root = encodeHex(computeSigningRoot(parsed.request, SEPOLIA));
    const withRoot = `{"signingRoot":"${root}",${body.slice(1)}`;
    expect(await send(withRoot, { chunked })).toMatchObject({ status: 200 });
    const withAnother = `{"signingRoot":"${root.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))}",${body.slice(1)}`;
    const refused = await send(withAnother, { chunked });
    expect(JSON.parse(refused.body)).toMatchObject({ code: 400, reason: 'signing_root_mismatch' });
  });

  it('that are large and malformed are refused with the place', async () => {
    const body = envelopeOf(3 * MIB, SLOT).replace('"slot_number"', '"slot_no"');
    expect(JSON.parse((await send(body)).body)).toMatchObject({
      code: 400,
      reason: 'malformed_body',
      message: expect.stringContaining('execution_payload_envelope.payload.slot_number: is missing'),
    });
  });

  it('above 10 MiB are 413 before a byte of them is read', async () => {
    const body = envelopeOf(10 * MIB + 8000, SLOT);
    expect(body.length).toBeGreaterThan(10 * MIB);
    expect(await send(body, { headersOnly: true })).toMatchObject({ status: 413 });
  });

  it('that only claim to be one are 413 above the limit of all others, and read as ever below it', async () => {
    const padded = (bytes: number) =>
      JSON.stringify({ ...messageAt(SEPOLIA, 'RANDAO_REVEAL', SLOT, FORKS), padding: 'x'.repeat(bytes) });
    expect(JSON.parse((await send(padded(3 * MIB))).body)).toMatchObject({ code: 413, reason: 'body_too_large' });
    expect(JSON.parse((await send('x'.repeat(3 * MIB))).body)).toMatchObject({ code: 413, reason: 'body_too_large' });
    expect(await send(padded(MIB))).toMatchObject({ status: 200 });
    expect(JSON.parse((await send('x'.repeat(MIB))).body)).toMatchObject({ code: 400, reason: 'malformed_body' });
  });

  it('have room for those alone whose rules let them sign one', async () => {
    const body = envelopeOf(3 * MIB, SLOT + 7);
    expect(await send(body, { token: OTHER_TOKEN, headersOnly: true })).toMatchObject({ status: 413 });
    expect(await send(body, { token: null, headersOnly: true })).toMatchObject({ status: 413 });
    expect(await send(body, { token: 'unknown-to-the-signer', headersOnly: true })).toMatchObject({ status: 413 });
    expect(await send(body, { path: '/eth/v1/keystores', headersOnly: true })).toMatchObject({ status: 413 });
  });

  it('do not keep others waiting: reveals are signed while an envelope is read', async () => {
    const large = send(envelopeOf(10 * MIB - 10, SLOT + 8));
    const reveals = Array.from({ length: 50 }, (_, index) =>
      signCall(plain.url, KEY, messageAt(SEPOLIA, 'RANDAO_REVEAL', SLOT + index * 32, FORKS), json),
    );
    expect(new Set((await Promise.all(reveals)).map(({ status }) => status))).toEqual(new Set([200]));
    expect(await large).toMatchObject({ status: 200 });
  });

  it('are in the OpenAPI document, with the other messages of Gloas', async () => {
    const { text: document } = await call(`${plain.url}/api/openapi.json`, { token: null });
    for (const member of ['execution_payload_envelope', 'proposer_preferences', 'payload_attestation_message'])
      expect(document).toContain(`"${member}"`);
  });
});
