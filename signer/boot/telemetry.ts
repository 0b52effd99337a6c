// Step "telemetry": the metrics and traces of one running signer, and what each part reports to them.

import { openTracing, type Tracing } from '../../common/observe/tracing.ts';
import type { Operation } from '../api/operations.ts';
import type { AwsClientOptions } from '../aws/client.ts';
import type { Config } from '../config/options.ts';
import type { HttpObserver } from '../http/audit.ts';
import { createMetrics, httpObserver, type Metrics, slashingObserver } from '../metrics/metrics.ts';
import type { SlashingProtectionOptions } from '../slashing/protection.ts';
import type { OnJump } from '../slashing/types.ts';
import type { Ending } from './ending.ts';
import type { World } from './world.ts';

export interface Telemetry {
  readonly metrics: Metrics;
  readonly tracing: Tracing | undefined;
  readonly http: HttpObserver;
  readonly slashing: SlashingProtectionOptions;
  readonly dynamodbCalled: NonNullable<AwsClientOptions['onCall']>;
  readonly kmsCalled: NonNullable<AwsClientOptions['onCall']>;
  canarySigned(publicKey: string, operation: Operation): void;
  keyFilesLoaded(seconds: number, failures: number): void;
  readonly storeJumped: OnJump;
}

const TRACING_CLOSE_MS = 2000;

export async function openTelemetry(
  config: Config['opentelemetry'],
  parts: { readonly ending: Pick<Ending, 'leftMs'> },
  world: World,
  opened: AsyncDisposableStack,
): Promise<Telemetry> {
  const metrics = createMetrics();
  opened.defer(() => metrics.close());
  metrics.chamberUnsealed.set(1); // stateless mode: there is nothing to unseal
  const tracing = await startTracing(config, parts, world, opened);
  const log = world.logger.module('signing');
  return {
    metrics,
    tracing,
    http: httpObserver(metrics),
    slashing: slashingObserver(metrics),
    dynamodbCalled: (operation, outcome, seconds) => {
      metrics.dynamodbCalls.inc({ operation, outcome });
      metrics.dynamodbCallSeconds.observe(seconds, { operation });
    },
    kmsCalled: (operation, outcome, seconds) => {
      metrics.kmsCalls.inc({ operation, outcome });
      metrics.kmsCallSeconds.observe(seconds, { operation });
    },
    canarySigned: (publicKey, operation) => {
      metrics.canarySignings.inc();
      log.warn({ public_key: publicKey, operation }, 'a canary key signs');
    },
    keyFilesLoaded: (seconds, failures) => {
      metrics.keyLoadSeconds.set(seconds, { source: 'filesystem' });
      metrics.keyLoadFailures.set(failures, { source: 'filesystem' });
    },
    storeJumped: (cause) => metrics.slashingJumps.inc({ cause }),
  };
}

async function startTracing(
  { enabled, endpoint, service_name: serviceName }: Config['opentelemetry'],
  { ending }: { readonly ending: Pick<Ending, 'leftMs'> },
  { logger, enclave }: Pick<World, 'logger' | 'enclave'>,
  opened: AsyncDisposableStack,
): Promise<Tracing | undefined> {
  if (!enabled) return undefined;
  const authorities = enclave?.authorities(new URL(endpoint).hostname);
  const tracing = await openTracing({ endpoint, serviceName, authorities }, logger.module('server'));
  opened.defer(() => tracing.close(Math.min(TRACING_CLOSE_MS, ending.leftMs() / 2)));
  return tracing;
}
