// `strongroom operator tunnel`: for validator clients, which cannot verify an enclave themselves: a listener on this
// machine, behind which every connection to the enclave is attested and carries the token.

import { remoteCommand } from '../command.ts';
import { UsageFailure } from '../exit.ts';
import { readListenAddress } from '../tunnel/address.ts';
import { runTunnel } from '../tunnel/tunnel.ts';

/** Where validator clients look for a signer. */
const DEFAULT_LISTEN = '127.0.0.1:9000';

const CONNECTIONS = { default: 32, max: 512 } as const;

const WAITING = { default: 256, max: 4096 } as const;

const MAX_BODY_BYTES = 64 * 1024 * 1024;

export const tunnel = remoteCommand(
  {
    summary: 'Serve validator clients here, over attested connections',
    flags: {
      listen: {
        placeholder: 'HOST:PORT',
        meaning: `Default ${DEFAULT_LISTEN}; who reaches it has all the token allows`,
      },
      'unsafe-listen-publicly': { meaning: 'Permit an address that other machines can reach' },
      'max-connections': { placeholder: 'COUNT', meaning: `To the enclave; ${CONNECTIONS.default} when not given` },
      'max-waiting': { placeholder: 'COUNT', meaning: `Requests that wait for one; ${WAITING.default} when not given` },
    },
    examples: [
      'tunnel --signer-url https://enclave:9443 --pcrs pcrs.json --token @token',
      'tunnel --profile enclave --listen 127.0.0.1:9100',
    ],
  },

  async ({ values, connection: { peer, token, timeoutSeconds }, terminal }) => {
    const { url, attestation } = peer;
    if (attestation === undefined) {
      throw new UsageFailure('a tunnel leads to an enclave: say which image with --pcrs or --pcr');
    }
    if (token === undefined)
      throw new UsageFailure('a tunnel adds a token: name it with --token, a variable or a profile');
    const allowOthers = values['unsafe-listen-publicly'];
    const address = readListenAddress(values.listen ?? DEFAULT_LISTEN, allowOthers);
    const log = (line: string): void => void terminal.stderr.write(`${new Date().toISOString()} tunnel: ${line}\n`);
    if (!address.loopback) log('warning: whoever can reach this listener uses the token');
    const options = {
      ...address,
      peer: { url, attestation },
      token,
      maxConnections: readCount('max-connections', values['max-connections'], CONNECTIONS),
      maxWaiting: readCount('max-waiting', values['max-waiting'], WAITING),
      maxBodyBytes: MAX_BODY_BYTES,
      timeoutSeconds,
      log,
    };
    await untilSignalled((signal) => runTunnel(options, signal));
  },
);

/** SIGTERM and SIGINT stop it; a second one ends the process as usual. */
async function untilSignalled(run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  process.once('SIGTERM', stop).once('SIGINT', stop);
  try {
    await run(stopping.signal);
  } finally {
    process.off('SIGTERM', stop).off('SIGINT', stop);
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
