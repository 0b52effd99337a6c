// The real parent proxy in the test's process, over Unix sockets, with what a hostile parent would do in place of what
// it should; and every line that it writes, parsed.

import type { Socket } from 'node:net';
import { expect, vi } from 'vitest';
import { createPlainLogger } from '../../common/observe/plain-logger.ts';
import { pausingClock } from '../../parent-proxy/clock.ts';
import { readProxyConfiguration } from '../../parent-proxy/configuration.ts';
import { createProxyMetrics } from '../../parent-proxy/metrics.ts';
import type { CredentialsProvider } from '../../parent-proxy/services/instance-credentials.ts';
import { type RunningProxy, startParentProxy } from '../../parent-proxy/start.ts';
import type { ProxyWorld } from '../../parent-proxy/world.ts';
import type { Transport } from '../../signer/native/transport.ts';
import { LONGEST_WAIT_MS } from './patience.ts';

/** Only so that a line that does not come is named. */
const LOG_WAIT_MS = 800_000;

export interface Parent extends RunningProxy {
  /** Lines of the parent's output, parsed: its own, and the enclave's. */
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  /** The first line of the enclave with this message, once there is one. */
  said(message: string): Promise<Readonly<Record<string, unknown>>>;
  /** Once the signer may sign: after an enclave was killed, the next one waits for its slashing store, and jumps. */
  healthy(): Promise<void>;
  /** After a start. */
  readyToSign(): Promise<void>;
  readonly tlsUrl: string;
  readonly probesUrl: string;
  readonly metricsUrl: string;
  close(): Promise<void>;
}

export interface ParentOptions {
  /** What it hands over, when that is not the configuration it runs on. */
  readonly handsOver?: Buffer;
  readonly credentials?: CredentialsProvider;
  /** Base URL: what its DynamoDB endpoint leads to, when that is not the world's table server. */
  readonly dynamodb?: string;
  /** The same of its KMS endpoint. */
  readonly kms?: string;
  /** The port of this machine that a declared database's vsock port leads to. */
  readonly database?: { readonly vsockPort: number; readonly port: number };
  /** What happens on a vsock port of the parent in place of what should: `absent` is nobody there. */
  readonly instead?: Readonly<Record<number, 'absent' | ((socket: Socket) => void)>>;
}

export const PARENT_ACCESS_KEY_ID = 'ASIATEST';

/** Credentials as an instance's role gives them. Test ones. */
const testCredentials: CredentialsProvider = async () => ({
  accessKeyId: PARENT_ACCESS_KEY_ID,
  secretAccessKey: 'TEST-secret-access-key',
  sessionToken: 'TEST-session-token',
  expiration: new Date(Date.now() + 3_600_000),
});

/**
 * The real parent proxy in this process.
 * @param ports of this machine, by vsock port: where the connections of the declared egress end
 */
export async function startParent(
  yaml: string,
  transport: Transport,
  ports: Readonly<Record<number, number>>,
  { handsOver, credentials = testCredentials, instead = {} }: ParentOptions = {},
): Promise<Parent> {
  const loaded = readProxyConfiguration(Buffer.from(yaml), 'enclave.yaml');
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.violations));
  // The declared hosts are AWS's: their connections end here instead.
  const endpoints = loaded.configuration.endpoints.map((endpoint) => ({
    ...endpoint,
    hostname: '127.0.0.1',
    port: ports[endpoint.vsock_port] ?? endpoint.port,
  }));
  const { output, lines, said } = recordedOutput();
  const world = {
    transport: hostileAt(instead, transport),
    clock: pausingClock,
    logger: createPlainLogger(output, pausingClock),
    metrics: createProxyMetrics(),
    output,
  };
  const proxied = { ...loaded.configuration, endpoints, bytes: handsOver ?? loaded.configuration.bytes };
  const proxy = await startParentProxy(proxied, credentials, world);
  const { tls, probes, metrics } = proxy.ingressPorts;
  const probe = async (): Promise<number> => (await fetch(`http://127.0.0.1:${probes}/healthcheck`)).status;
  const healthy = () =>
    vi.waitFor(async () => expect(await probe()).toBe(200), { timeout: LONGEST_WAIT_MS, interval: 100 });
  return {
    ...proxy,
    lines,
    said,
    healthy,
    readyToSign: () => said('ready').then(healthy),
    tlsUrl: `https://${loaded.configuration.ingress.tls.host}:${tls}`,
    probesUrl: `http://127.0.0.1:${probes}`,
    metricsUrl: `http://127.0.0.1:${metrics}/metrics`,
    close: () => proxy.shutDown(),
  };
}

function hostileAt(instead: NonNullable<ParentOptions['instead']>, transport: Transport): Transport {
  return {
    ...transport,
    listen: async (port, onConnection, options) => {
      const other = instead[port];
      if (other === 'absent') return { close: async () => undefined };
      return transport.listen(port, other ?? onConnection, options);
    },
  };
}

type Line = Readonly<Record<string, unknown>>;

function recordedOutput(): { output: ProxyWorld['output']; lines: Line[]; said: Parent['said'] } {
  const lines: Line[] = [];
  const waiting = new Set<() => void>();
  const output: ProxyWorld['output'] = {
    write(text) {
      for (const line of text.trimEnd().split('\n')) {
        const { record, ...own } = JSON.parse(line) as Line & { readonly record?: Line };
        lines.push(record === undefined ? own : { ...record, source: 'enclave' });
      }
      for (const look of waiting) look();
      return true;
    },
    drained: async () => undefined,
  };
  const said: Parent['said'] = (message) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no "${message}" in ${JSON.stringify(lines)}`)), LOG_WAIT_MS);
      const look = (): void => {
        const fromEnclave = lines.filter(({ source }) => source === 'enclave');
        const line = fromEnclave.find(({ msg }) => msg === message);
        const failure = fromEnclave.find(({ msg }) => msg === 'cannot start');
        if (line === undefined && failure === undefined) return;
        clearTimeout(timer);
        waiting.delete(look);
        if (line === undefined) reject(new Error(`the start failed: ${JSON.stringify(failure)}`));
        else resolve(line);
      };
      waiting.add(look);
      look();
    });
  return { output, lines, said };
}
