// Step "listeners" inside an enclave: three vsock ports that the parent proxy connects to. Attested TLS has the whole
// API; the plain port answers probes only; metrics are metrics. The certificate is made before the first of them
// listens, and rotates from then on.

import type { Config } from '../../config/options.ts';
import { listenMetricsOnTransport } from '../../http/listeners/metrics.ts';
import { listenProbes } from '../../http/listeners/probe.ts';
import { listenRatls } from '../../http/listeners/ratls.ts';
import type { TransportServer } from '../../http/listeners/transport-server.ts';
import { statusClass } from '../../metrics/metrics.ts';
import { RatlsRotation } from '../../tee/ratls/rotation.ts';
import type { Enclave } from '../enclave/measure.ts';
import type { World } from '../world.ts';
import { closeNow, endGracefully, type ListenersParts, type OpenListeners } from './open-listeners.ts';

export async function openEnclaveListeners(
  config: Pick<Config, 'metrics' | 'server' | 'tls'>,
  { application: { app, readiness }, telemetry }: ListenersParts,
  { logger, clock, enclave }: World & { readonly enclave: Enclave },
  opened: AsyncDisposableStack,
): Promise<OpenListeners> {
  const { metrics: metricsSource } = telemetry;
  const log = logger.module('server');
  const transport = enclave.platform.parent;
  const open = async (listener: string, port: number, listen: Promise<TransportServer>): Promise<TransportServer> => {
    const server = await listen;
    opened.defer(() => closeNow(server));
    log.info({ listener, port }, 'listening');
    return server;
  };
  const { server: plain, metrics: metricsOptions, tls } = config;
  opened.defer(() => app.close());
  const identities = await startRotation(tls.ratls, telemetry, { logger, clock, enclave }, opened);

  const metricsPort = metricsOptions.listen_port;
  const metrics = await open(
    'metrics',
    metricsPort,
    listenMetricsOnTransport(metricsSource, { transport, port: metricsPort }),
  );
  const secure = await open(
    'tls',
    tls.listen_port,
    listenRatls(app, {
      transport,
      port: tls.listen_port,
      maxConnections: tls.max_connections,
      identities,
      log: logger.module('tls'),
      onRefused: (reason) => metricsSource.connectionsRefused.inc({ reason }),
    }),
  );
  const onRequest = (route: string, status: number): void =>
    metricsSource.httpRequests.inc({ route, status: statusClass(status) });
  const probes = await open(
    'http',
    plain.listen_port,
    listenProbes(readiness, { transport, port: plain.listen_port, onRequest }),
  );
  return {
    http: { port: plain.listen_port },
    tls: { port: tls.listen_port },
    metrics: { port: metricsPort },
    connections: async () => ({
      plain: probes.connections(),
      tls: secure.connections(),
      metrics: metrics.connections(),
    }),
    reloadCertificate: async () => undefined, // it is renewed by itself (tee/ratls)
    closeGracefully: endGracefully([probes, secure], log),
  };
}

async function startRotation(
  ratls: Config['tls']['ratls'],
  { metrics }: ListenersParts['telemetry'],
  { logger, clock, enclave: { nsm } }: Pick<World, 'logger' | 'clock'> & { readonly enclave: Enclave },
  opened: AsyncDisposableStack,
): Promise<RatlsRotation> {
  const rotation = new RatlsRotation(
    { intervalSeconds: ratls.rotation_interval_seconds, validitySeconds: ratls.cert_validity_seconds },
    {
      nsm,
      clock,
      log: logger.module('tls'),
      onRotation: (outcome) => {
        metrics.ratlsRotations.inc({ outcome: outcome === 'failed' ? 'failed' : 'ok' });
        if (outcome === 'failed') return;
        metrics.certificateExpiry.set(outcome.identity.expiresAt / 1000, { mode: 'ratls' });
        metrics.nsmClockOffsetSeconds.set(outcome.identity.nsmAheadMs / 1000);
      },
    },
  );
  opened.defer(() => rotation.stop());
  await rotation.start();
  return rotation;
}
