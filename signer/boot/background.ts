// What the signer does between requests: it polls the slashing database for /healthcheck, and sets the gauges. Step
// "state watcher": it seals the chamber when a latch (the row that keeps every replica sealed) appears in the state
// table.

import type { BlsCore, Lane } from '../bls/bls.ts';
import { Watcher, type WatcherParts } from '../chamber/watcher.ts';
import type { Config } from '../config/options.ts';
import { countKeys } from '../keys/counts.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Permits } from '../sign/permits.ts';
import type { Custody } from './custody.ts';
import { every } from './every.ts';
import type { LoadingKeys } from './keys.ts';
import type { OpenListeners } from './open-listeners.ts';
import type { OpenSlashing } from './slashing-protection.ts';
import type { Telemetry } from './telemetry.ts';
import type { World } from './world.ts';

interface Watched extends Pick<OpenSlashing, 'slashing' | 'trouble'> {
  readonly core: BlsCore;
  readonly loading: LoadingKeys;
  readonly permits: Permits;
  readonly listeners: OpenListeners;
  readonly telemetry: Pick<Telemetry, 'metrics'>;
}

/** A look reads the marks of every key. boot.ts takes the first, when the keys are loaded. */
const LOOK_AHEAD_MS = 600_000;
const LANES: readonly Lane[] = ['normal', 'priority'];

export function startBackground(
  config: Pick<Config, 'metrics' | 'server'>,
  watched: Watched,
  { logger, clock, enclave }: World,
  opened: AsyncDisposableStack,
): void {
  const { metrics } = watched.telemetry;
  const { poll_interval_seconds, poll_timeout_ms } = config.server.health_check;
  // A poll always ends: a store that does not answer in time is DOWN.
  const poll = () => watched.slashing.checkHealth(AbortSignal.timeout(poll_timeout_ms));
  every(poll_interval_seconds * 1000, poll, opened)();
  every(LOOK_AHEAD_MS, () => watched.slashing.lookAhead(), opened);
  metrics.onRender(() => readOff(metrics, watched, clock.now()));
  metrics.onRender(() => {
    metrics.logLinesDropped.reach(logger.droppedLines());
    for (const { count, ...labels } of enclave?.nsmCalls() ?? []) metrics.nsmCalls.reach(count, labels);
  });
  const refresh = () => countConnections(metrics, watched.listeners);
  every(config.metrics.refresh_interval_seconds * 1000, refresh, opened)();
}

function readOff(metrics: Metrics, { core, loading, permits, slashing, trouble }: Watched, now: number): void {
  for (const pool of LANES) {
    const { inFlight, queued } = permits.load(pool);
    metrics.signingInFlight.set(inFlight, { pool });
    metrics.signingQueueDepth.set(queued, { pool });
  }
  const { queued, running } = core.load();
  metrics.blsQueueDepth.set(queued);
  metrics.blsInFlight.set(running);
  for (const kind of ['block', 'attestation'] as const) metrics.slashingKeysAhead.set(slashing.ahead[kind], { kind });
  metrics.slashingBackendUp.set(slashing.health.status === 'up' ? 1 : 0);
  metrics.slashingFloorAhead.set(Math.max(0, (trouble?.future()?.endsAt ?? now) - now) / 1000);
  for (const { source, status, count } of countKeys(loading.keys, loading.table?.loader)) {
    metrics.keys.set(count, { source, status });
  }
}

async function countConnections(metrics: Metrics, listeners: OpenListeners): Promise<void> {
  for (const [listener, count] of Object.entries(await listeners.connections())) {
    metrics.httpConnections.set(count, { listener: listener as 'plain' | 'tls' | 'metrics' });
  }
}

interface WatchParts {
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
