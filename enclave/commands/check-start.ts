// `server --check`: everything that would stop a start, found without starting. What the configuration says by itself
// was checked when it was loaded; this asks the machine (files, ports, locked memory) and, unless `--offline`, what the
// configuration names elsewhere (database, tables, keys). It calls the start's own pieces, opens nothing for good and
// writes nothing. Of a configuration for an enclave nothing is looked at here: its machine is another.

import { systemClock } from '../../observe/clock.ts';
import type { Logger } from '../../observe/logger.ts';
import { networkOf } from '../boot/network.ts';
import { openSecretMemory } from '../boot/secret-key-memory.ts';
import { filterSystemCalls } from '../boot/system-call-filter.ts';
import type { Config, OptionPath } from '../config/options.ts';
import { createMetrics } from '../metrics/metrics.ts';
import type { Found } from './check.ts';
import { lookAtFiles } from './check-files.ts';
import { lookAtListeners } from './check-listeners.ts';
import { lookAtStore } from './check-stores.ts';
import { lookAtTables } from './check-tables.ts';

export async function lookAtStart(config: Config, { offline }: { readonly offline: boolean }): Promise<Found> {
  if (config.tee.platform === 'nitro') return { violations: [], warnings: [] };
  const files = await lookAtFiles(config);
  if (offline) return files;
  const listeners = await lookAtListeners(config);
  const found: Found[] = [files, listeners, ...(await lookAtHardening(config))];
  const isStoreBroken = files.violations.some(({ path }) => path.startsWith('anti_slashing.'));
  // A config.yaml, or the schedule beside it, that does not hold: there is no network then.
  if (!files.violations.some(({ path }) => /^(custom_network|network)\b/.test(path))) {
    const network = networkOf(config);
    const { signerRuns } = listeners;
    if (!isStoreBroken) found.push(await lookAtStore(config, { network, signerRuns, clock: systemClock }));
    found.push(...(await lookAtTables(config, network)));
  }
  return {
    violations: found.flatMap(({ violations }) => violations),
    warnings: found.flatMap(({ warnings }) => warnings),
  };
}

/** What is required and cannot be had; what is wished for and cannot be had the start says itself. */
async function lookAtHardening(config: Config): Promise<readonly Found[]> {
  const world = { logger: SILENT_LOGGER, clock: systemClock };
  const metrics = createMetrics();
  await using opened = new AsyncDisposableStack();
  opened.defer(() => metrics.close());
  const telemetry = { metrics };
  return [
    await refusal('server.seccomp', () => filterSystemCalls(config.server, { telemetry }, world)),
    await refusal('server.mlock', () => openSecretMemory(config, { telemetry }, world, opened)),
  ];
}

async function refusal(path: OptionPath, step: () => unknown): Promise<Found> {
  try {
    await step();
    return { violations: [], warnings: [] };
  } catch (error) {
    const problem = `cannot be had: ${error instanceof Error ? error.message : String(error)}`;
    const remedy = 'do as it says, or do not require it';
    return { violations: [{ path, problem, remedy, origin: 'what is on this machine' }], warnings: [] };
  }
}

const SILENT_LOGGER: Logger = {
  module: () => ({ debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }),
  droppedLines: () => 0,
  flush: () => undefined,
  end: async () => undefined,
};
