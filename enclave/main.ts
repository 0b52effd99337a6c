// argv → configuration → boot → serve. The only file of the signer that reads arguments and ends the process. In an
// enclave image it reads none: the image and the measured configuration decide everything (runEnclave). Exit codes: 0 a
// clean end, 78 a configuration that cannot be used, 1 any other failure to start, 70 a bug.

import { setFlagsFromString } from 'node:v8';
import type { Worker } from 'node:worker_threads';
import { parseCeremony } from '../ceremony/definition.ts';
import { EXIT } from '../command-line/exit-codes.ts';
import { sayFailure } from '../command-line/failure.ts';
import { renderViolations, writeViolations } from '../command-line/violations.ts';
import { systemClock } from '../observe/clock.ts';
import { createLogger, type Logger } from '../observe/logger.ts';
import { boot, type RunningSigner } from './boot/boot.ts';
import { openEnclaveLog } from './boot/enclave/log.ts';
import { ConfigurationRefused, type EnclaveParts, measureEnclave } from './boot/enclave/measure.ts';
import { reloadOnHangUps } from './boot/hang-ups.ts';
import type { World } from './boot/world.ts';
import { reportCheck, type Said, type SaidWarning, sayWarnings } from './commands/check.ts';
import { lookAtStart } from './commands/check-start.ts';
import { runSlashingCommand } from './commands/slashing.ts';
import { hasSlashingRecords } from './commands/slashing-open.ts';
import { COMPILED, type CompiledImage } from './compiled.ts';
import { type Loaded, type LoadInput, loadConfig } from './config/load.ts';
import type { Config } from './config/options.ts';
import { isDebugMode } from './tee/measure.ts';
import { type EnclavePlatform, openNitroPlatform } from './tee/platform.ts';

/** For the front of Web3Signer's command line, which refuses a start over an empty record. */
export { hasSlashingRecords };

export async function main(command: 'server' | 'slashing', argv: readonly string[]): Promise<void> {
  if (COMPILED !== undefined) {
    if (argv.length === 0) await runImage(COMPILED);
    else checkForImage(COMPILED, argv);
    return;
  }
  if (command === 'slashing') {
    await runSlashing(argv, { env: process.env });
    return;
  }
  await serve({ argv, env: process.env });
}

/**
 * @param input also how the front of Web3Signer's command line gives a configuration that is no file
 * @param said its warnings
 */
export async function serve(input: LoadInput, said: readonly SaidWarning[] = []): Promise<void> {
  const read = (): Loaded => loadConfig(input, { compiledCeremony: false });
  const loaded = read();
  if (!loaded.ok) {
    writeViolations(loaded.violations, process);
    process.exitCode = EXIT.configuration;
    return;
  }
  if (loaded.check) {
    process.exitCode = reportCheck(loaded, await lookAtStart(loaded.config, loaded), process);
    return;
  }
  await run({ ...loaded, warnings: [...said, ...loaded.warnings] }, read);
}

/** `strongroom slashing …` */
export async function runSlashing(argv: readonly string[], input: Pick<LoadInput, 'env' | 'readFile'>): Promise<void> {
  const { stdin, stdout, stderr } = process;
  process.exitCode = await runSlashingCommand(argv, { ...input, stdin, stdout, stderr });
}

async function run(
  { config, warnings, ignoredVariables }: Said & { readonly config: Config },
  readConfiguration: () => Loaded,
): Promise<void> {
  const logger = createLogger(config.logging);
  endOnBugs(logger);
  sayWarnings({ warnings, ignoredVariables }, logger.module('server'));
  try {
    await runSigner(config, { logger, clock: systemClock, readConfiguration });
  } catch (error) {
    await logger.end();
    sayFailure(process, 'strongroom', `cannot start: ${messageOf(error)}`);
    process.exit(EXIT.failed);
  }
}

const IMAGE_ARGUMENTS = 'strongroom: an image takes no arguments but --check\n';

/**
 * On the host that builds an image: would its signer take this configuration? Inside, init gives no arguments; with
 * some, nothing runs.
 */
function checkForImage({ ceremony }: CompiledImage, argv: readonly string[]): void {
  // `eif build` asks so whether the bundle starts, when it has no configuration to check (eif/check-configuration.ts).
  if (argv.length === 1 && argv[0] === '--help') {
    process.stdout.write(IMAGE_ARGUMENTS);
    return;
  }
  const loaded = loadConfig({ argv, env: {} }, { compiledCeremony: parseCeremony(ceremony) });
  if (loaded.ok && loaded.check) {
    process.exitCode = reportCheck(loaded, { violations: [], warnings: [] }, process);
    return;
  }
  process.stderr.write(loaded.ok ? IMAGE_ARGUMENTS : renderViolations(loaded.violations));
  process.exitCode = EXIT.configuration;
}

