// Step "telemetry": the metrics and traces of one running signer, and what each part reports to them.

import { openTracing, type Tracing } from '../../common/observe/tracing.ts';
import type { Operation } from '../api/operations.ts';
import type { AwsFault } from '../aws/errors.ts';
import type { Config } from '../config/options.ts';
import { createMetrics, httpObserver, type OtherNames, slashingObserver } from '../metrics/metrics.ts';
import type { DoubtCause } from '../slashing/types.ts';
import type { Ending } from './ending.ts';
import type { World } from './world.ts';

export type Telemetry = Readonly<Awaited<ReturnType<typeof openTelemetry>>>;
type CallOutcome = 'ok' | AwsFault;

const TRACING_CLOSE_MS = 2000;

export async function openTelemetry(
  config: Config['opentelemetry'],
  parts: { readonly ending: Pick<Ending, 'leftMs'>; readonly otherNames?: OtherNames | undefined },
  world: World,
  opened: AsyncDisposableStack,
) {
  const metrics = createMetrics(parts.otherNames);
  opened.defer(() => metrics.close());
  metrics.chamberUnsealed.set(1); // stateless mode: there is nothing to unseal
  const tracing = await startTracing(config, parts, world, opened);
  const log = world.logger.module('signing');
  return {
    metrics,
    tracing,
    http: httpObserver(metrics),
    slashing: slashingObserver(metrics),
    dynamodbCalled: (operation: string, outcome: CallOutcome, seconds: number): void => {
      metrics.dynamodbCalls.inc({ operation, outcome });
      metrics.dynamodbCallSeconds.observe(seconds, { operation });
    },
    kmsCalled: (operation: string, outcome: CallOutcome, seconds: number): void => {
      metrics.kmsCalls.inc({ operation, outcome });
      metrics.kmsCallSeconds.observe(seconds, { operation });
    },
    canarySigned: (publicKey: string, operation: Operation): void => {
      metrics.canarySignings.inc();
      log.warn({ public_key: publicKey, operation }, 'a canary key signs');
    },
    keyFilesLoaded: (seconds: number, failures: number): void => {
      metrics.keyLoadSeconds.set(seconds, { source: 'filesystem' });
      metrics.keyLoadFailures.set(failures, { source: 'filesystem' });
    },
    storeJumped: (cause: DoubtCause): void => metrics.slashingJumps.inc({ cause }),
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
