// argv → configuration → listeners → signals. The only file of the parent proxy that reads arguments and ends the
// process. Exit codes: 0 a clean end, 78 a configuration that cannot be used, 1 any other failure to start, 70 a bug.

import { readFileSync } from 'node:fs';
import { EXIT } from '../common/command-line/exit-codes.ts';
import { sayFailure } from '../common/command-line/failure.ts';
import { adviceOn } from '../common/command-line/file-faults.ts';
import { type Command, runProgram } from '../common/command-line/program.ts';
import type { Piped } from '../common/command-line/terminal.ts';
import type { Violation } from '../common/command-line/violations.ts';
import { writeViolations } from '../common/command-line/violations-report.ts';
import type { Log } from '../common/observe/log.ts';
import { type Output, openOutput } from '../common/observe/output.ts';
import { createPlainLogger } from '../common/observe/plain-logger.ts';
import { loadAddon } from '../signer/native/load.ts';
import type { Transport } from '../signer/native/transport.ts';
import { vsockTransport } from '../signer/native/vsock.ts';
import { FLAGS, readProxyArguments, TITLE } from './arguments.ts';
import { pausingClock } from './clock.ts';
import { INGRESS, type LoadedProxy, type ProxyConfiguration, readProxyConfiguration } from './configuration.ts';
import {
  MAX_CONFIGURATION_CONNECTIONS,
  MAX_CREDENTIALS_CONNECTIONS,
  MAX_LOG_CONNECTIONS,
  MAX_PROXY_SCRAPERS,
} from './limits.ts';
import { errorWord, type ProxyLogger } from './log.ts';
import { createProxyMetrics } from './metrics.ts';
import { defaultChain } from './services/instance-credentials.ts';
import { type RunningProxy, startParentProxy } from './start.ts';

/** For the log to be taken when the process ends. */
const END_TIMEOUT_MS = 2000;
const MAX_WAITING_LOG_BYTES = 8 * 1024 * 1024;

/** VMADDR_CID_LOCAL: the enclave of a test guest is on the same machine, and so is everybody else there. */
const LOOPBACK_CID = 1;
const OPEN_TO_ALL =
  'parent_proxy.enclave_cid is 1, loopback: every user of this machine can ask for the AWS credentials and the configuration; for tests only';

interface World extends Piped {
  openTransport(enclaveCid: number): Transport;
}

export const parentProxy: Command<World> = {
  description: {
    summary: 'On the parent instance of a Nitro Enclave: carry what the enclave and the network say to each other',
    usage: ['-c FILE [--check]'],
    notes: [
      'It is not trusted: TLS ends in the enclave, and what the enclave reaches is encrypted.',
      "FILE is the enclave's own configuration file. The parent proxy reads tee.nitro.egress.endpoints, the listeners' " +
        'ports and the parent_proxy block; `strongroom server --check` judges the rest. Who may write FILE decides what ' +
        'the enclave is told, and the enclave measures it: PCR16.',
      'SIGTERM ends it gracefully, SIGHUP opens a log file again. Exit codes: 0 a clean end, 78 a configuration that ' +
        'cannot be used, 1 any other failure to start, 70 a bug. docs/reference/parent-proxy.md has every option and metric.',
    ],
    flags: FLAGS,
    sections: [
      {
        heading: 'What it carries',
        entries: [
          [
            'TCP tls, probes, metrics',
            "to the enclave's listeners of those names. The clients' addresses in a PROXY header are this program's word: " +
              'bound_cidrs in an enclave restricts remote callers, not whoever controls the parent.',
          ],
          ['vsock egress ports', 'to the declared endpoints, nothing else'],
          ['vsock 7000', 'the enclave\'s log, to the output, as JSON lines with "source":"enclave"'],
          ['vsock 7001', 'the configuration file, as it was when the parent proxy started'],
          ['vsock 7002', 'AWS credentials of this instance'],
        ],
      },
    ],
    examples: ['strongroom parent-proxy --check -c strongroom.yaml', 'strongroom parent-proxy -c strongroom.yaml'],
  },

  async run(argv, world) {
    const { configPath = '', check, violations } = readProxyArguments(argv);
    const loaded = violations.length > 0 ? { ok: false as const, violations } : load(configPath);
    if (!loaded.ok) {
      writeViolations(loaded.violations, world);
      return EXIT.configuration;
    }
    if (check) world.stdout.write(checkReport(loaded.configuration));
    else await run(loaded.configuration, world.openTransport);
    return EXIT.ok;
  },
};

