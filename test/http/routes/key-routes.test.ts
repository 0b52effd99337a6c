// The limits of the key routes, each route for itself: what is mounted, how much at once, how long, and for whom.

import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createStaticAuthenticator } from '../../../enclave/auth/static.ts';
import { buildApp, type KeyRoutes } from '../../../enclave/http/app.ts';
import { KeystorePool } from '../../../enclave/keys/keystores/pool.ts';
import { KeyStore } from '../../../enclave/keys/store.ts';
import { keyTurns } from '../../../enclave/keys/turns.ts';
import type { BlsCore } from '../../../enclave/signing/bls/bls.ts';
import { openBlsCore } from '../../../enclave/signing/bls/open.ts';
import { type InFlightSigning, inFlightSigning } from '../../../enclave/signing/in-flight.ts';
import { publicNetwork } from '../../../enclave/signing/networks.ts';
import { createPermits } from '../../../enclave/signing/permits.ts';
import { exportInterchangeText, mergeInterchangeText } from '../../../enclave/slashing/interchange/text.ts';
import { unsafeNoopBackend } from '../../../enclave/slashing/noop.ts';
import { SlashingProtection } from '../../../enclave/slashing/protection.ts';
import { encodeHex } from '../../../formats/hex.ts';
import { systemClock } from '../../../observe/clock.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../../support/keys.ts';
import { LONGEST_WAIT_MS } from '../../support/patience.ts';
import { recordingLog } from '../../support/recording-log.ts';

const TOKEN = 'TEST token that may do everything';
const GENERATOR = 'TEST token that may generate keys';
const KEY = publicKeyOf(testSecret(1));
const KEYSTORES = '/eth/v1/keystores';
const CHAMBER = '/api/v1/chamber/keys';
const network = publicNetwork('mainnet');
const MINUTE = 60;

let core: BlsCore;
let pool: KeystorePool;
let inFlight: InFlightSigning;
let app: FastifyInstance | undefined;
const log = recordingLog();

beforeEach(async () => {
  core = await openBlsCore({ prefer: 'portable', cores: 1, log });
  pool = new KeystorePool({ keystoreLoadConcurrency: 1, memoryLimitBytes: 2 ** 31, cores: 1 }, { log });
  inFlight = inFlightSigning();
});
afterEach(async () => {
  await app?.close();
  await pool.close();
  await core.close();
});

type Limits = Pick<KeyRoutes, 'keyManager'> & { readonly chamber?: Partial<KeyRoutes['chamber']> };

const NOTHING = { generate: undefined, generateKeys: undefined, depositData: undefined };
const keyManagerOf = (limits: Partial<NonNullable<KeyRoutes['keyManager']>> = {}) => ({
  maxConcurrentReads: 2,
  maxConcurrentWrites: 1,
  requestTimeoutSeconds: MINUTE,
  maxItemsPerRequest: 3,
  ...limits,
});
const limitsOf = (limits: object = {}) => ({
  maxConcurrentRequests: 1,
  requestTimeoutSeconds: MINUTE,
  maxItemsPerRequest: 3,
  ...limits,
});

