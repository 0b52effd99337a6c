// What the batch route refuses whole, and what it answers for each key.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { deploy } from '../support/deployment.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import {
  type Answer,
  attestation,
  batchCall,
  block,
  call,
  forkInfo,
  randaoReveal,
  rootOf,
  signCall,
  TEST_TOKEN,
  testKey,
  voluntaryExit,
} from '../support/requests.ts';
import { JSON_ANSWER, nameAt, names, outcomesOf, resultsOf } from './batch-requests.ts';

const RESTRICTED = 'sr_client_TEST_TOKEN_of_a_few_keys_000000000001';
const NO_VOTES = 'sr_client_TEST_TOKEN_that_may_not_vote_000000001';
const NO_SIGNING = 'sr_client_TEST_TOKEN_that_may_only_look_00000001';
const unloaded = testKey(5000).publicKey;

/** The metrics listener gives the same text for a second. */
const PATIENCE = { timeout: LONGEST_WAIT_MS, interval: 200 };

const STATIC_AUTH = {
  policies: [
    { name: 'full', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'] }] },
    { name: 'few', rules: [{ effect: 'allow', scopes: ['sign'], keys: [nameAt(0), nameAt(1), unloaded] }] },
    {
      name: 'no-votes',
      rules: [
        { effect: 'allow', scopes: ['sign'] },
        { effect: 'deny', operations: ['ATTESTATION'], keys: [nameAt(1), unloaded] },
      ],
    },
    { name: 'look', rules: [{ effect: 'allow', scopes: ['public_keys'] }] },
  ],
  tokens: [
    { secret: TEST_TOKEN, policies: ['full'] },
    { secret: RESTRICTED, policies: ['few'] },
    { secret: NO_VOTES, policies: ['no-votes'] },
    { secret: NO_SIGNING, policies: ['look'] },
  ],
};

describe('a batch', () => {
  const deployment = deploy(40, { static_auth: STATIC_AUTH, signing: { queue_buffer_size: 24 } });
  let signer: RunningSigner;
  beforeAll(async () => {
    signer = await deployment.start();
  });
  afterAll(() => signer.stop());
  let epoch = 1000;
  const vote = (): Record<string, unknown> => {
    epoch += 1;
    return attestation({ source: epoch - 1, target: epoch });
  };
  const refused = (answer: Answer): readonly unknown[] => [answer.status, answer.json['reason']];

  describe('is refused whole', () => {
    const twice = names.slice(0, 2);
    const tooMany = Array.from({ length: 2049 }, (_, place) => `0x${place.toString(16).padStart(96, '0')}`);
    it.each<[string, unknown[], unknown, readonly unknown[]]>([
      ['with a key named twice', [...twice, nameAt(0)], randaoReveal(), [400, 'malformed_body']],
      [
        'with a key named twice in two spellings',
        [...twice, nameAt(1).slice(2).toUpperCase()],
        randaoReveal(),
        [400, 'malformed_body'],
      ],
      ['without keys', [], randaoReveal(), [400, 'malformed_body']],
      ['with more keys than one may name', tooMany, randaoReveal(), [400, 'too_many_items']],
      ['with what is no key', [nameAt(0), '0xdeadbeef'], randaoReveal(), [400, 'malformed_body']],
      ['with a key that is no string', [nameAt(0), 7], randaoReveal(), [400, 'malformed_body']],
      ['without a request', [nameAt(0)], undefined, [400, 'malformed_body']],
      [
        'with a request that is malformed',
        [nameAt(0)],
        { ...randaoReveal(), randao_reveal: {} },
        [400, 'malformed_body'],
      ],
      ['for a block', [nameAt(0)], block(), [400, 'unsupported_operation']],
      ['for an exit', [nameAt(0)], voluntaryExit(), [400, 'unsupported_operation']],
      ['for an unknown type', [nameAt(0)], { ...randaoReveal(), type: 'DEPOSIT' }, [400, 'unsupported_operation']],
      [
        'for another network',
        [nameAt(0)],
        { ...attestation(), fork_info: forkInfo(rootOf(0x33)) },
        [400, 'network_mismatch'],
      ],
      ['with another root', [nameAt(0)], { ...attestation(), signingRoot: rootOf(9) }, [400, 'signing_root_mismatch']],
      ['with fewer places in the queue than keys', names.slice(0, 25), randaoReveal(), [503, 'overloaded']],
    ])('%s', async (_case, identifiers, body, expected) => {
      expect(refused(await batchCall(signer.url, identifiers, body))).toEqual(expected);
    });

    it('when its body is no batch', async () => {
      for (const body of [
        'not json',
        '[]',
        '{"identifiers":[],"identifiers":[]}',
        '{}',
        JSON.stringify(attestation()),
      ]) {
        expect(refused(await call(`${signer.url}/api/v1/eth2/sign`, { body }))).toEqual([400, 'malformed_body']);
      }
    });

    it('says where it is malformed', async () => {
      const bad = { ...attestation(), attestation: { slot: 'x' } };
      const { json } = await batchCall(signer.url, [nameAt(0)], bad);
      expect(json['message']).toContain('signing_request: attestation.slot');
    });

    it('without a token, with one that is unknown, and with one that may sign nothing', async () => {
      const ask = async (token: string | null) =>
        refused(await batchCall(signer.url, [nameAt(0)], randaoReveal(), { token }));
      expect(await ask(null)).toEqual([401, 'missing_credentials']);
      expect(await ask('sr_client_unknown_unknown_unknown')).toEqual([403, 'invalid_token']);
      expect(await ask(NO_SIGNING)).toEqual([403, 'denied']);
    });
  });

  it('takes its places in the queue only while it is signed', async () => {
    for (let round = 0; round < 5; round++) {
      expect(new Set(outcomesOf(await batchCall(signer.url, names.slice(0, 24), vote())))).toEqual(new Set(['signed']));
    }
  });

  it('names a key as the client spelled it', async () => {
    const spelled = [nameAt(0).slice(2), `0x${nameAt(1).slice(2).toUpperCase()}`];
    const results = resultsOf(await batchCall(signer.url, spelled, randaoReveal()));
    expect(results.map(({ identifier }) => identifier)).toEqual(spelled);
    expect(results.every(({ signature }) => signature !== undefined)).toBe(true);
  });

  it('refuses each key for itself: not loaded, not allowed, and an operation that is not', async () => {
    const some = [nameAt(0), nameAt(5), unloaded, nameAt(1), testKey(6000).publicKey];
    expect(outcomesOf(await batchCall(signer.url, some, vote()))).toEqual([
      'signed',
      'signed',
      '404 unknown_key',
      'signed',
      '404 unknown_key',
    ]);
    // Whoever may not use a key does not learn whether it is here.
    expect(outcomesOf(await batchCall(signer.url, some, vote(), { token: RESTRICTED }))).toEqual([
      'signed',
      '403 denied',
      '404 unknown_key',
      'signed',
      '403 denied',
    ]);
    expect(outcomesOf(await batchCall(signer.url, some, vote(), { token: NO_VOTES }))).toEqual([
      'signed',
      'signed',
      '404 unknown_key',
      '403 denied',
      '404 unknown_key',
    ]);
    expect(outcomesOf(await batchCall(signer.url, some.slice(0, 4), randaoReveal(), { token: NO_VOTES }))).toEqual([
      'signed',
      'signed',
      '404 unknown_key',
      'signed',
    ]);
  });

  it('answers each key as the single route does', async () => {
    const body = vote();
    const some = [nameAt(2), unloaded, nameAt(1)];
    const batch = resultsOf(await batchCall(signer.url, some, body, { token: NO_VOTES }));
    for (const [place, name] of some.entries()) {
      const { status, json } = await signCall(signer.url, name, body, { ...JSON_ANSWER, token: NO_VOTES });
      const { signature, error } = batch[place] ?? {};
      const { request_id: _id, ...single } = json;
      expect(signature === undefined ? error : { signature }).toEqual(single);
      expect(error?.code ?? 200).toBe(status);
    }
  });

  it('is counted by key, and leaves one audit line and one for each refusal', async () => {
    // The metrics listener gives the same text for a second: the requests of the tests before are counted when this one
    // is.
    const earlier = { ...randaoReveal(), type: 'AGGREGATION_SLOT', aggregation_slot: { slot: '1' } };
    await batchCall(signer.url, [nameAt(0)], earlier);
    await expect.poll(() => counted('AGGREGATION_SLOT', 'signed'), PATIENCE).toBe(1);
    const signedBefore = await counted('ATTESTATION', 'signed');
    const deniedBefore = await counted('ATTESTATION', 'denied');
    const rejectedBefore = await metric('svc_auth_rejections_total{reason="denied"}');
    const headers = { 'x-request-id': 'the-batch-of-this-test' };
    const some = [nameAt(0), nameAt(1), nameAt(2), unloaded];
    await batchCall(signer.url, some, vote(), { token: NO_VOTES, headers });
    const line = await signer.logged('request', { request_id: 'the-batch-of-this-test' });
    expect(line).toMatchObject({
      ...{ audit: true, scope: 'sign', operation: 'ATTESTATION', outcome: 'ok', status: 200 },
      ...{ keys: 4, signed: 2, refused: 2 },
    });
    const { signing_root, source_epoch, target_epoch } = line;
    expect(signing_root).toMatch(/^0x[0-9a-f]{64}$/);
    expect(line).not.toHaveProperty('public_key');
    const refusals = signer.log.filter(
      ({ msg, request_id }) => msg === 'key of a batch' && request_id === 'the-batch-of-this-test',
    );
    const common = { audit: true, accessor: line['accessor'], client_ip: line['client_ip'], operation: 'ATTESTATION' };
    Object.assign(common, { signing_root, source_epoch, target_epoch });
    expect(target_epoch).toEqual(expect.any(Number));
    expect(refusals).toMatchObject([
      { ...common, public_key: nameAt(1), outcome: 'refused', status: 403, reason: 'denied', denied_by: 'no-votes' },
      { ...common, public_key: unloaded, outcome: 'refused', status: 404, reason: 'unknown_key' },
    ]);
    await expect.poll(() => counted('ATTESTATION', 'signed'), PATIENCE).toBe(signedBefore + 2);
    await expect.poll(() => counted('ATTESTATION', 'denied'), PATIENCE).toBe(deniedBefore + 1);
    // Who tries keys by the batch is seen where denied requests are counted.
    expect(await metric('svc_auth_rejections_total{reason="denied"}')).toBe(rejectedBefore + 1);
  });

  it('is in the OpenAPI document', async () => {
    const { json } = await call(`${signer.url}/api/openapi.json`, { token: null });
    const paths = json['paths'] as Record<string, { post?: { requestBody?: object } }>;
    const body = JSON.stringify(paths['/api/v1/eth2/sign']?.post?.requestBody ?? '');
    expect(body).toContain('"identifiers"');
    expect(body).toContain('"sync_aggregator_selection_data"');
    expect(body).not.toContain('"beacon_block"');
  });

  function counted(operation: string, outcome: string): Promise<number> {
    return metric(`svc_signing_requests_total{operation="${operation}",outcome="${outcome}"}`);
  }

  async function metric(series: string): Promise<number> {
    const text = await (await fetch(signer.metricsUrl)).text();
    const line = text.split('\n').find((candidate) => candidate.startsWith(series));
    return Number(line?.split(' ')[1] ?? 0);
  }
});
