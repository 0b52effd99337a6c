// The listeners of a service, in their order: metrics, TLS when configured, plain HTTP. `server --check` opens each for
// a moment, and accepts nothing. When all ports are in use and a signer answers at the metrics port, it may be the
// running signer of this very configuration: it is when this configuration's database is open, and then the look does
// not refuse, because a new version is checked while the old one runs (docs/guides/upgrade.md). A store on another host
// does not show which signer uses it.

import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http, { type Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Violation } from '../common/command-line/violations.ts';
import type { Log } from '../common/observe/log.ts';
import type { Authenticator } from '../signer/auth/authenticator.ts';
import { closeNow, endGracefully, type ListenersParts, type OpenListeners } from '../signer/boot/open-listeners.ts';
import type { World } from '../signer/boot/world.ts';
import type { Config } from '../signer/config/options.ts';
import type { AskForClients } from '../signer/http/listeners/client-certificates.ts';
import {
  type ListenAddress,
  listenMetrics,
  listenPlain,
  listenTls,
  MAX_PLAIN_CONNECTIONS,
} from '../signer/http/listeners/ports.ts';
import type { LostPlace } from '../signer/http/places.ts';
import {
  type CertificatePair,
  certificateWarning,
  clientCaWarning,
  judgeCertificatePair,
  readCertificatePair,
  reloadCertificate,
  secureContextOf,
  warnOfCertificate,
} from '../signer/tls/file.ts';
import { type ListenerSection, type ListeningProblem, listening, listeningProblem } from './listener-failure.ts';
import { type CheckFinding, onThisMachine, unusableOption } from './look.ts';
import { isOpenElsewhere } from './store-looks/sqlite.ts';

const METRICS_TIMEOUT_MS = 2000;
const MAX_METRICS_BYTES = 1024 * 1024;
/** For stores, logs, key files, outgoing calls, and connections that are closing. */
const FILES_BESIDE_CONNECTIONS = 512;
const MIN_CONNECTIONS = 64;

export async function openListeners(
  config: Pick<Config, 'metrics' | 'server' | 'tls'>,
  parts: ListenersParts,
  world: World,
  opened: AsyncDisposableStack,
): Promise<OpenListeners> {
  const { logger } = world;
  const { telemetry, authenticator } = parts;
  const { app } = parts.application;
  const log = logger.module('server');
  const forMetrics = addressOf(config.metrics);
  const metrics = await listening('metrics', forMetrics, () => listenMetrics(telemetry.metrics, forMetrics));
  opened.defer(() => closeNow(metrics));
  const metricsAddress = metrics.address() as AddressInfo;
  log.info({ listener: 'metrics', ...shown(metricsAddress) }, 'listening');

  const onLostPlace = (reason: LostPlace): void => telemetry.metrics.connectionsRefused.inc({ reason });
  const secure = await openTls(config.tls, { app, authenticator, telemetry, onLostPlace }, world, opened);
  if (secure !== undefined) log.info({ listener: 'tls', ...shown(secure.address) }, 'listening');

  const forRequests = addressOf(config.server);
  const maxConnections = plainConnections(secure === undefined ? 0 : config.tls.max_connections, log);
  const plain = await listening('server', forRequests, () =>
    listenPlain(app, { ...forRequests, maxConnections, onLostPlace }),
  );
  opened.defer(() => app.close());
  log.info({ listener: 'http', ...shown(plain.address) }, 'listening');

  const servers = secure === undefined ? [app.server] : [app.server, secure.server];
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

/**
 * As many as the process may have files open for: past that limit Node closes new connections without a word, and the
 * signer could not open its own files either. Node has raised the soft limit to the hard one.
 */
function plainConnections(forTls: number, log: Log): number {
  const [, limit] = /^Max open files +(\d+)/m.exec(readLimits()) ?? [];
  const left = Number(limit ?? Infinity) - forTls - FILES_BESIDE_CONNECTIONS;
  if (left >= MAX_PLAIN_CONNECTIONS) return MAX_PLAIN_CONNECTIONS;
  const connections = Math.max(left, MIN_CONNECTIONS);
  log.warn(
    { open_files: Number(limit), connections },
    'the process may open few files, so the plain listener takes fewer connections: raise LimitNOFILE (ulimit -Hn)',
  );
  return connections;
}

/** Linux only: elsewhere nothing, and the limit counts as high. */
function readLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}

