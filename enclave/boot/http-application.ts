// Step "HTTP application": it builds the parts that a request passes through, from the configuration.

import type { FastifyInstance } from 'fastify';
import { encodeHex } from '../../formats/hex.ts';
import type { Operation } from '../api/operations.ts';
import type { Authenticator } from '../auth/authenticator.ts';
import type { StatefulAuthenticator } from '../auth/stateful/stateful.ts';
import type { StoreBinding } from '../chamber/store-binding.ts';
import type { Watcher } from '../chamber/watcher.ts';
import type { Config } from '../config/options.ts';
import { buildApp } from '../http/app.ts';
import type { AttestationRoute } from '../http/routes/attestation.ts';
import type { Readiness } from '../http/routes/health.ts';
import type { ReloadRoute } from '../http/routes/reload.ts';
import type { KeyTurns } from '../keys/turns.ts';
import type { BlsCore } from '../signing/bls/bls.ts';
import { equivocationGuard } from '../signing/equivocation.ts';
import type { InFlightSigning } from '../signing/in-flight.ts';
import type { Network } from '../signing/networks.ts';
import type { Permits } from '../signing/permits.ts';
import type { SlashingProtection } from '../slashing/protection.ts';
import type { StoreFloor } from '../slashing/types.ts';
import type { Custody } from './custody.ts';
import { chamberRoutes } from './http-application/chamber-status.ts';
import { keyRoutes } from './http-application/key-routes.ts';
import { readinessOf } from './http-application/readiness.ts';
import type { LoadingKeys } from './keys.ts';
import { custodyRefusal } from './state-watcher.ts';
import type { Telemetry } from './telemetry.ts';
import type { SignerState, World } from './world.ts';

export interface Parts {
  readonly authenticator: Authenticator;
  /** Undefined when there is no state table that could bind a fleet to one slashing store. */
  readonly binding: StoreBinding | undefined;
  readonly core: BlsCore;
  readonly custody: Custody | undefined;
  /** What the jump at boot refuses; null without one. */
  readonly floor: StoreFloor | null;
  readonly inFlight: InFlightSigning;
  readonly loading: LoadingKeys;
  readonly network: Network;
  readonly permits: Permits;
  /** Undefined where nothing is read again. */
  readonly reload: ReloadRoute | undefined;
  readonly slashing: SlashingProtection;
  readonly state: SignerState;
  readonly stateful: StatefulAuthenticator | undefined;
  readonly telemetry: Telemetry;
  /** Orders the changes of one key. */
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
  const { state, loading, telemetry, custody, watcher, slashing, binding } = parts;
  const { keys } = loading;
  const refusal = () => custodyRefusal(custody, watcher);
  const readiness = readinessOf(state, {
    keys,
    slashing,
    binding,
    keyTable: loading.table?.loader,
    latch: () => custody?.chamber.latch,
    custodyRefusal: refusal,
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
        priorityOperations: new Set<Operation>(signing.priority.enabled ? signing.priority.operations : []),
        canaryKeys: new Set(config.canary_keys),
        onCanary: telemetry.canarySigned,
      },
      slashingRecords: {
        backend: parts.slashing.backend,
        genesisValidatorsRoot: encodeHex(parts.network.genesisValidatorsRoot),
      },
      keyRoutes: keyRoutes(config, parts, world),
      readiness,
      chamber: chamberRoutes(config, parts, world),
      attestation: attestationRoute(telemetry, world),
      reload: parts.reload,
      signingRefusal: () => refusal() ?? (state.shuttingDown ? 'shutting_down' : binding?.hindrance),
      observer: telemetry.http,
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
