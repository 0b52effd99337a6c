// What the pool gives for one request, or why it gives nothing.

import type { Socket } from 'node:net';

export interface Lease {
  readonly socket: Socket;
  /** @param reusable the answer was read to its end, and nothing is left of the request */
  release(reusable: boolean): void;
}

export class PoolError extends Error {
  readonly code: 'unreachable' | 'unverified' | 'busy' | 'closed';

  constructor(code: PoolError['code']) {
    super(`no connection: ${code}`);
    this.name = 'PoolError';
    this.code = code;
  }
}