async function runImage(image: CompiledImage): Promise<void> {
  let platform: EnclavePlatform;
  try {
    platform = openNitroPlatform(process.env);
  } catch (error) {
    sayFailure(process, 'strongroom', `cannot start: ${messageOf(error)}`); // only a debug console shows it
    process.exit(EXIT.failed);
  }
  await runEnclave(image, platform);
}

/**
 * The signer inside an enclave, from the first call of its NSM to the end of the process. Its parent's log says why a
 * start fails.
 */
export async function runEnclave(
  image: CompiledImage,
  platform: EnclavePlatform,
  parts: Omit<EnclaveParts, 'log'> = {},
): Promise<void> {
  const output = openEnclaveLog(platform.parent);
  // also when logging.level would be silent on the reason
  const startLogger = output.logger({ level: 'info', format: 'json' });
  const log = startLogger.module('server');
  endOnBugs(startLogger);
  try {
    const { config, warnings, enclave } = await measureEnclave(image, platform, { ...parts, log });
    const logger = output.logger(config.logging, isDebugMode(enclave.measurements));
    sayWarnings({ warnings, ignoredVariables: [] }, logger.module('server'));
    await runSigner(config, { logger, clock: systemClock, enclave });
  } catch (error) {
    const refused = error instanceof ConfigurationRefused;
    const violations = refused ? { violations: error.violations } : {};
    log.error({ ...violations, error: refused ? 'the configuration is refused' : messageOf(error) }, 'cannot start');
    await startLogger.end();
    process.exit(refused ? EXIT.configuration : EXIT.failed);
  }
}

/**
 * How much the heap may grow after a full collection before the next one, in percent. V8 would leave a signer that is
 * not busy some 10 MB, and collect every few seconds; each collection slows signing for 8 to 80 ms
 * (docs/decisions/0006-threads-for-signing-and-checkpoints.md).
 */
const HEAP_GROWTH_PERCENT = 200;

/** @throws StartupError */
async function runSigner(config: Config, world: World): Promise<void> {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
  const workers = liveWorkers();
  const hangUps = reloadOnHangUps(process, world.logger.module('server'));
  const signer = await boot(config, world);
  hangUps.serve(signer);
  endOnSignals(signer, workers, world.logger);
  await signer.keysLoaded;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function liveWorkers(): ReadonlySet<Worker> {
  const live = new Set<Worker>();
  process.on('worker', (worker: Worker) => {
    live.add(worker);
    worker.once('exit', () => live.delete(worker));
  });
  return live;
}

/** For workers that were told to end and do nothing but that. */
const WORKERS_END_MS = 250;

/**
 * Ending a process joins its threads, and one that hangs in a call of the system, on a disk that does not answer, is
 * joined never. Then the kernel ends the process: what is durable is durable, and nothing else was signed.
 */
async function endProcess(code: number, workers: ReadonlySet<Worker>): Promise<void> {
  setTimeout(() => {
    process.kill(process.pid, 'SIGKILL');
    process.abort(); // the first process of a container cannot kill itself
  }, WORKERS_END_MS);
  await Promise.all([...workers].map((worker) => worker.terminate()));
  process.exit(code);
}

/** The first signal ends gracefully, a second one at once. */
function endOnSignals(signer: RunningSigner, workers: ReadonlySet<Worker>, logger: Logger): void {
  const log = logger.module('server');
  let ending = false;
  const end = async (signal: string): Promise<void> => {
    if (ending) return endProcess(EXIT.failed, workers);
    ending = true;
    log.info({ signal }, 'shutting down');
    await signer.shutDown();
    log.info({}, 'stopped');
    await logger.end();
    await endProcess(EXIT.ok, workers);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void end(signal));
}

/** A bug leaves the process in a state nobody has thought about: it must not sign on. */
function endOnBugs(logger: Logger): void {
  const end = (error: unknown): void => {
    logger.module('server').error({ err: error }, 'the signer ends: a fault that nothing handles');
    logger.flush();
    process.exit(EXIT.bug);
  };
  process.on('uncaughtException', end);
  process.on('unhandledRejection', end);
}
