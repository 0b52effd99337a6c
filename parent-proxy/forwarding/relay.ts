// Carries bytes both ways. An end in one direction leaves the other; a slow reader stops its writer; what breaks is
// broken on the other side too, never ended as if it were complete.

import type { Socket } from 'node:net';

/** `complete`: both directions ended and everything was delivered. */
type RelayEnd = 'complete' | 'broken' | 'idle' | 'shutdown';

interface RelayOptions {
  /** Without a byte from either side. */
  readonly idleTimeoutMs: number;
  /** The same once the enclave has ended and everything it sent is delivered; idleTimeoutMs unless given. */
  readonly lingerMs?: number;
  readonly toEnclave: { add(bytes: number): void };
  readonly fromEnclave: { add(bytes: number): void };
  /** Called once, when the two sides have spoken in turn so often: an answer has gone through. */
  readonly established?: { readonly turns: number; readonly call: () => void };
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

  let turns = 0;
  let speaker: Socket | undefined;
  const takeTurn = (from: Socket): void => {
    speaker = from;
    turns += 1;
    if (turns === options.established?.turns) options.established.call();
  };

  const carry = (from: Socket, to: Socket, carried: { add(bytes: number): void }): void => {
    from.on('data', (bytes: Buffer) => {
      quiet.refresh();
      if (from !== speaker) takeTurn(from);
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
