// argv → configuration → boot → serve: the program of an ordinary host. No other file of a server reads arguments;
// common/command-line/serving.ts ends the process (specification/operating.md#exit-codes).

import { EXIT } from '../common/command-line/exit-codes.ts';
import { sayFailure } from '../common/command-line/failure.ts';
import { hasColor } from '../common/command-line/paint.ts';
import { endOnBugs, endOnSignals, limitHeapGrowth, liveWorkers } from '../common/command-line/serving.ts';
import { writeViolations } from '../common/command-line/violations-report.ts';
import { systemClock } from '../common/observe/clock.ts';
import { createLogger } from '../common/observe/logger.ts';
import { boot } from '../signer/boot/boot.ts';
import type { SignerParts } from '../signer/boot/parts.ts';
import type { World } from '../signer/boot/world.ts';
import type { Config } from '../signer/config/options.ts';
import type { SaidWarning } from '../signer/config/warnings.ts';
import { takenByRequest } from '../signer/http/escapes.ts';
import { web3SignersOf } from './commands/slashing-open.ts';
import { type LoadedConfiguration, type LoadInput, loadConfig } from './config/load.ts';
import { returnFreedMemory } from './freed-memory.ts';
import { SERVICE_PARTS } from './parts.ts';
import { reloadOnHangUps } from './reload.ts';
import { type LoadedNotes, sayWarnings } from './said.ts';

/** For the front of Web3Signer's command line, which refuses a start without the record of its database. */
export { web3SignersOf };

export async function main(argv: readonly string[]): Promise<void> {
  await serve({ argv, env: process.env });
}

/**
 * @param input also how the front of Web3Signer's command line gives a configuration that is no file
 * @param said its warnings
 */
export async function serve(
  input: LoadInput,
  said: readonly SaidWarning[] = [],
  parts: SignerParts = SERVICE_PARTS,
): Promise<void> {
  const read = (): LoadedConfiguration => loadConfig(input, { compiledCeremony: false });
  const loaded = read();
  if (loaded.ok && loaded.isEmpty) {
    sayFailure(process, 'strongroom server', 'there is no configuration', [
      'name a file: strongroom server -c strongroom.yaml',
      'or have one written, with tokens and folders: strongroom init',
      'or bring keys that have signed elsewhere, with their record: strongroom migrate --help',
      'or set options by flags or SVC_* variables: strongroom server --help',
    ]);
    process.exitCode = EXIT.configuration;
    return;
  }
  if (!loaded.ok) {
    writeViolations(loaded.violations, process);
    process.exitCode = EXIT.configuration;
    return;
  }
  if (loaded.check) {
    const { check } = await import('./commands/check.ts');
    process.exitCode = await check(loaded, process);
    return;
  }
  await run({ ...loaded, warnings: [...said, ...loaded.warnings] }, read, parts);
}

async function run(
  {
    config,
    warnings,
    ignoredVariables,
    configPath,
  }: LoadedNotes & Pick<Extract<LoadedConfiguration, { ok: true }>, 'config' | 'configPath'>,
  readConfiguration: () => LoadedConfiguration,
  parts: SignerParts,
): Promise<void> {
  const { color = hasColor(process.stdout, process.env) } = config.logging;
  const logger = createLogger({ ...config.logging, color });
  endOnBugs(logger, takenByRequest);
  sayWarnings({ warnings, ignoredVariables }, logger.module('server'));
  try {
    await runSigner(config, { logger, clock: systemClock, readConfiguration, configurationFile: configPath }, parts);
  } catch (error) {
    await logger.end();
    sayFailure(process, 'strongroom', `cannot start: ${messageOf(error)}`);
    process.exit(EXIT.failed);
  }
}

/** @throws StartupError */
async function runSigner(config: Config, world: World, parts: SignerParts): Promise<void> {
  limitHeapGrowth();
  const workers = liveWorkers();
  const hangUps = reloadOnHangUps(process, world.logger.module('server'));
  const signer = await boot(config, parts, world);
  hangUps.serve(signer);
  endOnSignals(signer, workers, world.logger);
  returnFreedMemory(signer.core);
  await signer.keysLoaded;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
