// Step "state watcher": it seals the chamber when a latch appears in the state table.

import { Watcher, type WatcherParts } from '../chamber/watcher.ts';
import type { Config } from '../config/options.ts';
import type { Custody } from './custody.ts';
import type { Telemetry } from './telemetry.ts';
import type { World } from './world.ts';

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
  'signer_state.refresh_interval_seconds is 0: seals, revocations and changed policies that are made elsewhere do not reach this ' +
  'replica before it starts again';
