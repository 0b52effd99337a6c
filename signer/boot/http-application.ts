// Step "HTTP application": the parts that a request passes through.

import type { FastifyInstance } from 'fastify';
import { encodeHex } from '../../common/formats/hex.ts';
import { ERROR_REASONS } from '../api/errors.ts';
import type { HealthCheck, KeysLoading } from '../api/health.ts';
import type { Operation } from '../api/operations.ts';
import type { Authenticator } from '../auth/authenticator.ts';
import type { StatefulAuthenticator } from '../auth/stateful/stateful.ts';
import type { Latch } from '../chamber/state-rows.ts';
import type { StoreBinding } from '../chamber/store-binding.ts';
import type { Watcher } from '../chamber/watcher.ts';
import type { Config } from '../config/options.ts';
import { buildApp, type DescribeRoutes, type MountRoutes } from '../http/app.ts';
import type { AttestationRoute } from '../http/routes/attestation.ts';
import type { Readiness } from '../http/routes/health.ts';
import type { KeyStore } from '../keys/store.ts';
import type { KeyTurns } from '../keys/turns.ts';
import type { BlsCore } from '../signing/bls/bls.ts';
import type { Network } from '../signing/networks.ts';
import type { Permits } from '../signing/permits.ts';
import { custodyRefusal, equivocationGuard, hindranceOf, type InFlightSigning } from '../signing/sign.ts';
import type { SlashingProtection } from '../slashing/protection.ts';
import type { RestrainedStore } from '../slashing/restraints.ts';
import type { StoreFloor } from '../slashing/types.ts';
import type { Custody } from './custody.ts';
import { chamberRoutes } from './http-application/chamber-status.ts';
import { keyRoutes } from './http-application/key-routes.ts';
import type { LoadingKeys } from './keys.ts';
import type { Receipts } from './receipts.ts';
import type { Telemetry } from './telemetry.ts';
import type { SignerState, World } from './world.ts';

export interface Parts {
  readonly authenticator: Authenticator;
  readonly binding: StoreBinding | undefined;
  readonly core: BlsCore;
  readonly custody: Custody | undefined;
  readonly floor: StoreFloor | null;
  readonly inFlight: InFlightSigning;
  readonly loading: LoadingKeys;
  readonly network: Network;
  readonly permits: Permits;
  readonly describeRoutes: DescribeRoutes | undefined;
  readonly mountOwn: MountRoutes | undefined;
  readonly receipts: Receipts | undefined;
  readonly slashing: SlashingProtection;
  readonly store: RestrainedStore;
  readonly state: SignerState;
  readonly stateful: StatefulAuthenticator | undefined;
  readonly telemetry: Telemetry;
  readonly turns: KeyTurns;
  readonly watcher: Watcher | undefined;
}

export interface Application {
  readonly app: FastifyInstance;
  readonly readiness: Readiness;
}

type ApplicationConfig = Pick<
  Config,
  'anti_slashing' | 'canary_keys' | 'chamber' | 'http' | 'network' | 'server' | 'signing' | 'tee'
>;

export async function openApplication(config: ApplicationConfig, parts: Parts, world: World): Promise<Application> {
  const { server, signing } = config;
  const { logger, clock } = world;
  const { state, loading, telemetry, custody, watcher, slashing, binding, receipts } = parts;
  const { keys } = loading;
  const right = { custody, watcher, store: parts.store, receipts };
  const readiness = readinessOf(state, {
    keys,
    slashing,
    binding,
    keyTable: loading.table?.loader,
    keysLoading: loading.progress,
    latch: () => custody?.chamber.latch,
    receipts,
    custodyRefusal: () => custodyRefusal(right),
  });
  const equivocation = equivocationGuard(parts.network, clock);
  telemetry.metrics.onRender(() => telemetry.metrics.equivocationClaims.set(equivocation.claims));
  const app = await buildApp(
    {
      maxRequestBodyBytes: server.max_request_body_bytes,
      requestTimeoutSeconds: server.request_timeout_seconds,
      batchMaxKeys: signing.batch_max_keys,
      corsAllowedOrigins: server.cors_allowed_origins,
      allowedHosts: server.allowed_hosts,
      clientAddress: {
        trustProxyHeaders: server.trust_proxy_headers,
        trustedProxyCidrs: server.trusted_proxy_cidrs,
      },
    },
    {
      authenticator: parts.authenticator,
      auth: parts.stateful,
      keys,
      signing: {
        network: parts.network,
        core: parts.core,
        slashing,
        permits: parts.permits,
        inFlight: parts.inFlight,
        equivocation,
        builder: signing.builder,
        heal: signing.heal,
        heze: signing.heze,
        priorityOperations: new Set<Operation>(signing.priority.enabled ? signing.priority.operations : []),
        canaryKeys: new Set(config.canary_keys),
        onRetired: (publicKey) => parts.loading.keys.noteRefused(publicKey),
        onCanary: telemetry.canarySigned,
        // A signer that shuts down finishes what it has admitted.
        hindrance: hindranceOf(right),
      },
      slashingRecords: {
        backend: parts.store,
        genesisValidatorsRoot: encodeHex(parts.network.genesisValidatorsRoot),
      },
      keyRoutes: await keyRoutes(config, parts, world),
      readiness,
      chamber: chamberRoutes(config, parts, world),
      attestation: attestationRoute(telemetry, world),
      describeRoutes: parts.describeRoutes,
      receipts: receipts?.routes,
      recordDecision: receipts?.record,
      mountOwn: parts.mountOwn,
      signingRefusal: hindranceOf(right, state),
      observer: telemetry.http,
      onTurns: (waiting) => telemetry.metrics.onRender(() => telemetry.metrics.requestsWaiting.set(waiting())),
      tracing: telemetry.tracing,
      clock,
      log: logger.module('http'),
      auditLog: logger.module('audit'),
    },
  );
  return { app, readiness };
}

