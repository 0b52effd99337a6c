// Rules with fee recipients and a gas limit on a running signer, by both roads: who is paid decides, the answer says
// which condition was not met and nothing of the policy, and the audit line says what was asked for.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeHex } from '../../../common/formats/hex.ts';
import type { RunningSigner } from '../../../rehearsal/signer.ts';
import { publicNetwork } from '../../../signer/sign/networks.ts';
import { deploy } from '../../support/deployment.ts';
import { expectNoList } from '../../support/no-list.ts';
import { attestation, block, call, rootOf, TEST_TOKEN, testKey } from '../../support/requests.ts';

const KEY = testKey(0).publicKey;
const OURS = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const COLD = '0xde709f2102306220921060314715629080e2fb77';
const THIEF = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359';
const ONLY_PAYMENTS = 'sr_client_TEST_TOKEN_that_only_pays_0000000001';
const NOT_TO_COLD = 'sr_client_TEST_TOKEN_that_pays_all_but_one_001';

const DUTIES = [
  'AGGREGATION_SLOT',
  'AGGREGATE_AND_PROOF',
  'ATTESTATION',
  'BLOCK_V2',
  'RANDAO_REVEAL',
  'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF',
  'SYNC_COMMITTEE_MESSAGE',
  'SYNC_COMMITTEE_SELECTION_PROOF',
];
const PAYMENT = {
  effect: 'allow',
  scopes: ['sign'],
  operations: ['PROPOSER_PREFERENCES', 'VALIDATOR_REGISTRATION'],
  fee_recipients: [OURS, COLD],
  max_gas_limit: 60_000_000,
};

const deployment = deploy(1, {
  static_auth: {
    policies: [
      {
        name: 'validator-client',
        rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'], operations: DUTIES }, PAYMENT],
      },
      { name: 'payments', rules: [PAYMENT] },
      {
        name: 'not-to-cold',
        rules: [
          { effect: 'allow', scopes: ['sign'] },
          { effect: 'deny', fee_recipients: [COLD] },
        ],
      },
    ],
    tokens: [
      { secret: TEST_TOKEN, policies: ['validator-client'] },
      { name: 'payments', secret: ONLY_PAYMENTS, policies: ['payments'] },
      { secret: NOT_TO_COLD, policies: ['not-to-cold'] },
    ],
  },
});
let signer: RunningSigner;
beforeAll(async () => {
  signer = await deployment.start();
});
afterAll(() => signer.stop());

function registration(feeRecipient: string, gasLimit: number | string = 60_000_000): object {
  return {
    type: 'VALIDATOR_REGISTRATION',
    validator_registration: {
      fee_recipient: feeRecipient,
      gas_limit: String(gasLimit),
      timestamp: '1700000000',
      pubkey: KEY,
    },
  };
}

let requests = 0;
let gasRefusals = 0;

async function send(road: string, body: object, token = TEST_TOKEN) {
  requests += 1;
  const id = `payment-${requests}`;
  const url = `${signer.url}/api/v1/eth2/sign/${KEY}${road}`;
  const answer = await call(url, { token, body, headers: { 'x-request-id': id } });
  if (answer.json['reason'] === 'gas_limit_not_allowed') gasRefusals += 1;
  return { ...answer, line: await signer.logged('request', { request_id: id }) };
}