async function mount({ keyManager, chamber = {} }: Limits): Promise<FastifyInstance> {
  const keys = new KeyStore({}, { vault: core, clock: systemClock });
  keys.add(testSecret(1), 'memory');
  keys.completeFirstLoad();
  const records = {
    backend: unsafeNoopBackend(encodeHex(network.genesisValidatorsRoot)),
    genesisValidatorsRoot: encodeHex(network.genesisValidatorsRoot),
  };
  app = await buildApp(
    {
      maxRequestBodyBytes: 2_097_152,
      requestTimeoutSeconds: 30,
      batchMaxKeys: 2048,
      corsAllowedOrigins: null,
      allowedHosts: null,
      clientAddress: { trustProxyHeaders: false, trustedProxyCidrs: [] },
    },
    {
      authenticator: createStaticAuthenticator({
        policies: [
          { name: 'all', rules: [{ effect: 'allow' }] },
          { name: 'generate', rules: [{ effect: 'allow', scopes: ['chamber_keys_generate'] }] },
        ],
        anonymousPolicies: [],
        tokens: [
          { secret: Buffer.from(TOKEN), policies: ['all'], boundCidrs: [] },
          { secret: Buffer.from(GENERATOR), policies: ['generate'], boundCidrs: [] },
        ],
      }),
      keys,
      signing: {
        network,
        core,
        slashing: new SlashingProtection(records.backend, {}, { clock: systemClock, log }),
        permits: createPermits({ maxConcurrentJobs: 1, queueLimit: 1, priorityJobs: 0 }),
        inFlight,
        equivocation: { claim: () => undefined },
        priorityOperations: new Set(),
        canaryKeys: new Set(),
        onCanary: () => undefined,
      },
      readiness: { checks: () => [] },
      chamber: { seal: undefined, status: () => Promise.reject(new Error('not part of this test')) },
      slashingRecords: records,
      keyRoutes: {
        management: {
          store: keys,
          pool,
          table: undefined,
          slashing: {
            merge: (text, allows) => mergeInterchangeText(text, allows, records),
            export: (publicKeys) => exportInterchangeText(publicKeys, records),
            retire: (publicKeys) => records.backend.retire(publicKeys),
            retired: (publicKeys) => records.backend.retiredKeys(publicKeys),
            reinstate: (publicKeys) => records.backend.reinstate(publicKeys),
            assertInForce: () => undefined,
          },
          drain: inFlight.drain,
          turns: keyTurns(),
          log,
        },
        keyManager,
        chamber: { list: limitsOf(), import: undefined, lifecycle: undefined, ...chamber },
        generate: { options: { backupRecipients: [], network }, ...NOTHING, generateKeys: limitsOf() },
      },
      signingRefusal: () => undefined,
      observer: { requestEnded: () => undefined, signingEnded: () => undefined, authRejected: () => undefined },
      clock: systemClock,
      log,
    },
  );
  return app;
}

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

async function ask(method: Method, url: string, body?: unknown, token = TOKEN) {
  const answer = await app?.inject({
    method,
    url,
    headers: { authorization: `Bearer ${token}` },
    ...(body === undefined ? {} : { payload: Buffer.from(JSON.stringify(body)) }),
  });
  if (answer === undefined) throw new Error('nothing is mounted');
  return { status: answer.statusCode, headers: answer.headers, json: answer.json<Record<string, unknown>>() };
}

const keystore = (number: number): string => JSON.stringify(encryptKeystore(testSecret(number), 'password'));
const importOf = (...numbers: number[]) => ({
  keystores: numbers.map(keystore),
  passwords: numbers.map(() => 'password'),
});

describe('a route that is not enabled is not there', () => {
  it('only the inventory is, always', async () => {
    await mount({ keyManager: undefined });
    for (const method of ['GET', 'POST', 'DELETE'] as const) {
      expect(await ask(method, KEYSTORES)).toMatchObject({ status: 404, json: { reason: 'not_found' } });
    }
    for (const method of ['POST', 'PATCH', 'DELETE'] as const) {
      expect(await ask(method, CHAMBER)).toMatchObject({ status: 404, json: { reason: 'not_found' } });
    }
    expect((await ask('POST', `${CHAMBER}/generate`)).status).toBe(404);
    expect((await ask('POST', `${CHAMBER}/deposit-data`)).status).toBe(404);
    expect(await ask('GET', CHAMBER)).toMatchObject({
      status: 200,
      json: { keys: [{ pubkey: KEY }], next_cursor: null },
    });
  });

  it('import and lifecycle are enabled one by one', async () => {
    await mount({ keyManager: undefined, chamber: { import: limitsOf() } });
    const body = { ...importOf(2), storage: { persist: false } };
    expect((await ask('POST', CHAMBER, body)).status).toBe(200);
    expect((await ask('DELETE', CHAMBER, { pubkeys: [KEY] })).status).toBe(404);
  });
});

