// The parent proxy, started and stopped. Egress and services come first and close last, because what is being signed
// while the proxy stops needs them to the end.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { requestPath } from '../common/formats/request-path.ts';
import { CONFIGURATION_LENGTH_BYTES, CONFIGURATION_PORT, CREDENTIALS_PORT } from '../signer/api/parent-ports.ts';
import { INGRESS, type Ingress, type ProxyAddress, type ProxyConfiguration } from './configuration.ts';
import { listenEgress } from './forwarding/egress.ts';
import type { ForwardingListener } from './forwarding/forwarding.ts';
import { createGate } from './forwarding/gate.ts';
import { boundPort, listenIngress } from './forwarding/ingress.ts';
import {
  CLIENT_LINGERS_MS,
  CONFIGURATION_TIMEOUT_MS,
  DRAIN_QUIET_MS,
  MAX_CONFIGURATION_CONNECTIONS,
  MAX_PROXY_SCRAPERS,
  MAX_REQUEST_HEAD_BYTES,
  PROXY_SCRAPE_TIMEOUT_MS,
} from './limits.ts';
import type { ProxyMetrics } from './metrics.ts';
import { listenCredentials } from './services/credentials.ts';
import { type CredentialsProvider, sharedCredentials } from './services/instance-credentials.ts';
import { listenLogs } from './services/log.ts';
import type { Service } from './services/service.ts';
import type { Limits, ProxyWorld } from './world.ts';

export interface RunningProxy {
  readonly ingressPorts: Readonly<Record<Ingress, number>>;
  readonly metricsPort: number;
  /** Accept no more; let what is under way finish within the grace time; close everything. */
  shutDown(): Promise<void>;
}