describe.each([
  ['the direct road', ''],
  ['the road of the framework', '?framework'],
])('by %s', (_road, road) => {
  it.each([
    ['the address as it was written', OURS],
    ['in lower case', OURS.toLowerCase()],
    ['in upper case without a prefix', OURS.slice(2).toUpperCase()],
    ['the other one', COLD],
  ])('a payment to %s is signed, and the audit line says to whom', async (_what, recipient) => {
    const { status, line } = await send(road, registration(recipient));
    expect(status).toBe(200);
    expect(line).toMatchObject({
      operation: 'VALIDATOR_REGISTRATION',
      fee_recipient: `0x${recipient.toLowerCase().replace(/^0x/, '')}`,
      gas_limit: '60000000',
      outcome: 'ok',
    });
  });

  it.each<[string, object, string]>([
    ['a payment elsewhere', registration(THIEF), 'fee_recipient_not_allowed'],
    ['a payment elsewhere with more gas', registration(THIEF, 60_000_001), 'fee_recipient_not_allowed'],
    ['more gas', registration(OURS, 60_000_001), 'gas_limit_not_allowed'],
    ['the most gas a message can state', registration(OURS, '18446744073709551615'), 'gas_limit_not_allowed'],
  ])('%s is refused for it: 403, a reason, and no word of the policy', async (_what, body, reason) => {
    const { status, json, text, line } = await send(road, body);
    expect([status, json['reason']]).toEqual([403, reason]);
    for (const secret of [OURS, COLD, '60000000', 'validator-client']) {
      expect(text.toLowerCase()).not.toContain(secret.slice(2).toLowerCase());
    }
    expect(line).toMatchObject({ operation: 'VALIDATOR_REGISTRATION', outcome: 'refused', reason });
    expect(line).toMatchObject({
      fee_recipient: expect.stringMatching(/^0x[0-9a-f]{40}$/),
      gas_limit: expect.any(String),
    });
  });

  it('other messages are decided by the rules that are not about payments', async () => {
    const { status, line } = await send(road, block({ slot: 1000 + requests }));
    expect(status).toBe(200);
    expect(line).not.toHaveProperty('fee_recipient');
    expect(await send(road, block({ slot: 2000 + requests }), ONLY_PAYMENTS)).toMatchObject({
      status: 403,
      json: { reason: 'denied' },
    });
    expect(await send(road, registration(COLD, 1), ONLY_PAYMENTS)).toMatchObject({ status: 200 });
  });

  it('a rule that denies payments to somebody denies nothing else', async () => {
    const denied = await send(road, registration(COLD), NOT_TO_COLD);
    expect(denied).toMatchObject({ status: 403, json: { reason: 'denied' }, line: { denied_by: 'not-to-cold' } });
    expect(await send(road, registration(THIEF), NOT_TO_COLD)).toMatchObject({ status: 200 });
    const target = 1000 + requests;
    expect(await send(road, attestation({ source: target - 1, target }), NOT_TO_COLD)).toMatchObject({ status: 200 });
  });
});

describe('preferences of a proposer', () => {
  const { genesisValidatorsRoot } = publicNetwork('sepolia');
  const FIRST_GLOAS_SLOT = 353_024 * 32;
  const fork = { previous_version: '0x90000075', current_version: '0x90000076', epoch: '353024' };
  let onSepolia: RunningSigner;
  beforeAll(async () => {
    onSepolia = await deployment.start({ config: { network: 'sepolia', anti_slashing: { path: 'sepolia.sqlite' } } });
  });
  afterAll(() => onSepolia.stop());

  function preferences(feeRecipient: string, gasLimit: number, limitName: string, version?: string): object {
    const data = {
      dependent_root: rootOf(7),
      proposal_slot: String(FIRST_GLOAS_SLOT + 5),
      validator_index: '7',
      fee_recipient: feeRecipient,
      [limitName]: String(gasLimit),
    };
    return {
      type: 'PROPOSER_PREFERENCES',
      fork_info: { fork, genesis_validators_root: encodeHex(genesisValidatorsRoot) },
      proposer_preferences: version === undefined ? data : { version, data },
    };
  }

  it.each([
    ['as the standard has them', 'target_gas_limit', 'GLOAS'],
    ['bare', 'target_gas_limit', undefined],
    ['as an early draft of Prysm has them', 'gas_limit', undefined],
  ])('%s are held to the same rules', async (_what, limitName, version) => {
    const ask = async (recipient: string, gasLimit: number, token = ONLY_PAYMENTS) => {
      const body = preferences(recipient, gasLimit, limitName, version);
      const { status, json } = await call(`${onSepolia.url}/api/v1/eth2/sign/${KEY}`, { token, body });
      return [status, json['reason']];
    };
    expect(await ask(OURS, 60_000_000)).toEqual([200, undefined]);
    expect(await ask(THIEF, 60_000_000)).toEqual([403, 'fee_recipient_not_allowed']);
    expect(await ask(OURS, 60_000_001)).toEqual([403, 'gas_limit_not_allowed']);
    expect(await ask(COLD, 60_000_000, NOT_TO_COLD)).toEqual([403, 'denied']);
    expect(await ask(THIEF, 60_000_001, NOT_TO_COLD)).toEqual([200, undefined]);
  });
});

it('refusals of payments are counted by their reason', async () => {
  await send('', registration(OURS, 60_000_001));
  const rendered = `svc_auth_rejections_total{reason="gas_limit_not_allowed"} ${gasRefusals}\n`;
  await expect.poll(async () => (await call(signer.metricsUrl, { token: null })).text).toContain(rendered);
});

it('the audit line has the name of a static token, and the index of one without', async () => {
  expect((await send('', registration(COLD), ONLY_PAYMENTS)).line).toMatchObject({ accessor: 'static:payments' });
  expect((await send('', registration(COLD))).line).toMatchObject({ accessor: 'static:0' });
});

it('a token that may only pay somebody lists no key: no message without a payment is allowed it', async () => {
  expect(await call(`${signer.url}/api/v1/eth2/highWatermark`, { token: ONLY_PAYMENTS })).toMatchObject({
    status: 403,
  });
  await expectNoList(call(`${signer.url}/api/v1/eth2/publicKeys`, { token: ONLY_PAYMENTS }));
});
