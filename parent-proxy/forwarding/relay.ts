// Carries bytes between a TCP connection and a stream of the enclave, both ways, as they are. An end in one direction
// is passed on and leaves the other; a slow reader stops its writer, so that a connection holds two buffers and no
// more; a connection that breaks is broken on the other side too, never ended as if it were complete.

import type { Socket } from 'node:net';

/** `complete`: both directions ended and everything was delivered. */
export type RelayEnd = 'complete' | 'broken' | 'idle' | 'shutdown';

export interface RelayOptions {
  /** Without a byte from either side. */
  readonly idleTimeoutMs: number;
  /** The same once the enclave has ended and everything it sent is delivered; idleTimeoutMs unless given. */
  readonly lingerMs?: number;
  readonly toEnclave: { add(bytes: number): void };
  readonly fromEnclave: { add(bytes: number): void };
}

export interface Relay {
  readonly ended: Promise<RelayEnd>;
  /** End it when nothing is carried for so long. */
  endWhenQuiet(quietMs: number): void;
}

/** @param tcp paused or not, with an error handler of its own @param enclave likewise */
export function relay(tcp: Socket, enclave: Socket, options: RelayOptions): Relay {
  const { promise: ended, resolve } = Promise.withResolvers<RelayEnd>();
  let end: RelayEnd | undefined;
  let open = 2;

  const stop = (reason: RelayEnd): void => {
    end ??= reason;
    // A TCP peer tells a reset from an end; what was being carried when it broke must not look complete.
    if (reason === 'broken' && !tcp.destroyed) tcp.resetAndDestroy();
    tcp.destroy();
    enclave.destroy();
  };
  let longestQuietMs = options.idleTimeoutMs;
  let quiet = setTimeout(() => stop('idle'), longestQuietMs);
  const waitFor = (quietMs: number, reason: RelayEnd): void => {
    clearTimeout(quiet);
    longestQuietMs = quietMs;
    quiet = setTimeout(() => stop(reason), quietMs);
  };

  const carry = (from: Socket, to: Socket, carried: { add(bytes: number): void }): void => {
    from.on('data', (bytes: Buffer) => {
      quiet.refresh();
      carried.add(bytes.length);
      if (!to.write(bytes)) from.pause();
    });
    to.on('drain', () => void from.resume());
    from.on('end', () => void to.end());
    onceClosed(from, () => {
      if (!from.readableEnded || !from.writableFinished) stop('broken');
      open -= 1;
      if (open > 0) return;
      clearTimeout(quiet);
      resolve(end ?? 'complete');
    });
  };

  const { lingerMs } = options;
  if (lingerMs !== undefined) tcp.once('finish', () => open > 0 && waitFor(Math.min(lingerMs, longestQuietMs), 'idle'));
  carry(tcp, enclave, options.toEnclave);
  carry(enclave, tcp, options.fromEnclave);
  tcp.resume();
  enclave.resume();
  return {
    ended,
    endWhenQuiet(quietMs) {
      if (open > 0) waitFor(quietMs, 'shutdown');
    },
  };
}

/** Also when it closed before anybody listened: while the other side was being connected. */
function onceClosed(socket: Socket, closed: () => void): void {
  if (socket.closed) queueMicrotask(closed);
  else socket.once('close', closed);
}