interface TlsParts extends Omit<ListenersParts, 'application'> {
  readonly app: FastifyInstance;
  readonly onLostPlace: (why: LostPlace) => void;
}

async function openTls(
  tls: Config['tls'],
  { app, authenticator, telemetry, onLostPlace }: TlsParts,
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
  const address = addressOf(tls);
  const secure = await listening('tls', address, () =>
    listenTls(app, {
      ...address,
      maxConnections: tls.max_connections,
      secureContext: secureContextOf(pair, asksClients),
      clients: asksClients ? clients : undefined,
      onLostPlace,
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

/**
 * @returns whether the signer of this configuration seems to run: what it has open is no fault of the configuration
 */
export async function lookAtListeners(config: Config, { violations, warnings }: CheckFinding): Promise<boolean> {
  const listeners = listenersOf(config);
  const problems: ListeningProblem[] = [];
  for (const [section, address] of listeners) {
    const error = await openForAMoment(address);
    if (error !== undefined) problems.push(listeningProblem(section, address, error));
  }
  const allInUse = problems.length === listeners.length && problems.every(({ isInUse }) => isInUse);
  if (allInUse && (await isSignerAt(addressOf(config.metrics)))) {
    const { backend, path } = config.anti_slashing;
    const isOther = backend === 'sqlite' && !isOpenElsewhere(path);
    if (isOther) violations.push(otherSigner(config));
    else warnings.push({ at: 'server.listen_port', says: SIGNER_RUNS });
    return !isOther;
  }
  violations.push(...problems.map(({ path, problem, remedy }) => onThisMachine(path, problem, remedy)));
  return false;
}

const SIGNER_RUNS =
  'and the ports of the other listeners are in use by a signer that runs, with this configuration or a similar one: ' +
  'neither its ports nor its database file were looked at. Stop it before this start';

function otherSigner({ server, anti_slashing }: Config): Violation {
  const problem = `is ${server.listen_port}, where another signer listens: no process has ${anti_slashing.path} open, the store here`;
  return onThisMachine('server.listen_port', problem, 'stop the other signer, or give each its own ports');
}

type NamedAddress = readonly [ListenerSection, ListenAddress];

function listenersOf({ metrics, server, tls }: Config): readonly NamedAddress[] {
  const secure: NamedAddress[] = tls.mode === 'disabled' ? [] : [['tls', addressOf(tls)]];
  return [['metrics', addressOf(metrics)], ...secure, ['server', addressOf(server)]];
}

function addressOf(section: Pick<Config['server'], 'listen_address' | 'listen_port'>): ListenAddress {
  return { host: section.listen_address, port: section.listen_port };
}

/** What went wrong; undefined when a start could listen there. */
async function openForAMoment({ host, port }: ListenAddress): Promise<unknown> {
  const server = createServer((socket) => socket.destroy());
  try {
    const { address } = await lookup(host);
    server.listen({ host: address, port });
    await once(server, 'listening');
    return undefined;
  } catch (error) {
    return error;
  } finally {
    server.close();
  }
}

/** Whether what answers there has the metrics of a signer. */
function isSignerAt({ host, port }: ListenAddress): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  const request = http.get({ host: reachable, port, path: '/metrics', timeout: METRICS_TIMEOUT_MS }, (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      if (text.length > MAX_METRICS_BYTES) request.destroy();
    });
    response.on('end', () => resolve(text.includes('svc_signing_requests_total')));
    response.on('close', () => resolve(false));
  });
  request.on('timeout', () => request.destroy());
  request.on('error', () => resolve(false));
  return promise;
}

/** The files of TLS. @param nowMs when they are to be valid */
export async function lookAtCertificate(
  { tls }: Config,
  { violations, warnings }: CheckFinding,
  nowMs: number,
): Promise<void> {
  const { mode, file, client_ca } = tls;
  const { cert_path: certPath, key_path: keyPath } = file;
  if (mode !== 'file' || certPath === undefined || keyPath === undefined) return;
  const judged = await judgeCertificatePair({ certPath, keyPath, clientCaPath: client_ca });
  if ('faults' in judged) return void violations.push(...judged.faults.map(unusableOption));
  const { pair } = judged;
  pair.key.fill(0);
  const says = certificateWarning(pair, nowMs);
  if (says !== undefined) warnings.push({ at: 'tls.file.cert_path', says });
  const saysOfCa = clientCaWarning(pair.clientCa, nowMs);
  if (saysOfCa !== undefined) warnings.push({ at: 'tls.client_ca', says: saysOfCa });
}
