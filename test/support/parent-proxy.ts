// A parent proxy in the test process, over Unix sockets in a directory of its own: the program's parts as they are,
// with a clock, a log and credentials of the test's choice, and the enclave's side of the transport for the test to
// play.

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPlainLogger } from '../../common/observe/plain-logger.ts';
import { type PausingClock, pausingClock } from '../../parent-proxy/clock.ts';
import { readProxyConfiguration } from '../../parent-proxy/configuration.ts';
import { createProxyMetrics, type ProxyMetrics } from '../../parent-proxy/metrics.ts';
import type { CredentialsProvider } from '../../parent-proxy/services/instance-credentials.ts';
import { type RunningProxy, startParentProxy } from '../../parent-proxy/start.ts';
import type { ProxyWorld } from '../../parent-proxy/world.ts';
import type { Transport } from '../../signer/native/transport.ts';
import { unixTransport } from './unix-transport.ts';

export interface ProxyUnderTest extends RunningProxy {
  readonly directory: string;
  readonly enclave: Transport;
  readonly metrics: ProxyMetrics;
  /** Lines of the output: the proxy's own log, and the enclave's. */
  readonly lines: string[];
  /** The sample of a metric line that begins so, as a number; 0 when it is not there. */
  sample(series: string): number;
  /** Resolves when the sample is this. */
  reaches(series: string, value: number): Promise<void>;
  close(): Promise<void>;
}

export interface ProxyTestOptions {
  /** Declared endpoints: vsock port → TCP port of localhost. */
  readonly egress?: Readonly<Record<number, number>>;
  /** Where the ports of the enclave are offered; 127.0.0.1 unless given. */
  readonly host?: string;
  /** Members of `parent_proxy.limits`, and of `parent_proxy.logs`. */
  readonly limits?: Readonly<Record<string, number>>;
  readonly logs?: Readonly<Record<string, number | string>>;
  readonly credentials?: CredentialsProvider;
  readonly clock?: Partial<PausingClock>;
  readonly output?: Partial<ProxyWorld['output']>;
}

/** What an operator would write, with free TCP ports. */
export function proxyYaml({ egress = {}, host = '127.0.0.1', limits = {}, logs = {} }: ProxyTestOptions): string {
  const endpoints = Object.entries(egress).map(([vsockPort, port], index) => ({
    hostname: index === 0 ? 'localhost' : `service-${index}.test`,
    loopback: `127.0.1.${index + 1}`,
    vsock_port: Number(vsockPort),
    port,
  }));
  const loopback = { listen_address: host, listen_port: 0 };
  return JSON.stringify({
    tee: { platform: 'nitro', nitro: { egress: { endpoints } } },
    parent_proxy: {
      ingress: { tls: loopback, probes: loopback, metrics: loopback },
      metrics: loopback,
      limits: { graceful_shutdown_timeout_seconds: 0, ...limits },
      logs,
    },
  });
}

export async function startProxyUnderTest(options: ProxyTestOptions = {}): Promise<ProxyUnderTest> {
  const loaded = readProxyConfiguration(Buffer.from(proxyYaml(options)), 'test.yaml');
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.violations));
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-proxy-'));
  const lines: string[] = [];
  const output: ProxyWorld['output'] = {
    write(text) {
      lines.push(...text.split('\n').slice(0, -1));
      return true;
    },
    drained: async () => undefined,
    ...options.output,
  };
  const clock = { ...pausingClock, ...options.clock };
  const metrics = createProxyMetrics();
  const transport = unixTransport(directory, 'parent');
  const world = { transport, clock, logger: createPlainLogger(output, clock), metrics, output };
  const sample = (series: string): number => {
    const line = metrics
      .render()
      .split('\n')
      .find((text) => text.startsWith(`${series} `));
    return Number(line?.slice(series.length + 1) ?? 0);
  };
  // A host is declared once; all of them are this machine here.
  const endpoints = loaded.configuration.endpoints.map((endpoint) => ({ ...endpoint, hostname: 'localhost' }));
  const proxy = await startParentProxy({ ...loaded.configuration, endpoints }, options.credentials, world);
  return {
    ...proxy,
    directory,
    enclave: unixTransport(directory, 'enclave'),
    metrics,
    lines,
    sample,
    async reaches(series, value) {
      while (sample(series) !== value) await new Promise<void>((resolve) => void setTimeout(resolve, 1));
    },
    async close() {
      await proxy.shutDown();
      rmSync(directory, { recursive: true });
    },
  };
}

/** A TCP server of this machine, on a free port; it closes what it has open when it is closed. */
export async function tcpServer(
  onConnection: (socket: Socket) => void,
): Promise<{ readonly port: number; readonly server: Server; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    onConnection(socket);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  await promise;
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');
  return {
    port: address.port,
    server,
    async close() {
      const closed = new Promise((done) => server.close(done));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