describe('more requests at once than a route may have', () => {
  it('DELETE and GET of the Key Manager API share one limit: 503 overloaded with Retry-After', async () => {
    await mount({ keyManager: keyManagerOf() });
    inFlight.begin(KEY); // a signature that does not end: both deletes wait for it
    const deletes = [1, 2].map(() => ask('DELETE', KEYSTORES, { pubkeys: [KEY] }));
    await vi.waitFor(async () => {
      const refused = await ask('GET', KEYSTORES);
      expect(refused).toMatchObject({ status: 503, json: { reason: 'overloaded' } });
      expect(refused.headers['retry-after']).toBeDefined();
    }, LONGEST_WAIT_MS);
    expect((await ask('POST', KEYSTORES, importOf(2))).status).toBe(200); // writes have a limit of their own
    inFlight.end(KEY);
    const answers = await Promise.all(deletes);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(answers.map(({ json }) => (json['data'] as { status: string }[])[0]?.status)).toEqual([
      'deleted',
      'not_found',
    ]);
    expect((await ask('GET', KEYSTORES)).status).toBe(200);
  });

  it('PATCH and DELETE of the chamber share one, and the inventory has another', async () => {
    await mount({ keyManager: undefined, chamber: { lifecycle: limitsOf() } });
    inFlight.begin(KEY);
    const deleting = ask('DELETE', CHAMBER, { pubkeys: [KEY] });
    await vi.waitFor(async () => {
      expect(await ask('PATCH', CHAMBER, { keys: [] })).toMatchObject({ status: 503, json: { reason: 'overloaded' } });
    }, LONGEST_WAIT_MS);
    expect((await ask('GET', CHAMBER)).status).toBe(200);
    inFlight.end(KEY);
    expect((await deleting).status).toBe(200);
  });
});

describe('a request that takes longer than its route allows', () => {
  it('is answered 503 request_timeout, and holds its place until its work ends', async () => {
    await mount({ keyManager: keyManagerOf({ maxConcurrentReads: 1, requestTimeoutSeconds: 0.02 }) });
    inFlight.begin(KEY);
    expect(await ask('DELETE', KEYSTORES, { pubkeys: [KEY] })).toMatchObject({
      status: 503,
      json: { reason: 'request_timeout' },
    });
    expect(await ask('GET', KEYSTORES)).toMatchObject({ status: 503, json: { reason: 'overloaded' } });
    inFlight.end(KEY);
    await vi.waitFor(async () => expect((await ask('GET', KEYSTORES)).status).toBe(200), LONGEST_WAIT_MS);
  });

  it('imports nothing when the time is over before the keystores are open', async () => {
    await mount({ keyManager: keyManagerOf({ requestTimeoutSeconds: 0.001 }) });
    const slow = JSON.stringify(encryptKeystore(testSecret(3), 'password', { kind: 'pbkdf2', iterations: 2 ** 18 }));
    const body = { keystores: [slow, slow], passwords: ['password', 'password'] };
    expect(await ask('POST', KEYSTORES, body)).toMatchObject({ status: 503, json: { reason: 'request_timeout' } });
    // The place is free again when the work has ended, and then nothing came of it.
    await vi.waitFor(
      async () => expect((await ask('POST', KEYSTORES, { keystores: [] })).status).toBe(200),
      LONGEST_WAIT_MS,
    );
    expect((await ask('GET', KEYSTORES)).json['data']).toEqual([{ validating_pubkey: KEY, readonly: false }]);
  });
});

