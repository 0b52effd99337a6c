// The one way between an enclave and its parent: numbered ports, streams in both directions. Tests of the host have
// another than vsock, because no vsock is opened outside a guest.

import type { Socket } from 'node:net';
import { getSystemErrorMap } from 'node:util';

export interface TransportListener {
  /** Stop accepting; connections that are open stay. */
  close(): Promise<void>;
}

export interface ListenOptions {
  /** A full vsock queue resets the next connection at once. */
  readonly backlog?: number;
}

/** Every stream is half-open at both ends. `remoteAddress` says nothing. */
export interface Transport {
  /** From the enclave to its parent, or back. @throws TransportError, the socket's own error */
  connect(port: number, options?: { readonly timeoutMs?: number; readonly signal?: AbortSignal }): Promise<Socket>;
  /** Any other peer is cut off. @throws when the port is taken */
  listen(port: number, onConnection: (socket: Socket) => void, options?: ListenOptions): Promise<TransportListener>;
}

/** `code` is the system's: ECONNRESET, ENODEV, ECONNREFUSED and ETIMEDOUT all mean that the peer is not there. */
export class TransportError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'TransportError';
    this.code = code;
  }
}

/** The system's short name and its own words. */
export function describeErrno(errno: number): { readonly code: string; readonly text: string } {
  const [code, text] = getSystemErrorMap().get(errno) ?? [`errno ${-errno}`, 'unknown system error'];
  return { code, text };
}

/** @param doing for the message @throws TransportError when the result is an error */
export function assertResult(doing: string, result: number): number {
  if (result >= 0) return result;
  const { code, text } = describeErrno(result);
  throw new TransportError(code, `${doing} ${code}: ${text}`);
}
