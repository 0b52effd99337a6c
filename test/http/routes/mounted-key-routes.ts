// The key routes on a real store, core and pool, new for every test, under limits that the test chooses, and requests
// to them. All keys and tokens are TEST ones.

import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach } from 'vitest';
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
import { recordingLog } from '../../support/recording-log.ts';

const TOKEN = 'TEST token that may do everything';
export const GENERATOR = 'TEST token that may generate keys';
export const KEY = publicKeyOf(testSecret(1));
export const KEYSTORES = '/eth/v1/keystores';
export const CHAMBER = '/api/v1/chamber/keys';
const network = publicNetwork('mainnet');
const MINUTE = 60;

let core: BlsCore;
let pool: KeystorePool;
export let inFlight: InFlightSigning;
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

type Limits = Pick<KeyRoutes, 'keyManager'> & {
  readonly chamber?: Partial<KeyRoutes['chamber']>;
  readonly generate?: Partial<KeyRoutes['generate']>;
};

const NOTHING = { generate: undefined, generateKeys: undefined, depositData: undefined };
export const keyManagerOf = (limits: Partial<NonNullable<KeyRoutes['keyManager']>> = {}) => ({
  maxConcurrentReads: 2,
  maxConcurrentWrites: 1,
  requestTimeoutSeconds: MINUTE,
  maxItemsPerRequest: 3,
  ...limits,
});
export const limitsOf = (limits: object = {}) => ({
  maxConcurrentRequests: 1,
  requestTimeoutSeconds: MINUTE,
  maxItemsPerRequest: 3,
  ...limits,
});

export async function mount({ keyManager, chamber = {}, generate = {} }: Limits): Promise<FastifyInstance> {
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
        generate: { options: { backupRecipients: [], network }, ...NOTHING, generateKeys: limitsOf(), ...generate },
      },
      signingRefusal: () => undefined,
      observer: { requestEnded: () => undefined, signingEnded: () => undefined, authRejected: () => undefined },
      clock: systemClock,
      log,
    },
  );
  return app;
}

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

export async function ask(method: Method, url: string, body?: unknown, token = TOKEN) {
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
export const importOf = (...numbers: number[]) => ({
  keystores: numbers.map(keystore),
  passwords: numbers.map(() => 'password'),
});
