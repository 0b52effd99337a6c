// Rules for envelopes and builders on a running signer (specification/authorization.md#payments, #own-blocks): who is
// paid, how much gas, who built the payload, which builder is asked, and that the block of an envelope is one that the
// key signed; after a restart too, in a large body that the worker reads, and never where the store holds no root.

import { ssz } from '@lodestar/types';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { deploy } from '../support/deployment.ts';
import { envelope, messageAt } from '../support/fork-messages.ts';
import { call, signCall, TEST_TOKEN, testKey } from '../support/requests.ts';

const SEPOLIA = publicNetwork('sepolia');
const KEY = testKey(0).publicKey;
const OURS = `0x${'33'.repeat(20)}`;
const THIEF = `0x${'44'.repeat(20)}`;
const SELF_BUILD = '18446744073709551615';
const FORKS = { previous: 'fulu', current: 'gloas', epoch: 353_024 } as const;
const FIRST = 353_030 * 32;
const ADMIN = 'sr_client_TEST_TOKEN_of_records_in_and_out_001';
const json = { headers: { accept: 'application/json' } };

const deployment = deploy(2, {
  anti_slashing: { jump_after_unclean_end: false },
  network: 'sepolia',
  static_auth: {
    policies: [
      {
        name: 'proposer',
        rules: [
          { effect: 'allow', scopes: ['sign'], operations: ['BLOCK_V2'] },
          {
            effect: 'allow',
            scopes: ['sign'],
            fee_recipients: [OURS],
            max_gas_limit: 60_000_000,
            builder_indices: ['self'],
            only_for_own_blocks: true,
          },
          { effect: 'allow', scopes: ['sign'], builders: ['builder.example.org', '0x00FF'] },
        ],
      },
      { name: 'records', rules: [{ effect: 'allow', scopes: ['slashing_protection'] }] },
    ],
    tokens: [
      { secret: TEST_TOKEN, policies: ['proposer'] },
      { secret: ADMIN, policies: ['records'] },
    ],
  },
});

function headerAt(slot: number): { readonly body: object; readonly root: string } {
  const body = messageAt(SEPOLIA, 'BLOCK_V2', slot, FORKS);
  const { block_header } = body['beacon_block'] as { block_header: object };
  const type = ssz.phase0.BeaconBlockHeader;
  return { body, root: encodeHex(type.hashTreeRoot(type.fromJson(block_header))) };
}

interface Changes {
  readonly payload?: object;
  readonly [member: string]: unknown;
}

function envelopeAt(slot: number, { payload, ...changes }: Changes, transactions: readonly string[] = []): object {
  const body = messageAt(SEPOLIA, 'EXECUTION_PAYLOAD_ENVELOPE', slot, FORKS);
  const plain = envelope(slot, transactions) as { payload: object };
  const made = { ...plain, ...changes, payload: { ...plain.payload, ...payload } };
  return { ...body, execution_payload_envelope: made };
}

let signer: RunningSigner;
const ask = async (body: object, key = KEY) => {
  const answer = await signCall(signer.url, key, body, json);
  const line = await signer.logged('request', { request_id: answer.headers.get('x-request-id') });
  return { status: answer.status, reason: answer.json['reason'], line };
};

