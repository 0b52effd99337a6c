// Step "listeners": metrics first, then the signing API over plain HTTP and, when configured, TLS. In an enclave:
// listeners/enclave.ts.

import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Authenticator } from '../auth/authenticator.ts';
import type { Config } from '../config/options.ts';
import type { AskForClients } from '../http/listeners/client-certificates.ts';
import { listenPlain, listenTls } from '../http/listeners/listen.ts';
import { listenMetrics } from '../http/listeners/metrics.ts';
import {
  type CertificatePair,
  readCertificatePair,
  reloadCertificate,
  secureContextOf,
  warnOfCertificate,
} from '../tls/file.ts';
import { openEnclaveListeners } from './listeners/enclave.ts';
import { listening } from './listeners/failure.ts';
import { closeNow, endGracefully, type ListenersParts, type OpenListeners } from './listeners/open-listeners.ts';
import type { World } from './world.ts';

export async function openListeners(
  config: Pick<Config, 'metrics' | 'server' | 'tls'>,
  parts: ListenersParts,
  world: World,
  opened: AsyncDisposableStack,
): Promise<OpenListeners> {
  const { logger, enclave } = world;
  if (enclave !== undefined) {
    return openEnclaveListeners(config, parts, { ...world, enclave }, opened);
  }
  const { telemetry, authenticator } = parts;
  const { app } = parts.application;
  const log = logger.module('server');
  const { metrics: metricsOptions, server } = config;
  const forMetrics = { host: metricsOptions.listen_address, port: metricsOptions.listen_port };
  const metrics = await listening('metrics', forMetrics, () => listenMetrics(telemetry.metrics, forMetrics));
  opened.defer(() => closeNow(metrics));
  const metricsAddress = metrics.address() as AddressInfo;
  log.info({ listener: 'metrics', ...shown(metricsAddress) }, 'listening');

  const secure = await openTls(config.tls, { app, authenticator, telemetry }, world, opened);
  if (secure !== undefined) log.info({ listener: 'tls', ...shown(secure.address) }, 'listening');

  const forRequests = { host: server.listen_address, port: server.listen_port };
  const plain = await listening('server', forRequests, () => listenPlain(app, forRequests));
  opened.defer(() => app.close());
  log.info({ listener: 'http', ...shown(plain.address) }, 'listening');

  const servers = secure === undefined ? [app.server] : [app.server, secure.server];
  for (const server of servers) {
    server.on('drop', () => telemetry.metrics.connectionsRefused.inc({ reason: 'limit' })); // beyond maxConnections
  }
  return {
    http: plain.address,
    tls: secure?.address,
    metrics: metricsAddress,
    connections: async () => ({
      plain: await openConnections(app.server),
      tls: secure === undefined ? 0 : await openConnections(secure.server),
      metrics: await openConnections(metrics),
    }),
    reloadCertificate: async () => secure?.reloadCertificate(),
    closeGracefully: endGracefully(servers, log),
  };
}

async function openTls(
  tls: Config['tls'],
  { app, authenticator, telemetry }: Omit<ListenersParts, 'application'> & { readonly app: FastifyInstance },
  { logger, clock }: Pick<World, 'logger' | 'clock'>,
  opened: AsyncDisposableStack,
): Promise<(Awaited<ReturnType<typeof listenTls>> & Pick<OpenListeners, 'reloadCertificate'>) | undefined> {
  const { file, known_clients, client_auth } = tls;
  if (tls.mode !== 'file' || file.cert_path === undefined || file.key_path === undefined) return undefined;
  const asksClients = known_clients.length > 0;
  const files = { certPath: file.cert_path, keyPath: file.key_path, clientCaPath: tls.client_ca, asksClients };
  const pair = await readCertificatePair(files);
  let ca = pair.clientCa?.digest;
  const clients: AskForClients = {
    caInForce: () => ca,
    now: () => clock.now(),
    refusal: client_auth === 'required' ? refusalBy(authenticator) : undefined,
    log: logger.module('tls'),
  };
  const address = { host: tls.listen_address, port: tls.listen_port };
  const secure = await listening('tls', address, () =>
    listenTls(app, {
      ...address,
      maxConnections: tls.max_connections,
      secureContext: secureContextOf(pair, asksClients),
      clients: asksClients ? clients : undefined,
    }),
  );
  const inForce = ({ notAfter, clientCa }: CertificatePair): void => {
    telemetry.metrics.certificateExpiry.set(Date.parse(notAfter) / 1000, { mode: 'file' });
    if (clientCa?.digest === ca) return;
    ca = clientCa?.digest;
    secure.server.closeIdleConnections(); // their clients come back, and are judged by the new authorities
  };
  pair.key.fill(0);
  warnOfCertificate(pair, clock.now(), logger.module('tls'));
  inForce(pair);
  const reload = reloadCertificate(secure.server, files, pair, {
    intervalSeconds: file.reload_interval_seconds,
    log: logger.module('tls'),
    now: () => clock.now(),
    onReload: inForce,
  });
  opened.defer(() => {
    reload.stop();
    return closeNow(secure.server);
  });
  return { ...secure, reloadCertificate: reload.poll };
}

/** A token counts with a request; the connection needs the client. */
function refusalBy(authenticator: Authenticator): AskForClients['refusal'] {
  return (certificate, peer) => {
    if (certificate === undefined) return 'missing_credentials';
    const outcome = authenticator.authenticate({ kind: 'none' }, peer, certificate);
    return outcome.kind === 'refused' ? outcome.reason : undefined;
  };
}

function openConnections(server: Server | TlsServer): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });
}

function shown({ address, port }: AddressInfo): { readonly address: string; readonly port: number } {
  return { address, port };
}
