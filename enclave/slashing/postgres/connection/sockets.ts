// The sockets below the connections to PostgreSQL: how they look a name up, and that each has an end even when the
// other side is gone without a word.

import { Socket } from 'node:net';

/** `pg` connects what it is given; this one can be told to look names up for IPv4 only. */
export class DatabaseSocket extends Socket {
  readonly #forceIpv4: boolean;

  constructor(forceIpv4: boolean) {
    super();
    this.#forceIpv4 = forceIpv4;
  }

  override connect(...parameters: unknown[]): this {
    const [port, host] = parameters;
    if (typeof port !== 'number' || typeof host !== 'string') throw new TypeError('a port and a host are expected');
    return super.connect({ port, host, ...(this.#forceIpv4 ? { family: 4 } : {}) });
  }
}

/** Cuts the sockets when the work, their end, takes longer. */
export async function endInTime(work: Promise<void>, waitMs: number, sockets: Iterable<Socket>): Promise<void> {
  const timer = setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, waitMs);
  try {
    await work;
  } finally {
    clearTimeout(timer);
  }
}
