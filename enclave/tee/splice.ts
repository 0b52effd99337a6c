// Two streams made one: what comes in on either goes out on the other, with backpressure, and an end in one direction leaves the other
// open. Whatever breaks one end breaks the other, and a pair on which nothing moves for too long is cut.

import type { Socket } from 'node:net';

export function splice(one: Socket, other: Socket, { idleMs }: { readonly idleMs: number }): void {
  join(one, other, idleMs);
  join(other, one, idleMs);
}

function join(from: Socket, to: Socket, idleMs: number): void {
  from.on('error', () => undefined); // 'close' follows
  from.on('close', () => {
    if (!from.readableEnded || !from.writableFinished) to.destroy();
  });
  from.setTimeout(idleMs, () => {
    from.destroy();
    to.destroy();
  });
  from.pipe(to);
}
