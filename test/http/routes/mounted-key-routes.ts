// The key routes on a real store, core and pool, new for every test, under limits that the test chooses, and requests
// to them. All keys and tokens are TEST ones.

import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach } from 'vitest';
import { encodeHex } from '../../../common/formats/hex.ts';
import { systemClock } from '../../../common/observe/clock.ts';
import { unsafeNoopBackend } from '../../../service/noop-store.ts';
import { createStaticAuthenticator } from '../../../signer/auth/static.ts';
import type { BlsCore } from '../../../signer/bls/bls.ts';
import { openBlsCore } from '../../../signer/bls/open-either.ts';
import { buildApp, type KeyRoutes } from '../../../signer/http/app.ts';
import { exportInterchangeText, mergeInterchangeText } from '../../../signer/http/bodies/interchange.ts';
import { KeystorePool } from '../../../signer/keys/keystores/pool.ts';
import { KeyStore } from '../../../signer/keys/store.ts';
import { keyTurns } from '../../../signer/keys/turns.ts';
import { publicNetwork } from '../../../signer/sign/networks.ts';
import { createPermits } from '../../../signer/sign/permits.ts';
import { SlashingProtection } from '../../../signer/slashing/protection.ts';
import { type InFlightSigning, inFlightSigning } from '../../../signer/tenure.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../../support/keys.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { unrestrained } from '../../support/restrained.ts';

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

const NOTHING = { generate: undefined, generateKeys: undefined, backups: undefined, depositData: undefined };
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
    backend: unrestrained(unsafeNoopBackend(encodeHex(network.genesisValidatorsRoot))),
    genesisValidatorsRoot: encodeHex(network.genesisValidatorsRoot),
  };
  app = await buildApp(
    {
      maxRequestBodyBytes: 2_097_152,
      requestTimeoutSeconds: 30,
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
      network,
      core,
      slashing: new SlashingProtection(records.backend, {}, { clock: systemClock, log }),
      permits: createPermits({ maxConcurrentJobs: 1, queueLimit: 1, priorityJobs: 0 }),
      inFlight,
      equivocation: { claim: () => undefined },
      priorityOperations: new Set(),
      canaryKeys: new Set(),
      onCanary: () => undefined,
      hindrance: () => undefined,
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
            tenures: (publicKeys) => records.backend.tenures(publicKeys),
            endTenures: (publicKeys) => records.backend.endTenures(publicKeys),
            beginTenures: (from) => records.backend.beginTenures(from),
            assertInForce: () => undefined,
          },
          drain: inFlight.drain,
          turns: keyTurns(),
          log,
        },
        keyManager,
        chamber: { list: limitsOf(), import: undefined, lifecycle: undefined, ...chamber },
        generate: { options: { encryptBackup: undefined, network }, ...NOTHING, generateKeys: limitsOf(), ...generate },
      },
      signingRefusal: () => undefined,
      observer: {
        requestEnded: () => undefined,
        signingEnded: () => undefined,
        authRejected: () => undefined,
        routeFailed: () => undefined,
        requestHealed: () => undefined,
      },
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