function attestationRoute({ metrics }: Telemetry, { enclave }: World): AttestationRoute | undefined {
  if (enclave === undefined) return undefined;
  return {
    nsm: enclave.nsm,
    onOutcome: (outcome) => metrics.attestationRequests.inc({ outcome }),
    onMounted: (waiting) => metrics.onRender(() => metrics.attestationWaiting.set(waiting())),
  };
}

// The answer of /healthcheck, from facts that are already known: it asks no backend while a client waits.

interface ReadinessParts {
  readonly keys: Pick<KeyStore, 'state'>;
  readonly slashing: Pick<SlashingProtection, 'health'>;
  readonly binding: Pick<StoreBinding, 'hindrance'> | undefined;
  readonly keyTable: { readonly stale: boolean; readonly refusedRows: number } | undefined;
  readonly keysLoading: LoadingKeys['progress'];
  readonly latch: () => Latch | undefined;
  readonly receipts: Pick<Receipts, 'check'> | undefined;
  readonly custodyRefusal: () => 'sealed' | 'state_stale' | undefined;
}

function readinessOf(state: SignerState, parts: ReadinessParts): Readiness {
  return {
    checks: () => {
      const refusal = parts.custodyRefusal();
      return [
        chamberCheck(state, refusal, parts.latch()),
        slashingCheck(parts.slashing, parts.binding, refusal),
        check('state_watcher', refusal === 'state_stale' ? 'the signer has lost sight of its state table' : undefined),
        keysCheck(state, parts),
        ...(parts.receipts === undefined ? [] : [parts.receipts.check()]),
      ];
    },
  };
}

/** The latch is told to everybody: a caller may hold no credential that still counts. */
function chamberCheck(
  { shuttingDown }: SignerState,
  refusal: 'sealed' | 'state_stale' | undefined,
  latch: Latch | undefined,
): HealthCheck {
  if (refusal === 'sealed') {
    const { sealedAt: sealed_at = null, reason = null, accessor = null } = latch ?? {};
    const told = { sealed_at, reason, accessor };
    return { id: 'chamber', status: 'DOWN', detail: 'the chamber is sealed', ...told };
  }
  return check('chamber', shuttingDown ? 'the signer is shutting down' : undefined);
}

function slashingCheck(
  { health }: ReadinessParts['slashing'],
  binding: ReadinessParts['binding'],
  refusal: 'sealed' | 'state_stale' | undefined,
): HealthCheck {
  if (health.status === 'unopened') {
    const detail = 'the signer started sealed and has not opened its slashing protection backend';
    return { id: 'anti_slashing', status: 'NOT_OPENED', detail };
  }
  if (health.status !== 'up') return check('anti_slashing', 'the slashing protection backend is down');
  if (binding?.hindrance === undefined) return check('anti_slashing', undefined);
  // It has let go of the store by itself: nobody has to look for another one.
  if (refusal === 'sealed') return check('anti_slashing', 'the signer is sealed and signs over no store');
  return check('anti_slashing', ERROR_REASONS.slashing_unbound.message);
}

function check(id: HealthCheck['id'], down: string | undefined): HealthCheck {
  return down === undefined ? { id, status: 'UP' } : { id, status: 'DOWN', detail: down };
}

function keysCheck(state: SignerState, parts: ReadinessParts): HealthCheck {
  const loading = parts.keysLoading();
  if (loading === undefined) return check('keys', keysDown(state, parts));
  return { id: 'keys', status: 'DOWN', detail: `keys are still being loaded: ${loadingText(loading)}`, loading };
}

function loadingText({ done, total, remaining_seconds: seconds }: KeysLoading): string {
  if (total === null) return `${done} so far`;
  const left =
    seconds === null ? '' : `, about ${seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`} left`;
  return `${done} of ${total}${left}`;
}

function keysDown({ keyFailures }: SignerState, { keys, keyTable }: ReadinessParts): string | undefined {
  if (keys.state === 'sealed') return 'the signer is sealed and holds no keys';
  if (keyFailures > 0) return `${counted(keyFailures, 'key file')} could not be loaded`;
  const refusedRows = keyTable?.refusedRows ?? 0;
  if (refusedRows > 0) return `${counted(refusedRows, 'row')} of the key table could not be loaded`;
  if (keyTable?.stale === true) return 'the signer has lost sight of its key table';
  return undefined;
}

function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`;
}