describe('requests of the chamber', () => {
  it.each<[string, Method, unknown]>([
    ['an import without storage', 'POST', importOf(2)],
    ['an import into a table that is not there', 'POST', { ...importOf(2), storage: { persist: true } }],
    ['an import with a member too many', 'POST', { ...importOf(2), storage: { persist: false }, extra: 1 }],
    ['a status that is none', 'PATCH', { keys: [{ pubkey: KEY, status: 'asleep' }] }],
    ['a key that is named twice', 'PATCH', { keys: [1, 2].map(() => ({ pubkey: KEY, status: 'active' })) }],
    ['a key that is none', 'DELETE', { pubkeys: ['0x12'] }],
  ])('%s is 400', async (_, method, body) => {
    await mount({ keyManager: undefined, chamber: { import: limitsOf(), lifecycle: limitsOf() } });
    expect(await ask(method, CHAMBER, body)).toMatchObject({ status: 400, json: { reason: 'malformed_body' } });
  });

  it('naming more keys than they may are 400 too_many_items', async () => {
    await mount({ keyManager: undefined, chamber: { import: limitsOf(), lifecycle: limitsOf() } });
    const keys = [4, 5, 6, 7].map((number) => publicKeyOf(testSecret(number)));
    const many = { status: 400, json: { reason: 'too_many_items' } };
    expect(await ask('POST', CHAMBER, { ...importOf(4, 5, 6, 7), storage: { persist: false } })).toMatchObject(many);
    expect(await ask('DELETE', CHAMBER, { pubkeys: keys })).toMatchObject(many);
    const changes = keys.map((pubkey) => ({ pubkey, status: 'active' }));
    expect(await ask('PATCH', CHAMBER, { keys: changes })).toMatchObject(many);
  });

  it('without a table: keys of memory cannot be inactive, and are deleted', async () => {
    await mount({ keyManager: undefined, chamber: { lifecycle: limitsOf() } });
    const patch = await ask('PATCH', CHAMBER, { keys: [{ pubkey: KEY, status: 'inactive' }] });
    expect(patch.json['data']).toMatchObject([{ pubkey: KEY, status: 'error' }]);
    const deleted = await ask('DELETE', CHAMBER, { pubkeys: [KEY] });
    expect(deleted.json['data']).toEqual([{ pubkey: KEY, status: 'deleted' }]);
  });

  it.each(['limit=0', 'limit=1001', 'limit=many', 'status=asleep', 'source=cloud', 'cursor=nowhere', 'page=2'])(
    'the inventory refuses ?%s',
    async (query) => {
      await mount({ keyManager: undefined });
      expect(await ask('GET', `${CHAMBER}?${query}`)).toMatchObject({
        status: 400,
        json: { reason: 'malformed_parameter' },
      });
    },
  );
});

describe('what is wrong with a request is said in plain words', () => {
  it.each([
    [{ count: 0 }, 'count: must be at least 1'],
    [{ count: 1.5 }, 'count: must be a whole number'],
    [{ count: 'one' }, 'count: must be a whole number'],
    [{}, 'count: is required'],
    [{ count: 1, cuont: 2 }, 'has members that do not exist: "cuont"'],
    [[], 'must be an object'],
  ])('a body %j', async (body, said) => {
    await mount({ keyManager: undefined });
    const { status, json } = await ask('POST', `${CHAMBER}/generate-keys`, body);
    expect({ status, reason: json['reason'] }).toEqual({ status: 400, reason: 'malformed_body' });
    expect(json['message']).toMatch(new RegExp(`: ${said}$`));
  });

  it.each([
    ['limit=0', 'limit: must be at least 1'],
    ['limit=1001', 'limit: must be at most 1000'],
    ['limit=many', 'limit: must be a whole number'],
    ['status=asleep', 'status: must be one of active, inactive'],
    ['cursor=', 'cursor: must not be empty'],
  ])('a query ?%s', async (query, said) => {
    await mount({ keyManager: undefined });
    const { json } = await ask('GET', `${CHAMBER}?${query}`);
    expect(json['message']).toMatch(new RegExp(`: ${said}$`));
  });
});

describe('generate-keys', () => {
  it('is open to either scope of generating', async () => {
    await mount({ keyManager: undefined });
    // There is no table here: who is admitted gets as far as that.
    expect((await ask('POST', `${CHAMBER}/generate-keys`, { count: 1 }, GENERATOR)).status).toBe(503);
  });
});