/** @param openTransport the way to the enclave with this CID: vsock, unless a test says otherwise */
export async function main(
  argv: readonly string[],
  openTransport: (enclaveCid: number) => Transport = openVsock,
): Promise<void> {
  const { env, stdin, stdout, stderr } = process;
  const world = { env, stdin, stdout, stderr, openTransport };
  process.exitCode = await runProgram({ title: TITLE, tree: async () => parentProxy }, argv, world, () => undefined);
}

async function run(configuration: ProxyConfiguration, openTransport: (enclaveCid: number) => Transport): Promise<void> {
  const { options } = configuration;
  try {
    const output = openOutput(options.logs.output, { maxWaitingBytes: MAX_WAITING_LOG_BYTES });
    const logger = createPlainLogger(output, pausingClock);
    endOnBugs(logger, output);
    warnOfFewDescriptors(configuration, logger.module('server'));
    if (options.enclave_cid === LOOPBACK_CID) logger.module('server').warn({ enclave_cid: LOOPBACK_CID }, OPEN_TO_ALL);
    const metrics = createProxyMetrics();
    metrics.onRender(() => metrics.at('lostLogLines', {}).set(output.lostLines));
    const credentials = options.credentials.source === 'none' ? undefined : await defaultChain();
    const world = { transport: openTransport(options.enclave_cid), clock: pausingClock, logger, metrics, output };
    const proxy = await startParentProxy(configuration, credentials, world);
    answerSignals(proxy, logger, output);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    sayFailure(process, TITLE, `cannot start: ${message}`);
    process.exit(EXIT.failed);
  }
}

function load(path: string): LoadedProxy {
  try {
    return readProxyConfiguration(readFileSync(path), path);
  } catch (error) {
    const problem = `cannot be read (${errorWord(error)})`;
    const remedy = adviceOn(errorWord(error)) ?? 'name a file that this user may read';
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

function answerSignals(proxy: RunningProxy, logger: ProxyLogger, output: Output): void {
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
      log.error({ error: errorWord(error) }, 'the log file cannot be opened again; the old one stays');
    }
  });
}

/**
 * A bug leaves the process in a state that its authors did not foresee: the process ends and the service manager starts
 * it again.
 */
function endOnBugs(logger: ProxyLogger, output: Output): void {
  const end = async (error: unknown): Promise<void> => {
    const stack = error instanceof Error ? error.stack : undefined;
    logger
      .module('server')
      .error({ error: errorWord(error), stack }, 'the parent proxy ends: a fault that nothing handles');
    await output.end(END_TIMEOUT_MS);
    process.exit(EXIT.bug);
  };
  process.on('uncaughtException', (error) => void end(error));
  process.on('unhandledRejection', (error) => void end(error));
}

// Without enough file descriptors the runtime drops new connections without a word, so it is said at the start.

/** A forwarded connection has two ends. */
const PER_CONNECTION = 2;
const BESIDES = 128;

function warnOfFewDescriptors(configuration: ProxyConfiguration, log: Log): void {
  const limit = descriptorLimit();
  const needed = neededDescriptors(configuration);
  if (limit === undefined || limit >= needed) return;
  log.warn(
    { limit, needed },
    'the limit of file descriptors is below what the connection limits need: raise it (LimitNOFILE)',
  );
}

function neededDescriptors({ endpoints, options }: ProxyConfiguration): number {
  const forwarding = (INGRESS.length + endpoints.length) * options.limits.max_connections_per_port * PER_CONNECTION;
  const services =
    MAX_LOG_CONNECTIONS + MAX_CONFIGURATION_CONNECTIONS + MAX_CREDENTIALS_CONNECTIONS + MAX_PROXY_SCRAPERS;
  return forwarding + services + endpoints.length + BESIDES;
}

/** The soft limit; undefined where there is none, or no /proc. */
function descriptorLimit(): number | undefined {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}
