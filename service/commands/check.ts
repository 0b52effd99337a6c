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
import { openSecretMemory } from '../../signer/boot/secret-key-memory.ts';
import { filterSystemCalls } from '../../signer/boot/system-call-filter.ts';
import { networkOf, readNetwork } from '../../signer/config/network.ts';
import type { Config, OptionPath } from '../../signer/config/options.ts';
import { warningText } from '../../signer/config/warnings.ts';
import { createMetrics } from '../../signer/metrics/metrics.ts';
import { openBlsCore } from '../../signer/signing/bls/open-either.ts';
import { readConfigFile } from '../config/consensus-config.ts';
import type { LoadedConfiguration } from '../config/load.ts';
import { lookAtKeyFiles } from '../key-files.ts';
import { lookAtKnownClients } from '../known-clients.ts';
import { lookAtCertificate, lookAtListeners } from '../listeners.ts';
import { type CheckFinding, NOTHING, onThisMachine, SILENT_LOGGER, together } from '../look.ts';
import { ignoredText, type LoadedNotes } from '../said.ts';
import { lookAtStore, lookAtStoreFiles } from '../stores.ts';
import { lookAtAwsSettings, lookAtTables } from './check-tables.ts';

type CheckTerminal = Printed & Pick<Piped, 'env'>;

/** Looks at the machine, and says what it found. @returns the exit code */
export async function check(
  loaded: Extract<LoadedConfiguration, { ok: true }>,
  terminal: CheckTerminal,
): Promise<number> {
  return reportCheck(loaded, await lookAtMachine(loaded, terminal), terminal);
}

async function lookAtMachine(
  loaded: Extract<LoadedConfiguration, { ok: true }>,
  terminal: CheckTerminal,
): Promise<CheckFinding> {
  using progress = showProgress(terminal, { doing: 'checking the files' });
  return await lookAtStart(loaded.config, loaded, progress);
}

/** @param found what the machine adds to what the configuration says by itself @returns the exit code */
export function reportCheck(said: LoadedNotes, found: CheckFinding, { stdout, stderr, env }: CheckTerminal): number {
  for (const warning of [...said.warnings, ...found.warnings]) note({ stderr }, `warning: ${warningText(warning)}`);
  if (said.ignoredVariables.length > 0) note({ stderr }, `note: ${ignoredText(said.ignoredVariables)}`);
  const { violations, unusableKeys = 0 } = found;
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
  if (config.tee.platform === 'nitro') return NOTHING;
  const keyFiles = await lookAtKeyFiles(config, { decrypt, progress });
  const files = together([
    lookAtNetwork(config),
    keyFiles,
    await lookAtCertificate(config, systemClock.now()),
    lookAtKnownClients(config),
    lookAtStoreFiles(config),
  ]);
  if (offline) return files;
  progress.begin({ doing: 'asking the machine: ports, locked memory' });
  const listeners = await lookAtListeners(config);
  const found: CheckFinding[] = [files, listeners, ...(await lookAtHardening(config))];
  const isStoreBroken = files.violations.some(({ path }) => path.startsWith('anti_slashing.'));
  // When config.yaml or the schedule next to it is refused there is no network.
  if (!files.violations.some(({ path }) => /^(custom_network|network)\b/.test(path))) {
    const network = networkOf(config, readConfigFile);
    const { signerRuns = false } = listeners;
    progress.begin({ doing: 'asking the stores and tables' });
    const aws = await lookAtAwsSettings(config);
    const hasAws = aws.violations.length === 0;
    found.push(aws);
    if (!isStoreBroken && (hasAws || config.anti_slashing.backend !== 'dynamodb'))
      found.push(await lookAtStore(config, { network, signerRuns, keyFiles, clock: systemClock }));
    if (hasAws) found.push(...(await lookAtTables(config, network)));
  }
  return together(found);
}

/** What is required and cannot be had; what is wished for and cannot be had the start says itself. */
async function lookAtHardening(config: Config): Promise<readonly CheckFinding[]> {
  const world = { logger: SILENT_LOGGER, clock: systemClock };
  const metrics = createMetrics();
  await using opened = new AsyncDisposableStack();
  opened.defer(() => metrics.close());
  const telemetry = { metrics };
  return [
    await refusal('server.seccomp', () => filterSystemCalls(config.server, { telemetry }, world)),
    await refusal('server.mlock', () => openSecretMemory(config, { openBlsCore, telemetry }, world, opened)),
  ];
}

async function refusal(path: OptionPath, step: () => unknown): Promise<CheckFinding> {
  try {
    await step();
    return NOTHING;
  } catch (error) {
    const problem = `cannot be had: ${error instanceof Error ? error.message : String(error)}`;
    const remedy = 'do as it says, or do not require it';
    return { violations: [onThisMachine(path, problem, remedy)], warnings: [] };
  }
}

/** Schedules of other networks are a matter of the configuration alone, and are checked with it. */
function lookAtNetwork(config: Config): CheckFinding {
  const at: OptionPath = 'custom_network.config_file';
  if (config.custom_network.config_file === undefined) return NOTHING;
  const reading = readNetwork(config, readConfigFile);
  if ('network' in reading) {
    const says = ({ name, epoch }: { name: string; epoch: number }) =>
      `plans ${name} at epoch ${epoch}, a fork that this release does not know: install one that does before that epoch`;
    return { violations: [], warnings: reading.unknownForks.map((fork) => ({ at, says: says(fork) })) };
  }
  const violations = reading.findings.map(({ at, within = [], problem, remedy }) =>
    onThisMachine(renderPath([at, ...within]), problem, remedy),
  );
  return { violations, warnings: [] };
}
