// What listens once the start is over, and how it ends.

import type { AddressInfo } from 'node:net';
import type { Log } from '../../common/observe/log.ts';
import type { Authenticator } from '../auth/authenticator.ts';
import { type ClosableServer, closeGracefully } from '../http/listeners/listen.ts';
import type { Application } from './http-application.ts';
import type { Telemetry } from './telemetry.ts';

/** In an enclave a port is a vsock port. */
type ListenerPort = Pick<AddressInfo, 'port'>;

export interface OpenListeners {
  readonly http: ListenerPort;
  readonly tls: ListenerPort | undefined;
  readonly metrics: ListenerPort;
  connections(): Promise<Readonly<Record<'plain' | 'tls' | 'metrics', number>>>;
  /** Answers whether the files could be used; undefined without files. */
  reloadCertificate(): Promise<boolean | undefined>;
  closeGracefully(timeoutSeconds: number): Promise<void>;
}

export interface ListenersParts {
  readonly application: Application;
  readonly authenticator: Authenticator;
  readonly telemetry: Pick<Telemetry, 'metrics'>;
}

export function endGracefully(servers: readonly ClosableServer[], log: Log): OpenListeners['closeGracefully'] {
  return async (timeoutSeconds) => {
    const inTime = await closeGracefully(servers, timeoutSeconds);
    if (!inTime) log.warn({ timeout_seconds: timeoutSeconds }, 'requests were cut: the grace time is over');
  };
}

export function closeNow(server: Pick<ClosableServer, 'close' | 'closeAllConnections'>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
