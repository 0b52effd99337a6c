// What a start would find of its addresses and ports: `server --check` opens each listener for a moment, accepts
// nothing, and closes it again. When all of them are in use and a signer answers at the metrics port, it is most likely
// this configuration's own signer that runs: that is said, and is no reason to refuse the configuration, because a new
// version is checked beside the running one (docs/guides/upgrade.md).

import { lookup } from 'node:dns/promises';
import http from 'node:http';
import { createServer } from 'node:net';
import type { Violation } from '../../command-line/violations.ts';
import { type ListenerSection, type ListeningProblem, listeningProblem } from '../boot/listeners/failure.ts';
import type { Config } from '../config/options.ts';
import type { ListenAddress } from '../http/listeners/listen.ts';
import type { Found } from './check.ts';

const METRICS_TIMEOUT_MS = 2000;
const MAX_METRICS_BYTES = 1024 * 1024;

export interface ListenersFound extends Found {
  /** A signer with these ports seems to run: what it has open is no fault of the configuration. */
  readonly signerRuns: boolean;
}

export async function lookAtListeners(config: Config): Promise<ListenersFound> {
  const listeners = listenersOf(config);
  const problems: ListeningProblem[] = [];
  for (const [section, address] of listeners) {
    const error = await openForAMoment(address);
    if (error !== undefined) problems.push(listeningProblem(section, address, error));
  }
  const allInUse = problems.length === listeners.length && problems.every(({ isInUse }) => isInUse);
  if (allInUse && (await isSignerAt(addressOf(config.metrics)))) {
    return { violations: [], warnings: [{ at: 'server.listen_port', says: SIGNER_RUNS }], signerRuns: true };
  }
  const violations = problems.map(
    ({ path, problem, remedy }): Violation => ({ path, problem, remedy, origin: 'what is on this machine' }),
  );
  return { violations, warnings: [], signerRuns: false };
}

const SIGNER_RUNS =
  'and the ports of the other listeners are in use by a signer that runs, with this configuration or a similar one: ' +
  'neither its ports nor its database file were looked at. Stop it before this start';

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
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once('error', reject);
    server.listen({ host: address, port }, resolve);
    await promise;
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