describe('an envelope', () => {
  beforeAll(async () => {
    signer = await deployment.start();
  });
  afterAll(() => signer.stop());

  it('is signed for a block that its key signed, also by a signer that has started again', async () => {
    const [first, second] = [headerAt(FIRST), headerAt(FIRST + 1)];
    for (const { body } of [first, second]) expect((await ask(body)).status).toBe(200);
    const { status, line } = await ask(envelopeAt(FIRST, { beacon_block_root: first.root }));
    expect(status).toBe(200);
    expect(line).toMatchObject({ fee_recipient: OURS, gas_limit: '60000000', builder_index: SELF_BUILD });
    await signer.kill();
    signer = await deployment.start();
    expect((await ask(envelopeAt(FIRST + 1, { beacon_block_root: second.root }))).status).toBe(200);
  });

  it('is refused for another block of the slot, another slot, and another key', async () => {
    const { body, root } = headerAt(FIRST + 10);
    const refused = { status: 403, reason: 'not_own_block' };
    expect(await ask(envelopeAt(FIRST + 10, { beacon_block_root: root }))).toMatchObject(refused); // not yet
    expect((await ask(body)).status).toBe(200);
    expect(await ask(envelopeAt(FIRST + 10, {}))).toMatchObject(refused);
    expect(await ask(envelopeAt(FIRST + 11, { beacon_block_root: root }))).toMatchObject(refused);
    expect(await ask(envelopeAt(FIRST + 10, { beacon_block_root: root }), testKey(1).publicKey)).toMatchObject(refused);
    expect((await ask(envelopeAt(FIRST + 10, { beacon_block_root: root }))).status).toBe(200);
    const metrics = async () => (await call(signer.metricsUrl, { token: null })).text;
    await expect.poll(metrics).toContain('svc_auth_rejections_total{reason="not_own_block"} 4\n');
  });

  it.each([
    ['fee_recipient_not_allowed', { payload: { fee_recipient: THIEF } }],
    ['gas_limit_not_allowed', { payload: { gas_limit: '60000001' } }],
    ['builder_index_not_allowed', { builder_index: '7' }],
    ['fee_recipient_not_allowed', { payload: { fee_recipient: THIEF, gas_limit: '60000001' }, builder_index: '7' }],
  ])('is refused with %s, small and large, when its payload says %j', async (reason, changes) => {
    const { body, root } = headerAt(FIRST + 20);
    expect((await ask(body)).status).toBe(200);
    const large = Array.from({ length: 40 }, () => `0x${'ab'.repeat(2000)}`);
    for (const transactions of [[], large]) {
      const asked = envelopeAt(FIRST + 20, { beacon_block_root: root, ...changes }, transactions);
      expect(await ask(asked)).toMatchObject({ status: 403, reason, line: { reason } });
    }
  });

  it('of a large body is held to the same rules, and signed when it meets them', async () => {
    const { body, root } = headerAt(FIRST + 21);
    const large = Array.from({ length: 40 }, () => `0x${'ab'.repeat(2000)}`);
    expect((await ask(body)).status).toBe(200);
    expect(await ask(envelopeAt(FIRST + 21, {}, large))).toMatchObject({ status: 403, reason: 'not_own_block' });
    expect((await ask(envelopeAt(FIRST + 21, { beacon_block_root: root }, large))).status).toBe(200);
  });

  it('may have its 10 MiB under such rules, too, and is held to them', async () => {
    const { body, root } = headerAt(FIRST + 22);
    const huge = Array.from({ length: 2400 }, () => `0x${'ab'.repeat(2000)}`); // above max_request_body_bytes
    expect((await ask(body)).status).toBe(200);
    const stolen = { beacon_block_root: root, payload: { fee_recipient: THIEF } };
    const reason = 'fee_recipient_not_allowed';
    expect(await ask(envelopeAt(FIRST + 22, stolen, huge))).toMatchObject({ status: 403, reason });
    expect((await ask(envelopeAt(FIRST + 22, { beacon_block_root: root }, huge))).status).toBe(200);
  });

  it('is refused for a block that was imported without its root', async () => {
    const slot = FIRST + 30;
    const genesis_validators_root = encodeHex(SEPOLIA.genesisValidatorsRoot);
    const record = { pubkey: KEY, signed_blocks: [{ slot: String(slot) }], signed_attestations: [] };
    const file = { metadata: { interchange_format_version: '5', genesis_validators_root }, data: [record] };
    const path = '/api/v1/chamber/slashing-protection';
    const imported = await call(`${signer.url}${path}`, { method: 'POST', token: ADMIN, body: file });
    expect(imported.status).toBe(200);
    expect(await ask(envelopeAt(slot, { beacon_block_root: headerAt(slot).root }))).toMatchObject({
      status: 403,
      reason: 'not_own_block',
    });
  });

  it('is refused by a signer without slashing records', async () => {
    const config = { anti_slashing: { backend: 'noop' } };
    const unprotected = await deployment.start({ config, args: ['--allow-unsafe-noop-anti-slashing'] });
    try {
      const { body, root } = headerAt(FIRST + 40);
      expect((await signCall(unprotected.url, KEY, body, json)).status).toBe(200);
      const answer = await signCall(unprotected.url, KEY, envelopeAt(FIRST + 40, { beacon_block_root: root }), json);
      expect(answer.json).toMatchObject({ code: 403, reason: 'not_own_block' });
    } finally {
      await unprotected.stop();
    }
  });

  it('a builder is asked only when a rule names it, by its text or its bytes', async () => {
    const auth = (data: string) => ({
      type: 'BUILDER_REQUEST_AUTH',
      builder_request_auth: { version: 'GLOAS', data: { data, slot: String(FIRST) } },
    });
    const named = (name: string) => auth(`0x${Buffer.from(name).toString('hex').toUpperCase()}`);
    expect(await ask(named('builder.example.org'))).toMatchObject({
      status: 200,
      line: { builder: 'builder.example.org' },
    });
    expect(await ask(auth('0x00ff'))).toMatchObject({ status: 200, line: { builder: '0x00ff' } });
    for (const other of ['builder.example.com', 'builder.example.org.', 'Builder.example.org']) {
      expect(await ask(named(other))).toMatchObject({
        status: 403,
        reason: 'builder_not_allowed',
        line: { builder: other },
      });
    }
  });
});
