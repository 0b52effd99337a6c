// `strongroom operator tunnel`: for validator clients, which cannot verify an enclave themselves: a listener on this
// machine, behind which every connection to the enclave is attested and carries the token. With `--participants` it is
// the combiner of distributed keys.

import type { FlagValue } from '../../common/command-line/arguments.ts';
import { openOutput } from '../../common/observe/output.ts';
import { loadAddon } from '../../signer/native/load.ts';
import { type OperatorWorld, remoteCommand } from '../command.ts';
import { COMMON_FLAGS, DEFAULT_TIMEOUT_SECONDS, type SettingName, settingVariable } from '../common-flags.ts';
import { participantsOf } from '../distributed/participants-file.ts';
import { localFailure, UsageFailure } from '../exit.ts';
import { readSeconds } from '../settings.ts';
import { readListenAddress } from '../tunnel/address.ts';
import type { ListenerOptions } from '../tunnel/listener.ts';
import { runTunnel } from '../tunnel/tunnel.ts';

/** Where validator clients look for a signer. */
const DEFAULT_LISTEN = '127.0.0.1:9000';

const CONNECTIONS = { default: 32, max: 512 } as const;

/** A thousand keys vote at once, and some clients open a connection for each. */
const WAITING = { default: 2048, max: 4096 } as const;

const MAX_BODY_BYTES = 64 * 1024 * 1024;
const MAX_WAITING_LOG_BYTES = 1024 * 1024;
/** For the log to be taken when it ends. */
const END_TIMEOUT_MS = 1000;

/** With --participants; the other common flags name one signer. */
const OF_ALL: ReadonlySet<string> = new Set<SettingName>(['timeout-seconds']);

interface ListenValues {
  readonly listen: string | undefined;
  readonly 'unsafe-listen-publicly': boolean;
  readonly 'max-connections': string | undefined;
  readonly 'max-waiting': string | undefined;
  readonly 'timeout-seconds'?: FlagValue;
}

export const tunnel = remoteCommand(
  {
    summary: 'Serve validator clients here, over attested connections',
    flags: {
      listen: {
        placeholder: 'HOST:PORT',
        meaning: `Default ${DEFAULT_LISTEN}; who reaches it has all the token allows`,
      },
      'unsafe-listen-publicly': { meaning: 'Permit an address that other machines can reach' },
      'max-connections': { placeholder: 'COUNT', meaning: `To each signer; ${CONNECTIONS.default} when not given` },
      'max-waiting': { placeholder: 'COUNT', meaning: `Requests that wait for one; ${WAITING.default} when not given` },
      participants: { placeholder: 'FILE', meaning: 'Profiles whose partial signatures are combined' },
    },
    examples: [
      'tunnel --signer-url https://enclave:9443 --pcrs pcrs.json --token @token',
      'tunnel --participants participants.yaml --listen 127.0.0.1:9100',
    ],
    instead: (values, world) => {
      const { participants: file } = values;
      if (file === undefined) return undefined;
      const ofOne = Object.keys(COMMON_FLAGS).find((name) => !OF_ALL.has(name) && (values[name] ?? false) !== false);
      if (ofOne !== undefined)
        throw new UsageFailure(`--${ofOne} is about one signer`, 'write it into the profiles of --participants');
      return combine(file, values, world);
    },
  },

  async ({ values, connection: { peer, token, timeoutSeconds } }) => {
    const { url, attestation } = peer;
    if (attestation === undefined) {
      throw new UsageFailure('a tunnel leads to an enclave: say which image with --pcrs or --pcr');
    }
    if (token === undefined)
      throw new UsageFailure('a tunnel adds a token: name it with --token, a variable or a profile');
    await serve(values, timeoutSeconds, (options, signal) =>
      runTunnel({ ...options, peer: { url, attestation }, token }, signal),
    );
  },
);

async function combine(file: string, values: ListenValues, world: OperatorWorld): Promise<void> {
  const addon = loadAddon();
  if (addon === undefined) throw localFailure('the native addon, which combines, is not built', 'run make native');
  const name = settingVariable('timeout-seconds');
  const [flag, variable] = [values['timeout-seconds'], world.env[name]];
  const text = String(flag ?? variable ?? DEFAULT_TIMEOUT_SECONDS);
  const timeoutSeconds = readSeconds({ text, origin: flag === undefined ? name : '--timeout-seconds' }, 0);
  const participants = await participantsOf(file, world);
  const { runCombiner } = await import('../distributed/combiner.ts'); // and the library that verifies
  await serve(values, timeoutSeconds, (options, signal) => runCombiner({ ...options, participants, addon }, signal));
}

/** SIGTERM and SIGINT stop it; a second one ends the process as usual. A log that is not taken holds up nothing. */
async function serve(
  values: ListenValues,
  timeoutSeconds: number,
  run: (options: ListenerOptions, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const address = readListenAddress(values.listen ?? DEFAULT_LISTEN, values['unsafe-listen-publicly']);
  const limits = {
    timeoutSeconds,
    maxConnections: readCount('max-connections', values['max-connections'], CONNECTIONS),
    maxWaiting: readCount('max-waiting', values['max-waiting'], WAITING),
    maxBodyBytes: MAX_BODY_BYTES,
  };
  const lineOf = (text: string): string => `${new Date().toISOString()} tunnel: ${text}\n`;
  const lostLine = (lines: number): string => lineOf(`${lines} lines of this log were dropped`);
  const output = openOutput('stderr', { maxWaitingBytes: MAX_WAITING_LOG_BYTES, lostLine });
  const log = (text: string): void => void output.write(lineOf(text));
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  process.once('SIGTERM', stop).once('SIGINT', stop);
  try {
    if (!address.loopback) log('warning: whoever can reach this listener uses the token');
    await run({ ...address, ...limits, log }, stopping.signal);
  } finally {
    process.off('SIGTERM', stop).off('SIGINT', stop);
    await output.end(END_TIMEOUT_MS);
  }
}

function readCount(
  name: string,
  written: string | undefined,
  limit: { readonly default: number; readonly max: number },
): number {
  if (written === undefined) return limit.default;
  const count = /^[0-9]{1,6}$/.test(written) ? Number(written) : 0;
  if (count >= 1 && count <= limit.max) return count;
  throw new UsageFailure(`--${name} is a whole number, 1 to ${limit.max}`);
}
