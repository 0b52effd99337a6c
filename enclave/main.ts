// argv → configuration → boot → serve. The only file of the signer that reads arguments and ends the process.
// Exit codes: 0 a clean end, 78 a configuration that cannot be used, 1 any other failure to start, 70 a bug.

import { renderViolations } from './api/violations.ts';
import { boot, type RunningSigner, StartupError } from './boot.ts';
import { runSetupCommand } from './commands/setup.ts';
import { runSlashingCommand } from './commands/slashing.ts';
import { serverHelp } from './config/help.ts';
import { asksForHelp, loadConfig } from './config/load.ts';
import type { Config } from './config/options.ts';
import { systemClock } from './observe/clock.ts';
import { createLogger, type Logger } from './observe/logger.ts';

const EXIT = { ok: 0, startup: 1, bug: 70, configuration: 78 } as const;

export async function main(command: 'server' | 'setup' | 'slashing', argv: readonly string[]): Promise<void> {
  if (command === 'slashing') {
    process.exitCode = await runSlashingCommand(argv, {
      env: process.env,
      stdin: process.stdin,
      stdout: process.stdout,
      stderr: process.stderr,
    });
    return;
  }
  if (command === 'setup') {
    process.exitCode = await runSetupCommand(argv, process);
    return;
  }
  await serve(argv);
}

async function serve(argv: readonly string[]): Promise<void> {
  if (asksForHelp(argv)) {
    process.stdout.write(serverHelp());
    return;
  }
  const loaded = loadConfig({ argv, env: process.env }, { compiledCeremony: false });
  if (!loaded.ok) {
    process.stderr.write(renderViolations(loaded.violations));
    process.exitCode = EXIT.configuration;
    return;
  }
  if (loaded.check) {
    process.stdout.write('strongroom: the configuration is valid\n');
    return;
  }
  await run(loaded.config);
}

async function run(config: Config): Promise<void> {
  const logger = createLogger(config.logging);
  endOnBugs(logger);
  try {
    const signer = await boot(config, { logger, clock: systemClock });
    endOnSignals(signer, logger);
    await signer.keysLoaded;
  } catch (error) {
    await logger.end();
    const message = error instanceof StartupError || error instanceof Error ? error.message : String(error);
    process.stderr.write(`strongroom: cannot start: ${message}\n`);
    process.exit(EXIT.startup);
  }
}

/** The first signal ends gracefully, a second one at once. */
function endOnSignals(signer: RunningSigner, logger: Logger): void {
  const log = logger.module('server');
  let ending = false;
  const end = async (signal: string): Promise<void> => {
    if (ending) process.exit(EXIT.startup);
    ending = true;
    log.info({ signal }, 'shutting down');
    await signer.shutDown();
    log.info({}, 'stopped');
    await logger.end();
    process.exit(EXIT.ok);
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
