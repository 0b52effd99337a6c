// `strongroom operator tunnel`: for validator clients, which cannot verify an enclave themselves: a listener on this
// machine, behind which every connection to the enclave is attested and carries the token.

import type { RemoteCall } from '../command.ts';
import { CONNECTIONS, DEFAULT_LISTEN, type tunnel, WAITING } from '../descriptions/enclave.ts';
import { UsageFailure } from '../exit.ts';
import { readListenAddress } from '../tunnel/address.ts';
import { runTunnel } from '../tunnel/tunnel.ts';

const MAX_BODY_BYTES = 64 * 1024 * 1024;

export async function serveTunnel({
  values,
  connection: { peer, token, timeoutSeconds },
  terminal,
}: RemoteCall<typeof tunnel.flags>): Promise<void> {
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
}

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
