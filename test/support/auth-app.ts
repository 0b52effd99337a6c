// The whole HTTP application, for tests that talk to its Auth API on one replica's stateful authorization, or that look
// at what stands before its routes. It has no keys and refuses to pretend: whatever would sign or touch slashing
// records throws.

import type { FastifyInstance } from 'fastify';
import { type AppDependencies, type AppOptions, buildApp } from '../../enclave/http/app.ts';
import { KeyStore } from '../../enclave/keys/store.ts';
import { keyTurns } from '../../enclave/keys/turns.ts';
import type { BlsCore } from '../../enclave/signing/bls/bls.ts';
import { inFlightSigning } from '../../enclave/signing/in-flight.ts';
import { publicNetwork } from '../../enclave/signing/networks.ts';
import { createPermits } from '../../enclave/signing/permits.ts';
import type { SlashingBackend } from '../../enclave/slashing/types.ts';
import { encodeHex } from '../../formats/hex.ts';
import type { AuthReplica } from './stateful-auth.ts';

export interface AuthAppOptions {
  readonly stateless?: boolean;
  readonly importHistories?: SlashingBackend['importHistories'];
  readonly http?: Partial<AppOptions>;
}

export function authApp(
  { auth, clock, log }: AuthReplica,
  { stateless = false, importHistories, http = {} }: AuthAppOptions = {},
): Promise<FastifyInstance> {
  return keylessApp(
    {
      authenticator: auth,
      auth: stateless ? undefined : auth,
      clock,
      log,
      slashingRecords: {
        backend: { exportHistories: nothing('slashing'), importHistories: importHistories ?? nothing('slashing') },
        genesisValidatorsRoot: encodeHex(new Uint8Array(32)),
      },
    },
    http,
  );
}

/**
 * @param parts replace what it would have of each
 * @param http likewise
 * @param everyRoute those too that a configuration turns on
 */
export function keylessApp(
  parts: Pick<AppDependencies, 'authenticator' | 'clock' | 'log'> & Partial<AppDependencies>,
  http: Partial<AppOptions> = {},
  { everyRoute = false }: { readonly everyRoute?: boolean } = {},
): Promise<FastifyInstance> {
  const { clock, log } = parts;
  const limits = everyRoute ? ROUTE_LIMITS : undefined;
  const keys = new KeyStore({}, { vault: KEYLESS_CORE, clock });
  const inFlight = inFlightSigning();
  return buildApp(
    {
      maxRequestBodyBytes: 2_097_152,
      requestTimeoutSeconds: 30,
      batchMaxKeys: 2048,
      corsAllowedOrigins: null,
      allowedHosts: null,
      clientAddress: { trustProxyHeaders: false, trustedProxyCidrs: [] },
      ...http,
    },
    {
      keys,
      signing: {
        network: publicNetwork('mainnet'),
        core: KEYLESS_CORE,
        slashing: { check: nothing('slashing'), checkGroup: nothing('slashing') },
        permits: createPermits({ maxConcurrentJobs: 1, queueLimit: 1, priorityJobs: 0 }),
        inFlight,
        equivocation: { claim: () => undefined },
        priorityOperations: new Set(),
        canaryKeys: new Set(),
        onCanary: nothing('signing'),
      },
      readiness: { checks: () => [] },
      chamber: { seal: everyRoute ? nothing('the chamber') : undefined, status: nothing('the chamber') },
      slashingRecords: {
        backend: { exportHistories: nothing('slashing'), importHistories: nothing('slashing') },
        genesisValidatorsRoot: encodeHex(new Uint8Array(32)),
      },
      keyRoutes: {
        management: {
          store: keys,
          get pool() {
            return nothing('the keystore pool')();
          },
          table: undefined,
          slashing: {
            merge: nothing('slashing'),
            export: nothing('slashing'),
            retire: nothing('slashing'),
            retired: nothing('slashing'),
            reinstate: nothing('slashing'),
            assertInForce: nothing('slashing'),
          },
          drain: inFlight.drain,
          turns: keyTurns(),
          log,
        },
        keyManager: limits === undefined ? undefined : { ...limits, maxConcurrentReads: 4, maxConcurrentWrites: 4 },
        chamber: {
          list: { maxConcurrentRequests: 16, requestTimeoutSeconds: 30 },
          import: limits,
          lifecycle: limits,
        },
        generate: {
          options: { backupRecipients: [], network: { configName: 'none', genesisForkVersion: new Uint8Array(4) } },
          generate: limits,
          generateKeys: limits,
          depositData: limits === undefined ? undefined : { ...limits, allowRecompute: false },
        },
      },
      reload: everyRoute ? { status: { status: 'idle' }, begin: nothing('a reload') } : undefined,
      signingRefusal: () => undefined,
      observer: { requestEnded: () => undefined, signingEnded: () => undefined, authRejected: () => undefined },
      ...parts,
    },
  );
}

const ROUTE_LIMITS = { maxConcurrentRequests: 4, requestTimeoutSeconds: 5, maxItemsPerRequest: 4 };

function nothing(what: string): () => never {
  return () => {
    throw new Error(`${what} is not part of this test`);
  };
}

const KEYLESS_CORE: BlsCore = {
  kind: 'portable',
  memoryLocked: false,
  unlockedKeys: () => 0,
  addKey: nothing('a key'),
  addKeys: nothing('a key'),
  removeKey: () => undefined,
  sign: nothing('signing'),
  signGroup: nothing('signing'),
  load: () => ({ queued: 0, running: 0 }),
  wipe: () => undefined,
  close: () => Promise.resolve(),
};
