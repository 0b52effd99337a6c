// argv → configuration → listeners → signals. The only file of the parent proxy that reads arguments and ends the
// process. Exit codes: 0 a clean end, 78 a configuration that cannot be used, 1 any other failure to start, 70 a bug.

import { readFileSync } from 'node:fs';
import { EXIT } from '../command-line/exit-codes.ts';
import { sayFailure } from '../command-line/failure.ts';
import { adviceOn } from '../command-line/file-faults.ts';
import { type Violation, writeViolations } from '../command-line/violations.ts';
import { loadAddon } from '../enclave/native/load.ts';
import type { Transport } from '../enclave/native/transport.ts';
import { vsockTransport } from '../enclave/native/vsock.ts';
import { createPlainLogger } from '../observe/plain-logger.ts';
import { readArguments } from './arguments.ts';
import { systemClock } from './clock.ts';
import { type LoadedConfiguration, type ProxyConfiguration, readProxyConfiguration } from './configuration.ts';
import { warnOfFewDescriptors } from './descriptors.ts';
import { errorCode, type Logger } from './log.ts';
import { createMetrics } from './metrics.ts';
import { type Output, openOutput } from './output.ts';
import { defaultChain } from './services/instance-credentials.ts';
import { type RunningProxy, startParentProxy } from './start.ts';

/** For the log to be taken when the process ends. */
const END_TIMEOUT_MS = 2000;

/** VMADDR_CID_LOCAL: the enclave of a test guest is on the same machine, and so is everybody else there. */
const LOOPBACK_CID = 1;
const OPEN_TO_ALL =
  'parent_proxy.enclave_cid is 1, loopback: every user of this machine can ask for the AWS credentials and the configuration; for tests only';

/** @param openTransport the way to the enclave with this CID: vsock, unless a test says otherwise */
export async function main(
  argv: readonly string[],
  openTransport: (enclaveCid: number) => Transport = openVsock,
): Promise<void> {
  const { configPath = '', check, violations } = readArguments(argv);
  const loaded = violations.length > 0 ? { ok: false as const, violations } : load(configPath);
  if (!loaded.ok) {
    writeViolations(loaded.violations, process);
    process.exitCode = EXIT.configuration;
    return;
  }
  if (check) {
    process.stdout.write(checkReport(loaded.configuration));
    return;
  }
  await run(loaded.configuration, openTransport);
}

async function run(configuration: ProxyConfiguration, openTransport: (enclaveCid: number) => Transport): Promise<void> {
  const { options } = configuration;
  try {
    const output = openOutput(options.logs.output);
    const logger = createPlainLogger(output, systemClock);
    endOnBugs(logger, output);
    warnOfFewDescriptors(configuration, logger.module('server'));
    if (options.enclave_cid === LOOPBACK_CID) logger.module('server').warn({ enclave_cid: LOOPBACK_CID }, OPEN_TO_ALL);
    const metrics = createMetrics();
    metrics.onRender(() => metrics.at('lostLogWrites', {}).set(output.lostWrites));
    const credentials = options.credentials.source === 'none' ? undefined : await defaultChain();
    const world = { transport: openTransport(options.enclave_cid), clock: systemClock, logger, metrics, output };
    const proxy = await startParentProxy(configuration, credentials, world);
    answerSignals(proxy, logger, output);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    sayFailure(process, 'strongroom parent-proxy', `cannot start: ${message}`);
    process.exit(EXIT.failed);
  }
}

function load(path: string): LoadedConfiguration {
  try {
    return readProxyConfiguration(readFileSync(path), path);
  } catch (error) {
    const problem = `cannot be read (${errorCode(error)})`;
    const remedy = adviceOn(errorCode(error)) ?? 'name a file that this user may read';
    const violation: Violation = { path, problem, remedy, origin: 'flag --config' };
    return { ok: false, violations: [violation] };
  }
}

function openVsock(enclaveCid: number): Transport {
  const addon = loadAddon();
  if (addon === undefined) {
    throw new Error(
      'the native addon is not built, and there is no vsock without it: run `make native` (needs a C compiler)',
    );
  }
  return vsockTransport(addon, { peerCid: enclaveCid });
}

function checkReport({ digest, pcr16, endpoints, options }: ProxyConfiguration): string {
  const names = endpoints.map(({ hostname, port, vsock_port }) => `  vsock ${vsock_port} → ${hostname}:${port}\n`);
  return `strongroom parent-proxy: the configuration is valid\n\nDigest (SHA-384) ${digest}\nPCR16            ${pcr16}\n\negress\n${names.join('') || '  none\n'}${options.enclave_cid === LOOPBACK_CID ? `\nWARNING: ${OPEN_TO_ALL}\n` : ''}`;
}

/** SIGTERM and SIGINT: the first ends gracefully, a second one at once. SIGHUP: the log file was rotated. */
function answerSignals(proxy: RunningProxy, logger: Logger, output: Output): void {
  const log = logger.module('server');
  let ending = false;
  const end = async (signal: string): Promise<void> => {
    if (ending) process.exit(EXIT.failed);
    ending = true;
    log.info({ signal }, 'shutting down');
    await proxy.shutDown();
    log.info({}, 'stopped');
    await output.end(END_TIMEOUT_MS);
    process.exit(EXIT.ok);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void end(signal));
  process.on('SIGHUP', () => {
    try {
      output.reopen();
    } catch (error) {
      log.error({ error: errorCode(error) }, 'the log file cannot be opened again; the old one stays');
    }
  });
}

/** A bug leaves the process in a state nobody has thought about: the service manager starts it afresh. */
function endOnBugs(logger: Logger, output: Output): void {
  const end = async (error: unknown): Promise<void> => {
    const stack = error instanceof Error ? error.stack : undefined;
    logger
      .module('server')
      .error({ error: errorCode(error), stack }, 'the parent proxy ends: a fault that nothing handles');
    await output.end(END_TIMEOUT_MS);
    process.exit(EXIT.bug);
  };
  process.on('uncaughtException', (error) => void end(error));
  process.on('unhandledRejection', (error) => void end(error));
}
