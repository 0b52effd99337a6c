// The parent proxy, started and stopped: what listens, in which order. Egress and services first, so that an enclave
// that finds the proxy finds all of it; they close last, because what is being signed while the proxy stops needs them
// to the end.

import { CREDENTIALS_PORT } from '../enclave/api/parent-ports.ts';
import { INGRESS, type Ingress, type ProxyConfiguration } from './configuration.ts';
import { listenEgress } from './forwarding/egress.ts';
import type { ForwardingListener } from './forwarding/forwarding.ts';
import { listenIngress } from './forwarding/ingress.ts';
import { CLIENT_LINGERS_MS, DRAIN_QUIET_MS } from './limits.ts';
import { listenMetrics } from './metrics-listener.ts';
import { listenConfiguration } from './services/configuration.ts';
import { listenCredentials } from './services/credentials.ts';
import { type CredentialsProvider, sharedCredentials } from './services/instance-credentials.ts';
import { listenLogs } from './services/log.ts';
import type { Service } from './services/service.ts';
import type { Limits, ProxyWorld } from './world.ts';

export interface RunningProxy {
  /** TCP ports on the parent. */
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
    const own = await open('metrics of the proxy', listenMetrics(world.metrics, configuration.metrics));
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
