// The whole HTTP application, for tests that talk to its Auth API on one replica's stateful authorization, or that look
// at what stands before its routes. It has no keys and refuses to pretend: whatever would sign or touch slashing
// records throws.

import type { FastifyInstance } from 'fastify';
import { encodeHex } from '../../common/formats/hex.ts';
import { unsafeNoopBackend } from '../../service/noop-store.ts';
import { describeRoutes } from '../../service/openapi/document.ts';
import type { BlsCore } from '../../signer/bls/bls.ts';
import { type AppOptions, type AppParts, buildApp } from '../../signer/http/app.ts';
import { mountAccounts } from '../../signer/http/routes/distributed.ts';
import { mountReload } from '../../signer/http/routes/reload.ts';
import { KeyStore } from '../../signer/keys/store.ts';
import { keyTurns } from '../../signer/keys/turns.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { createPermits } from '../../signer/sign/permits.ts';
import type { RestrainedStore } from '../../signer/slashing/restraints.ts';
import type { SlashingBackend } from '../../signer/slashing/types.ts';
import { inFlightSigning } from '../../signer/tenure.ts';
import { unrestrained } from './restrained.ts';
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
      stateful: stateless ? undefined : auth,
      clock,
      log,
      slashingRecords: {
        backend: recordsOf(importHistories),
        genesisValidatorsRoot: encodeHex(new Uint8Array(32)),
      },
    },
    http,
  );
}

function recordsOf(importHistories: SlashingBackend['importHistories'] = nothing('slashing')): RestrainedStore {
  return unrestrained({ ...unsafeNoopBackend('0x'), exportHistories: nothing('slashing'), importHistories });
}

/**
 * @param parts replace what it would have of each
 * @param http likewise
 * @param everyRoute those too that a configuration turns on
 */
export function keylessApp(
  parts: Pick<AppParts, 'authenticator' | 'clock' | 'log'> & Partial<AppParts>,
  http: Partial<AppOptions> = {},
  { everyRoute = false }: { readonly everyRoute?: boolean } = {},
): Promise<FastifyInstance> {
  const { clock, log } = parts;
  const limits = everyRoute ? ROUTE_LIMITS : undefined;
  const keys = new KeyStore({}, { vault: KEYLESS_CORE, clock });
  if (everyRoute) keys.completeFirstLoad(); // else those that ask for keys are held until they are there
  const inFlight = inFlightSigning();
  return buildApp(
    {
      maxRequestBodyBytes: 2_097_152,
      requestTimeoutSeconds: 30,
      corsAllowedOrigins: null,
      allowedHosts: null,
      clientAddress: { trustProxyHeaders: false, trustedProxyCidrs: [] },
      ...http,
    },
    {
      keys,
      mountAccounts: everyRoute ? mountAccounts : undefined,
      network: publicNetwork('mainnet'),
      core: KEYLESS_CORE,
      slashing: { check: nothing('slashing'), checkGroup: nothing('slashing'), signedBlockRoot: nothing('slashing') },
      permits: createPermits({ maxConcurrentJobs: 1, queueLimit: 1, priorityJobs: 0 }),
      inFlight,
      equivocation: { claim: () => undefined },
      priorityOperations: new Set(),
      canaryKeys: new Set(),
      onCanary: nothing('signing'),
      hindrance: () => undefined,
      readiness: { checks: () => [] },
      chamber: { seal: everyRoute ? nothing('the chamber') : undefined, status: nothing('the chamber') },
      slashingRecords: {
        backend: recordsOf(),
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
            tenures: nothing('slashing'),
            endTenures: nothing('slashing'),
            beginTenures: nothing('slashing'),
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
          options: { encryptBackup: undefined, network: { configName: 'none', genesisForkVersion: new Uint8Array(4) } },
          generate: limits,
          generateKeys: limits,
          backups: limits,
          depositData: limits === undefined ? undefined : { ...limits, allowRecompute: false },
        },
      },
      describeRoutes,
      receipts: everyRoute
        ? {
            routes: {
              log: { boot: '00'.repeat(16), latestHead: undefined },
              storage: { boots: nothing('receipts'), read: nothing('receipts') },
            },
            record: nothing('receipts'),
          }
        : undefined,
      mountOwn: everyRoute
        ? (mounted) => mountReload(mounted, { status: { status: 'idle' }, begin: nothing('a reload') })
        : undefined,
      signingRefusal: () => undefined,
      observer: {
        requestEnded: () => undefined,
        signingEnded: () => undefined,
        authRejected: () => undefined,
        routeFailed: () => undefined,
        requestHealed: () => undefined,
      },
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
