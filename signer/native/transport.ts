// The one way between an enclave and its parent: numbered ports, streams in both directions. vsock is one
// implementation (vsock.ts); the tests of the host have another over Unix sockets, because no vsock is opened outside a
// guest.

import type { Socket } from 'node:net';
import { getSystemErrorMap } from 'node:util';

export interface TransportListener {
  /** Stop accepting; connections that are open stay. */
  close(): Promise<void>;
}

export interface ListenOptions {
  /** Connections that wait to be accepted; a full vsock queue resets the next one at once. */
  readonly backlog?: number;
}

/** Both ends of every stream are half-open: an end in one direction leaves the other. `remoteAddress` says nothing. */
export interface Transport {
  /**
   * To the other side: from the enclave its parent, from the parent the enclave.
   * @throws TransportError, the socket's own error
   */
  connect(port: number, options?: { readonly timeoutMs?: number; readonly signal?: AbortSignal }): Promise<Socket>;
  /** For connections from the other side only; any other peer is cut off. @throws when the port is taken */
  listen(port: number, onConnection: (socket: Socket) => void, options?: ListenOptions): Promise<TransportListener>;
}

/** `code` is the system's: ECONNRESET, ENODEV, ECONNREFUSED and ETIMEDOUT all mean that nobody is there. */
export class TransportError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'TransportError';
    this.code = code;
  }
}

/** What the system calls it: its short name and its own words. */
export function describeErrno(errno: number): { readonly code: string; readonly text: string } {
  const [code, text] = getSystemErrorMap().get(errno) ?? [`errno ${-errno}`, 'unknown system error'];
  return { code, text };
}

/** @param doing for the message @returns the result @throws TransportError when the result is an error */
export function assertResult(doing: string, result: number): number {
  if (result >= 0) return result;
  const { code, text } = describeErrno(result);
  throw new TransportError(code, `${doing} ${code}: ${text}`);
}
