// `server --check`: everything that would stop a start, found without starting, and what the start says of a
// configuration that is good and unwise. What the configuration says by itself was checked when it was loaded; the
// parts look at the machine and, unless `--offline`, at what the configuration names elsewhere. Of a configuration for
// an enclave nothing is looked at: its machine is another. Exit code 0 for one that can be used, 78 for another, and
// with `--decrypt` when a key cannot be used.

import { EXIT } from '../../common/command-line/exit-codes.ts';
import { painter } from '../../common/command-line/paint.ts';
import { plural } from '../../common/command-line/printable.ts';
import { NO_PROGRESS, type Progress, showProgress } from '../../common/command-line/progress.ts';
import { note, type Piped, type Printed } from '../../common/command-line/terminal.ts';
import { renderPath } from '../../common/command-line/violations.ts';
import { writeViolations } from '../../common/command-line/violations-report.ts';
import { systemClock } from '../../common/observe/clock.ts';
import { openBlsCore } from '../../signer/bls/open-either.ts';
import { openSecretMemory } from '../../signer/boot/secret-key-memory.ts';
import { filterSystemCalls } from '../../signer/boot/system-call-filter.ts';
import { networkOf, readNetwork } from '../../signer/config/network.ts';
import type { Config } from '../../signer/config/options.ts';
import { warningText } from '../../signer/config/warnings.ts';
import { createMetrics } from '../../signer/metrics/metrics.ts';
import { readConfigFile } from '../config/consensus-config.ts';
import type { LoadedConfiguration } from '../config/load.ts';
import { lookAtKeyFiles } from '../key-files.ts';
import { lookAtKnownClients } from '../known-clients.ts';
import { lookAtCertificate, lookAtListeners } from '../listeners.ts';
import { type CheckFinding, nothingFound, onThisMachine, SILENT_LOGGER } from '../look.ts';
import { ignoredText, type LoadedNotes } from '../said.ts';
import { lookAtStore, lookAtStoreFiles } from '../stores.ts';
import { lookAtAwsSettings, lookAtTables } from './check-tables.ts';

type CheckTerminal = Printed & Pick<Piped, 'env'>;

/** Looks at the machine, and says what it found. @returns the exit code */
export async function check(
  loaded: Extract<LoadedConfiguration, { ok: true }>,
  terminal: CheckTerminal,
): Promise<number> {
  const progress = showProgress(terminal, { doing: 'checking the files' });
  const found = await lookAtStart(loaded.config, loaded, progress).finally(() => progress[Symbol.dispose]());
  return reportCheck(loaded, found, terminal);
}

/** @param found what the machine adds to what the configuration says by itself @returns the exit code */
export function reportCheck(said: LoadedNotes, found: CheckFinding, { stdout, stderr, env }: CheckTerminal): number {
  for (const warning of [...said.warnings, ...found.warnings]) note({ stderr }, `warning: ${warningText(warning)}`);
  if (said.ignoredVariables.length > 0) note({ stderr }, `note: ${ignoredText(said.ignoredVariables)}`);
  const { violations, unusableKeys } = found;
  if (violations.length > 0) writeViolations(violations, { stderr, env });
  if (unusableKeys > 0) {
    const text = `strongroom: ${plural(unusableKeys, 'key')} cannot be used: a signer starts without, and is DOWN\n`;
    stderr.write(painter(stderr, env)(text, 'bad'));
  }
  if (violations.length + unusableKeys > 0) return EXIT.configuration;
  stdout.write(painter(stdout, env)('strongroom: the configuration is valid\n', 'good'));
  return EXIT.ok;
}

export async function lookAtStart(
  config: Config,
  { offline, decrypt = false }: { readonly offline: boolean; readonly decrypt?: boolean },
  progress: Progress = NO_PROGRESS,
): Promise<CheckFinding> {
  const found = nothingFound();
  if (config.tee.platform === 'nitro') return found;
  lookAtNetwork(config, found);
  const keyFiles = await lookAtKeyFiles(config, found, { decrypt, progress });
  await lookAtCertificate(config, found, systemClock.now());
  lookAtKnownClients(config, found);
  lookAtStoreFiles(config, found);
  if (offline) return found;
  const isBroken = (options: RegExp): boolean => found.violations.some(({ path }) => options.test(path));
  const [isStoreBroken, isNetworkBroken] = [isBroken(/^anti_slashing\./), isBroken(/^(custom_network|network)\b/)];
  progress.begin({ doing: 'asking the machine: ports, locked memory' });
  const signerRuns = await lookAtListeners(config, found);
  await lookAtHardening(config, found);
  // When config.yaml or the schedule next to it is refused there is no network.
  if (isNetworkBroken) return found;
  const network = networkOf(config, readConfigFile);
  progress.begin({ doing: 'asking the stores and tables' });
  const hasAws = await lookAtAwsSettings(config, found);
  if (!isStoreBroken && (hasAws || config.anti_slashing.backend !== 'dynamodb'))
    await lookAtStore(config, found, { network, signerRuns, keyFiles, clock: systemClock });
  if (hasAws) await lookAtTables(config, found, network);
  return found;
}

/** What is required and cannot be had; what is wished for and cannot be had the start says itself. */
async function lookAtHardening(config: Config, found: CheckFinding): Promise<void> {
  const world = { logger: SILENT_LOGGER, clock: systemClock };
  await using opened = new AsyncDisposableStack();
  const metrics = createMetrics();
  opened.defer(() => metrics.close());
  const telemetry = { metrics };
  const steps = {
    'server.seccomp': () => filterSystemCalls(config.server, { telemetry }, world),
    'server.mlock': () => openSecretMemory(config, { openBlsCore, telemetry }, world, opened),
  };
  for (const [path, step] of Object.entries(steps)) {
    try {
      await step();
    } catch (error) {
      const problem = `cannot be had: ${error instanceof Error ? error.message : String(error)}`;
      found.violations.push(onThisMachine(path, problem, 'do as it says, or do not require it'));
    }
  }
}

/** Schedules of other networks are a matter of the configuration alone, and are checked with it. */
function lookAtNetwork(config: Config, { violations, warnings }: CheckFinding): void {
  if (config.custom_network.config_file === undefined) return;
  const reading = readNetwork(config, readConfigFile);
  if ('findings' in reading) {
    for (const { at, within = [], problem, remedy } of reading.findings)
      violations.push(onThisMachine(renderPath([at, ...within]), problem, remedy));
    return;
  }
  for (const { name, epoch } of reading.unknownForks) {
    const says = `plans ${name} at epoch ${epoch}, a fork that this release does not know: install one that does before that epoch`;
    warnings.push({ at: 'custom_network.config_file', says });
  }
}
