// Each status of specification/signing.md#errors that this version can reach, over HTTP, in the order of
// specification/signing.md#refusal-order.

import { writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { deploy, FULL_ACCESS } from '../support/deployment.ts';
import { expectNoList } from '../support/no-list.ts';
import {
  type Answer,
  attestation,
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

const RESTRICTED = 'sr_client_TEST_TOKEN_that_may_use_one_key_00001';
const NO_EXITS = 'sr_client_TEST_TOKEN_that_may_not_exit_00000001';
const ELSEWHERE = 'sr_client_TEST_TOKEN_bound_to_another_net_00001';
const [first, second, unloaded] = [testKey(0), testKey(1), testKey(99)];

const deployment = deploy(2, {
  server: { max_request_body_bytes: 4096 },
  static_auth: {
    policies: [
      FULL_ACCESS,
      { name: 'one-key', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'], keys: [first.publicKey] }] },
      {
        name: 'no-exits',
        rules: [
          { effect: 'allow', scopes: ['sign'] },
          { effect: 'deny', operations: ['VOLUNTARY_EXIT'] },
        ],
      },
    ],
    tokens: [
      { secret: TEST_TOKEN, policies: ['full'] },
      { secret: RESTRICTED, policies: ['one-key'] },
      { secret: NO_EXITS, policies: ['no-exits'] },
      { secret: ELSEWHERE, policies: ['full'], bound_cidrs: ['10.0.0.0/8'] },
    ],
  },
});
let signer: RunningSigner;
beforeAll(async () => {
  signer = await deployment.start();
});
afterAll(() => signer.stop());

const sign = (body: unknown, options: Parameters<typeof signCall>[3] & { key?: string } = {}): Promise<Answer> =>
  signCall(signer.url, options.key ?? first.publicKey, body, options);

function expectError(answer: Answer, status: number, reason: string): void {
  expect(answer.json).toMatchObject({ code: status, reason });
  expect(answer.status).toBe(status);
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
  expect(answer.json['request_id']).toBe(answer.headers.get('x-request-id'));
  expect(Object.keys(answer.json).sort()).toEqual(['code', 'message', 'reason', 'request_id']);
}

describe('400', () => {
  it.each([
    ['a body that is not JSON', 'not json', 'malformed_body'],
    ['an empty body', '', 'malformed_body'],
    ['a missing type', { fork_info: forkInfo() }, 'malformed_body'],
    ['a missing message', { type: 'ATTESTATION', fork_info: forkInfo() }, 'malformed_body'],
    ['a missing fork_info', { ...attestation(), fork_info: undefined }, 'malformed_body'],
    ['a negative slot', { ...randaoReveal(), randao_reveal: { epoch: '-1' } }, 'malformed_body'],
    ['BLOCK', { ...attestation(), type: 'BLOCK' }, 'unsupported_operation'],
    ['DEPOSIT', { ...attestation(), type: 'DEPOSIT' }, 'unsupported_operation'],
    ['an unknown type', { ...attestation(), type: 'FROBNICATE' }, 'unsupported_operation'],
    ['a wrong signingRoot', { ...attestation(), signingRoot: rootOf(9) }, 'signing_root_mismatch'],
    ['a wrong signing_root', { ...attestation(), signing_root: rootOf(9) }, 'signing_root_mismatch'],
    ['another network', { ...attestation(), fork_info: forkInfo(rootOf(0x33)) }, 'network_mismatch'],
  ])('%s', async (_case, body, reason) => expectError(await sign(body), 400, reason));

  it('a network mismatch tells the client nothing of the configured network, and the log everything', async () => {
    const answer = await sign({ ...attestation(), fork_info: forkInfo(rootOf(0x44)) });
    expect(answer.text).not.toMatch(/mainnet|4b363db9/);
    const received = { received_genesis_validators_root: rootOf(0x44).slice(2) };
    expect(await signer.logged('network_mismatch', received)).toMatchObject({ network: 'mainnet' });
  });
});

describe('401', () => {
  it('no token', async () => {
    const answer = await sign(attestation(), { token: null });
    expectError(answer, 401, 'missing_credentials');
    expect(answer.headers.get('www-authenticate')).toBe('Basic realm="strongroom", Bearer');
  });

  it.each(['Digest x', 'Bearer', 'Basic %%%', 'Basic bm9jb2xvbg=='])('malformed or unsupported: %s', async (header) => {
    const answer = await sign(attestation(), { token: null, headers: { authorization: header } });
    expectError(answer, 401, 'malformed_credentials');
  });
});

describe('403', () => {
  it('a token that is present but unknown is never anonymous', async () => {
    expectError(await sign(attestation(), { token: 'sr_client_unknown_unknown_unknown' }), 403, 'invalid_token');
  });
  it('a token from outside its networks', async () => {
    expectError(await sign(attestation(), { token: ELSEWHERE }), 403, 'peer_not_allowed');
  });
  it('a key that is not in the list, whether it is loaded or not: the inventory does not leak', async () => {
    for (const { publicKey } of [second, unloaded]) {
      expectError(await sign(attestation(), { token: RESTRICTED, key: publicKey }), 403, 'denied');
    }
  });
  it('an operation that is denied', async () => {
    expectError(await sign(voluntaryExit(), { token: NO_EXITS }), 403, 'denied');
    expect((await sign(randaoReveal(), { token: NO_EXITS })).status).toBe(200);
  });
  it('a scope that is not permitted', async () => {
    expectError(await call(`${signer.url}/api/v1/eth2/highWatermark`, { token: NO_EXITS }), 403, 'denied');
    await expectNoList(call(`${signer.url}/api/v1/eth2/publicKeys`, { token: NO_EXITS }));
  });
});

describe('404', () => {
  it.each(['0xdeadbeef', unloaded.publicKey, 'not-a-key'])('a key that is not loaded: %s', async (key) => {
    expectError(await sign(attestation(), { key }), 404, 'unknown_key');
  });
  it('an unknown path', async () => expectError(await call(`${signer.url}/nowhere`, { body: {} }), 404, 'not_found'));
  it('routes that are not enabled are not mounted', async () => {
    for (const path of ['/eth/v1/keystores', '/api/v1/auth/policies', '/api/v1/chamber/seal']) {
      expectError(await call(`${signer.url}${path}`), 404, 'not_found');
    }
    for (const path of ['/api/v1/chamber/keys', '/api/v1/chamber/keys/generate']) {
      expectError(await call(`${signer.url}${path}`, { body: {} }), 404, 'not_found');
    }
  });
});

describe('412', () => {
  it('a second block of a slot', async () => {
    expect((await sign(block({ slot: 5000 }))).status).toBe(200);
    expectError(await sign(block({ slot: 5000, body: rootOf(8) })), 412, 'double_block');
    expect((await sign(block({ slot: 5000 }))).status).toBe(200);
  });
  it('a double vote, a surrounding and a surrounded vote', async () => {
    expect((await sign(attestation({ source: 100, target: 110 }))).status).toBe(200);
    expect((await sign(attestation({ source: 111, target: 115 }))).status).toBe(200);
    expectError(await sign(attestation({ source: 100, target: 110, head: rootOf(8) })), 412, 'double_vote');
    expectError(await sign(attestation({ source: 105, target: 120 })), 412, 'surrounding_vote');
    expectError(await sign(attestation({ source: 112, target: 114 })), 412, 'surrounded_vote');
  });
  it('a source after its target', async () => {
    expectError(await sign(attestation({ source: 900, target: 899 })), 412, 'source_after_target');
  });
});

describe('413', () => {
  it('an announced size over the limit, before credentials are looked at', async () => {
    expectError(await sign(JSON.stringify({ padding: 'x'.repeat(5000) }), { token: null }), 413, 'body_too_large');
  });

  it('a body that grows over the limit without announcing it', async () => {
    const { hostname, port } = new URL(signer.url);
    const status = await new Promise((resolve, reject) => {
      const path = `/api/v1/eth2/sign/${first.publicKey}`;
      const headers = { authorization: `Bearer ${TEST_TOKEN}`, 'transfer-encoding': 'chunked' };
      const sending = httpRequest({ hostname, port, path, method: 'POST', headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sending.on('error', reject);
      sending.end('x'.repeat(10_000));
    });
    expect(status).toBe(413);
  });
});

describe('the order of refusal', () => {
  it('unknown key comes before the body is looked at', async () => {
    expectError(await sign('not json', { key: unloaded.publicKey }), 404, 'unknown_key');
  });
  it('credentials come before the key', async () => {
    expectError(await sign('not json', { key: unloaded.publicKey, token: null }), 401, 'missing_credentials');
  });
  it('a malformed body comes before another network', async () => {
    const body = { ...attestation(), fork_info: forkInfo(rootOf(0x33)), attestation: {} };
    expectError(await sign(body), 400, 'malformed_body');
  });
});

describe('503', () => {
  it('a full queue, at once and with Retry-After, and what was accepted is answered', async () => {
    const own = deploy(1, { signing: { max_concurrent_jobs: 1, queue_buffer_size: 2 } });
    const small = await own.start();
    // A lock on the database holds the one permit; the queue behind it fills up.
    const database = new DatabaseSync(join(own.folder, 'slashing_protection.sqlite'));
    database.exec('BEGIN EXCLUSIVE');
    const requests = Array.from({ length: 40 }, (_, target) =>
      signCall(small.url, first.publicKey, attestation({ source: 1, target: 2 + target })),
    );
    await Promise.race(requests);
    database.exec('ROLLBACK');
    database.close();
    const answers = await Promise.all(requests);
    const refused = answers.filter(({ json }) => json['reason'] === 'overloaded');
    expect(refused.length).toBeGreaterThan(0);
    for (const answer of refused) {
      expectError(answer, 503, 'overloaded');
      expect(answer.headers.get('retry-after')).toBe('1');
    }
    const rest = answers.filter((answer) => !refused.includes(answer));
    expect(rest.length).toBeGreaterThan(0);
    expect(rest.filter(({ status, json }) => status !== 200 && json['reason'] !== 'slashing_unavailable')).toEqual([]);
    expect((await signCall(small.url, first.publicKey, attestation({ source: 50, target: 60 }))).status).toBe(200);
    await small.stop();
  });

  it('publicKeys and unknown keys while keys are still being loaded', async () => {
    const own = deploy(1);
    const folder = join(own.folder, 'keys');
    // A keystore of EIP-2335's own scrypt cost keeps the load busy for most of a second; one is read after the other.
    const keystore = {
      crypto: {
        kdf: {
          function: 'scrypt',
          params: { dklen: 32, n: 262_144, r: 8, p: 1, salt: rootOf(1).slice(2) },
          message: '',
        },
        checksum: { function: 'sha256', params: {}, message: rootOf(2).slice(2) },
        cipher: { function: 'aes-128-ctr', params: { iv: rootOf(3).slice(2, 34) }, message: rootOf(4).slice(2) },
      },
      pubkey: unloaded.publicKey.slice(2),
      path: '',
      uuid: '64625def-3331-4eea-ab6f-782f3ed16a83',
      version: 4,
    };
    writeFileSync(join(folder, 'slow.json'), JSON.stringify(keystore));
    writeFileSync(join(folder, 'slow.password'), 'TEST');
    const descriptor =
      'type: file-keystore\nkeyType: BLS\nkeystoreFile: slow.json\nkeystorePasswordFile: slow.password\n';
    for (let copy = 0; copy < 3; copy += 1) writeFileSync(join(folder, `slow-${copy}.yaml`), descriptor);
    const key_sources = { filesystem: { paths: [folder], keystore_load_concurrency: 1 } };
    const loading = await own.start({ waitFor: 'listening', config: { key_sources } });
    const held = [
      call(`${loading.url}/api/v1/eth2/publicKeys`),
      signCall(loading.url, unloaded.publicKey, randaoReveal()),
    ] as const;
    const early = await call(`${loading.url}/healthcheck`, { token: null });
    expect(early.status).toBe(503);
    const told = (early.json['checks'] as { id: string; detail?: string; loading?: object }[]).find(
      ({ id }) => id === 'keys',
    );
    expect(told?.detail).toMatch(/^keys are still being loaded: (\d+ so far|[0-3] of 3(, about \d+ (s|min) left)?)$/);
    expect(told?.loading).toMatchObject({ done: expect.any(Number) });
    await loading.logged('ready');
    expect((await held[0]).text).toBe(JSON.stringify([first.publicKey]));
    expectError(await held[1], 404, 'unknown_key');
    // The bad keystores are counted, and the signer says so.
    const health = await call(`${loading.url}/healthcheck`, { token: null });
    expect(health.status).toBe(503);
    expect(health.json['checks']).toContainEqual({
      id: 'keys',
      status: 'DOWN',
      detail: '3 key files could not be loaded',
    });
    await loading.stop();
  });
});
