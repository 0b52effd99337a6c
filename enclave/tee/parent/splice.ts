// A TCP connection and a stream to the parent made one: what comes in on either goes out on the other, with
// backpressure, and an end in one direction leaves the other open. What breaks one breaks the other: the client hears a
// reset, because an end would pass for a complete answer. A pair on which nothing moves for too long is cut.

import type { Socket } from 'node:net';

export function splice(client: Socket, outside: Socket, { idleMs }: { readonly idleMs: number }): void {
  const cut = (): void => {
    client.resetAndDestroy();
    outside.destroy();
  };
  for (const [from, to] of [
    [client, outside],
    [outside, client],
  ] as const) {
    from.on('error', () => undefined); // 'close' follows
    from.on('close', () => {
      if (!from.readableEnded || !from.writableFinished) cut();
    });
    from.setTimeout(idleMs, cut);
    from.pipe(to);
  }
}
