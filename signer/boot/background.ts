// The work beside the requests: it polls the slashing database for /healthcheck, and sets the gauges. Step "state
// watcher": it seals the chamber when a latch appears in the state table.

import { Watcher, type WatcherParts } from '../chamber/watcher.ts';
import type { Config } from '../config/options.ts';
import { countKeys } from '../keys/counts.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { BlsCore, Lane } from '../signing/bls/bls.ts';
import type { Permits } from '../signing/permits.ts';
import type { SlashingProtection } from '../slashing/protection.ts';
import type { Custody } from './custody.ts';
import type { LoadingKeys } from './keys.ts';
import type { OpenListeners } from './open-listeners.ts';
import type { Telemetry } from './telemetry.ts';
import type { Enclave, World } from './world.ts';

export interface Watched {
  readonly core: BlsCore;
  readonly loading: LoadingKeys;
  readonly permits: Permits;
  readonly slashing: SlashingProtection;
  readonly listeners: OpenListeners;
  readonly telemetry: Pick<Telemetry, 'metrics'>;
}

const LANES: readonly Lane[] = ['normal', 'priority'];

export function startBackground(
  config: Pick<Config, 'metrics' | 'server'>,
  watched: Watched,
  { logger, enclave }: World,
  opened: AsyncDisposableStack,
): void {
  const { metrics } = watched.telemetry;
  pollSlashingHealth(config.server, watched.slashing, opened);
  metrics.onRender(() => readOff(metrics, watched));
  let droppedLines = 0;
  metrics.onRender(() => {
    metrics.logLinesDropped.add(logger.droppedLines() - droppedLines);
    droppedLines = logger.droppedLines();
  });
  if (enclave !== undefined) countNsmCalls(metrics, enclave);
  const refresh = (): void => void countConnections(metrics, watched.listeners);
  repeat(config.metrics.refresh_interval_seconds * 1000, refresh, opened);
}

/** A poll that does not answer in time counts as DOWN; the next one does not wait for it. */
function pollSlashingHealth(
  { health_check: { poll_interval_seconds, poll_timeout_ms } }: Config['server'],
  slashing: SlashingProtection,
  opened: AsyncDisposableStack,
): void {
  let polling = false;
  const poll = async (): Promise<void> => {
    if (polling) return;
    polling = true;
    await slashing.checkHealth(AbortSignal.timeout(poll_timeout_ms));
    polling = false;
  };
  repeat(poll_interval_seconds * 1000, () => void poll(), opened);
}

function readOff(metrics: Metrics, { core, loading, permits, slashing }: Watched): void {
  for (const pool of LANES) {
    const { inFlight, queued } = permits.load(pool);
    metrics.signingInFlight.set(inFlight, { pool });
    metrics.signingQueueDepth.set(queued, { pool });
  }
  const { queued, running } = core.load();
  metrics.blsQueueDepth.set(queued);
  metrics.blsInFlight.set(running);
  metrics.slashingBackendUp.set(slashing.health.status === 'up' ? 1 : 0);
  for (const { source, status, count } of countKeys(loading.keys, loading.table?.loader)) {
    metrics.keys.set(count, { source, status });
  }
}

function countNsmCalls(metrics: Metrics, { nsmCalls }: Enclave): void {
  const seen = new Map<string, number>();
  metrics.onRender(() => {
    for (const { operation, outcome, count } of nsmCalls()) {
      const name = `${operation} ${outcome}`;
      metrics.nsmCalls.add(count - (seen.get(name) ?? 0), { operation, outcome });
      seen.set(name, count);
    }
  });
}

async function countConnections(metrics: Metrics, listeners: OpenListeners): Promise<void> {
  for (const [listener, count] of Object.entries(await listeners.connections())) {
    metrics.httpConnections.set(count, { listener: listener as 'plain' | 'tls' | 'metrics' });
  }
}

function repeat(intervalMs: number, run: () => void, opened: AsyncDisposableStack): void {
  run();
  const timer = setInterval(run, intervalMs);
  timer.unref();
  opened.defer(() => clearInterval(timer));
}

export interface WatchParts {
  readonly auth: WatcherParts['auth'] | undefined;
  readonly custody: Custody | undefined;
  readonly telemetry: Pick<Telemetry, 'metrics'>;
}

/** Undefined when there is nothing to watch. Resolves after the first look, so nothing older is served. */
export async function watchState(
  { refresh_interval_seconds: intervalSeconds }: Config['signer_state'],
  { auth, custody, telemetry: { metrics } }: WatchParts,
  { logger, clock }: World,
  opened: AsyncDisposableStack,
): Promise<Watcher | undefined> {
  if (custody === undefined || auth === undefined || custody.chamber.state === 'Sealed') return undefined;
  const { chamber, table, ceremony, readAt } = custody;
  const log = logger.module('chamber');
  if (intervalSeconds === 0) {
    log.warn({}, NOT_WATCHING);
    return undefined;
  }
  const watcher = new Watcher(
    { intervalSeconds, generation: ceremony.generation, readAt },
    { table, onLatch: (latch) => chamber.sealBecauseOf(latch), auth, clock, log },
  );
  chamber.onSealed(() => watcher.stop());
  opened.defer(() => watcher.stop());
  metrics.onRender(() => metrics.stateAgeSeconds.set(watcher.ageSeconds()));
  await watcher.start();
  return watcher;
}

const NOT_WATCHING =
  'signer_state.refresh_interval_seconds is 0: seals, revocations and changed policies that are made elsewhere ' +
  'do not reach this replica before it starts again';
