// Step "HTTP application": the parts that a request passes through.

import type { FastifyInstance } from 'fastify';
import { encodeHex } from '../../common/formats/hex.ts';
import type { Operation } from '../api/operations.ts';
import type { Config } from '../config/options.ts';
import { buildApp } from '../http/app.ts';
import { requiredAudit } from '../http/required-audit.ts';
import type { AttestationRoute } from '../http/routes/attestation.ts';
import type { Readiness } from '../http/routes/health.ts';
import { equivocationGuard } from '../sign/equivocation.ts';
import { hindranceOf } from '../sign/right.ts';
import { chamberRoutes } from './http-application/chamber-status.ts';
import { readinessOf } from './http-application/health.ts';
import { keyRoutes } from './http-application/key-routes.ts';
import type { Parts } from './http-application/parts.ts';
import type { Telemetry } from './telemetry.ts';
import type { World } from './world.ts';

export interface Application {
  readonly app: FastifyInstance;
  readonly readiness: Readiness;
}

type ApplicationConfig = Pick<
  Config,
  'anti_slashing' | 'audit' | 'canary_keys' | 'chamber' | 'http' | 'network' | 'server' | 'signing' | 'tee'
>;

export async function openApplication(config: ApplicationConfig, parts: Parts, world: World): Promise<Application> {
  const { server, signing } = config;
  const { logger, clock } = world;
  const { state, telemetry, right } = parts;
  const { keys } = parts.loading;
  const audit = config.audit.required ? requiredAudit(logger) : undefined;
  right.audit = audit;
  const readiness = readinessOf(parts, server, logger);
  const equivocation = equivocationGuard(parts.network, clock);
  telemetry.metrics.onRender(() => telemetry.metrics.equivocationClaims.set(equivocation.claims));
  const app = await buildApp(
    {
      maxRequestBodyBytes: server.max_request_body_bytes,
      requestTimeoutSeconds: server.request_timeout_seconds,
      corsAllowedOrigins: server.cors_allowed_origins,
      allowedHosts: server.allowed_hosts,
      clientAddress: {
        trustProxyHeaders: server.trust_proxy_headers,
        trustedProxyCidrs: server.trusted_proxy_cidrs,
      },
    },
    {
      ...parts,
      keys,
      equivocation,
      builder: signing.builder,
      priorityOperations: new Set<Operation>(signing.priority.enabled ? signing.priority.operations : []),
      canaryKeys: new Set(config.canary_keys),
      onRetired: (publicKey, tenure) => keys.noteRefused(publicKey, tenure),
      onCanary: telemetry.canarySigned,
      // A signer that shuts down finishes what it has admitted.
      hindrance: hindranceOf(right),
      slashingRecords: {
        backend: parts.store,
        genesisValidatorsRoot: encodeHex(parts.network.genesisValidatorsRoot),
      },
      keyRoutes: await keyRoutes(config, parts, world),
      readiness,
      chamber: chamberRoutes(config, parts, world),
      attestation: attestationRoute(telemetry, world),
      signingRefusal: hindranceOf(right, state),
      observer: telemetry.http,
      onTurns: (waiting) => telemetry.metrics.onRender(() => telemetry.metrics.requestsWaiting.set(waiting())),
      tracing: telemetry.tracing,
      clock,
      log: logger.module('http'),
      auditLog: logger.module('audit'),
      requiredAudit: audit,
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