/** @param credentials undefined when the configuration wants none @throws Error naming what could not be opened */
export async function startParentProxy(
  configuration: ProxyConfiguration,
  credentials: CredentialsProvider | undefined,
  world: ProxyWorld,
): Promise<RunningProxy> {
  const opened = new AsyncDisposableStack();
  const log = world.logger.module('server');
  const open = async <T extends { close(): Promise<void> }>(what: string, listen: Promise<T>): Promise<T> => {
    try {
      return opened.adopt(await listen, (listener) => listener.close());
    } catch (error) {
      throw new Error(`${what}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  };
  try {
    const own = await open('metrics of the proxy', listenProxyMetrics(world.metrics, configuration.metrics));
    await openServices(configuration, credentials, world, open);
    const limits = limitsOf(configuration);
    const egress: ForwardingListener[] = [];
    for (const endpoint of configuration.endpoints) {
      const what = `egress to ${endpoint.hostname}:${endpoint.port} at vsock port ${endpoint.vsock_port}`;
      egress.push(await open(what, listenEgress(endpoint, limits, world)));
    }
    const ingress = await openIngress(configuration, limits, world, open);
    const ingressPorts = { tls: ingress.tls.port, probes: ingress.probes.port, metrics: ingress.metrics.port };
    const { digest: configuration_sha384, pcr16, options } = configuration;
    log.info({ enclave_cid: options.enclave_cid, configuration_sha384, pcr16 }, 'ready');
    return {
      ingressPorts,
      metricsPort: own.port,
      async shutDown() {
        const until = world.clock.monotonic() + options.limits.graceful_shutdown_timeout_seconds * 1000;
        for (const listeners of [Object.values(ingress), egress]) await drain(listeners, until, world);
        await opened.disposeAsync();
      },
    };
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

type Open = <T extends { close(): Promise<void> }>(what: string, listen: Promise<T>) => Promise<T>;

async function openServices(
  { bytes, options }: ProxyConfiguration,
  credentials: CredentialsProvider | undefined,
  world: ProxyWorld,
  open: Open,
): Promise<void> {
  await open<Service>('log service', listenLogs(options.logs.max_bytes_per_second, world));
  if (credentials !== undefined) {
    const shared = sharedCredentials(credentials, world.clock);
    await open<Service>(`credentials service at vsock port ${CREDENTIALS_PORT}`, listenCredentials(shared, world));
  }
  await open<Service>('configuration service', listenConfiguration(bytes, world));
}

async function openIngress(
  { ingress, enclavePorts }: ProxyConfiguration,
  limits: Limits,
  world: ProxyWorld,
  open: Open,
): Promise<Record<Ingress, ForwardingListener>> {
  const listeners: Partial<Record<Ingress, ForwardingListener>> = {};
  for (const name of INGRESS) {
    const options = {
      name,
      listen: ingress[name],
      enclavePort: enclavePorts[name],
      limits: { lingerMs: CLIENT_LINGERS_MS, ...limits },
      proxyHeader: name === 'tls',
    };
    listeners[name] = await open(
      `ingress ${name} at ${ingress[name].host}:${ingress[name].port}`,
      listenIngress(options, world),
    );
  }
  return listeners as Record<Ingress, ForwardingListener>;
}

/** Quiet connections end soon, busy ones when they are quiet, all of them when the time is up. */
async function drain(listeners: readonly ForwardingListener[], until: number, { clock }: ProxyWorld): Promise<void> {
  for (const listener of listeners) {
    await listener.close();
    listener.endWhenQuiet(DRAIN_QUIET_MS);
  }
  const empty = Promise.all(listeners.map((listener) => listener.empty()));
  const drained = new AbortController();
  const timeUp = clock.pause(Math.max(0, until - clock.monotonic()), drained.signal).catch(() => undefined);
  await Promise.race([empty, timeUp]);
  drained.abort();
  for (const listener of listeners) listener.cutAll();
  await empty;
}

function limitsOf({ options: { limits } }: ProxyConfiguration): Limits {
  return {
    maxConnections: limits.max_connections_per_port,
    idleTimeoutMs: limits.idle_timeout_seconds * 1000,
    connectTimeoutMs: limits.connect_timeout_ms,
    connectRetryMs: limits.connect_retry_ms,
  };
}

interface MetricsListener {
  readonly port: number;
  close(): Promise<void>;
}

export async function listenProxyMetrics(
  metrics: ProxyMetrics,
  { host, port }: ProxyAddress,
  scrapeTimeoutMs = PROXY_SCRAPE_TIMEOUT_MS,
): Promise<MetricsListener> {
  const times = {
    requestTimeout: scrapeTimeoutMs,
    headersTimeout: scrapeTimeoutMs,
    connectionsCheckingInterval: Math.ceil(scrapeTimeoutMs / 4), // Node would look every 30 s
  };
  const server = createServer({ ...times, maxHeaderSize: MAX_REQUEST_HEAD_BYTES }, (request, response) => {
    request.resume();
    if (request.method !== 'GET' || requestPath(request.url) !== '/metrics') {
      response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
      response.end('metrics are at GET /metrics\n');
      return;
    }
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8', connection: 'close' });
    response.end(metrics.render());
  });
  server.maxConnections = MAX_PROXY_SCRAPERS;
  server.setTimeout(scrapeTimeoutMs);
  server.listen({ host, port });
  await once(server, 'listening');
  server.on('error', () => undefined); // an accept that failed: the next scrape comes
  return {
    port: boundPort(server),
    async close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

// Port 7001: the configuration file, as it was when the proxy started. The enclave measures it, so a parent that sends
// another changes the measurement.

const service = 'configuration';

async function listenConfiguration(bytes: Buffer, { transport, metrics, logger }: ProxyWorld): Promise<Service> {
  const log = logger.module('configuration');
  const gate = createGate(service, CONFIGURATION_PORT, MAX_CONFIGURATION_CONNECTIONS, metrics);
  const served = metrics.at('connections', { service, port: CONFIGURATION_PORT, outcome: 'served' });
  const length = Buffer.alloc(CONFIGURATION_LENGTH_BYTES);
  length.writeUInt32BE(bytes.length);
  const frame = Buffer.concat([length, bytes]);

  const serve = (socket: Socket): void => {
    const timer = setTimeout(() => socket.destroy(), CONFIGURATION_TIMEOUT_MS);
    socket.once('close', () => clearTimeout(timer));
    socket.once('finish', () => {
      served.add(1);
      log.info({ bytes: bytes.length }, 'the enclave took its configuration');
    });
    socket.once('data', () => socket.destroy()); // it has nothing to say here
    socket.end(frame);
  };
  const listener = await transport.listen(CONFIGURATION_PORT, (socket) => {
    if (gate.admit(socket)) serve(socket);
  });
  return {
    async close() {
      await listener.close();
      gate.cutAll();
      await gate.empty();
    },
  };
}
