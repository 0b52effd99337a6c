// A tunnel of the program's own in this process, to a given enclave, and requests through it.

import { once } from 'node:events';
import { type IncomingMessage, type RequestOptions, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { parseRegisters } from '../../common/attestation/reference-file.ts';
import { runTunnel, type TunnelOptions } from '../../operator/tunnel/tunnel.ts';
import { testPcr } from '../../rehearsal/nsm/emulator.ts';
import { ownAddress } from '../support/own-address.ts';

export interface RunningTunnel {
  /** Empty when it never listened. */
  readonly url: string;
  readonly lines: readonly string[];
  readonly ended: Promise<unknown>;
  stop(): void;
  logged(words: string): Promise<void>;
}

export interface TunnelTo {
  readonly url: string;
  readonly token: string;
  readonly rootFingerprint: string;
  readonly now?: () => number;
}

/** PCR0 of the emulator is what is expected. */
export async function startTunnel(to: TunnelTo, options: Partial<TunnelOptions> = {}): Promise<RunningTunnel> {
  const stopping = new AbortController();
  const lines: string[] = [];
  let wake = (): void => undefined;
  const { promise: listening, resolve: onListening } = Promise.withResolvers<string>();
  const attestation = {
    provider: { name: 'the test authority', rootSha256: to.rootFingerprint },
    referenceValues: parseRegisters([`0=${testPcr(0).toString('hex')}`]),
    maxAgeSeconds: 10_800,
    now: to.now ?? Date.now,
  };
  const all: TunnelOptions = {
    peer: { url: new URL(to.url), attestation },
    token: to.token,
    ...{ host: ownAddress(4), port: 0, loopback: true, timeoutSeconds: 300 },
    ...{ maxConnections: 8, maxWaiting: 8, maxBodyBytes: 100_000 },
    log: (line) => {
      lines.push(line);
      wake();
    },
    onListening,
    ...options,
  };
  const ended = runTunnel(all, stopping.signal).then(
    () => undefined,
    (error: unknown) => error,
  );
  return {
    url: await Promise.race([listening, ended.then(() => '')]),
    lines,
    ended,
    stop: () => stopping.abort(),
    async logged(words) {
      const from = lines.length;
      while (!lines.slice(from).some((line) => line.includes(words))) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

export interface Reply {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly json: Record<string, unknown>;
}

export function open(tunnel: RunningTunnel, path: string, options: RequestOptions = {}) {
  return request(`${tunnel.url}${path}`, { agent: false, ...options });
}

export async function ask(
  tunnel: RunningTunnel,
  path: string,
  options: RequestOptions = {},
  body?: string,
): Promise<Reply> {
  const outgoing = open(tunnel, path, options);
  outgoing.end(body);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  return { status: response.statusCode, headers: response.headers, json: JSON.parse(await text(response)) };
}
