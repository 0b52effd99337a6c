// Connections of the tunnel's pool, and requests over them, at the edges that no running enclave shows at will.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it, vi } from 'vitest';
import type { AttestedConnection } from '../../operator/connect.ts';
import { forward } from '../../operator/tunnel/forward.ts';
import { PoolError } from '../../operator/tunnel/lease.ts';
import { ConnectionPool, type PoolOptions } from '../../operator/tunnel/pool.ts';

function pooled(open: () => AttestedConnection, options: Partial<PoolOptions> = {}): ConnectionPool {
  return new ConnectionPool({
    open: () => Promise.resolve(open()),
    ...{ maxConnections: 4, maxWaiting: 4, connectTimeoutMs: 60_000, idleMs: 60_000 },
    now: () => 1000,
    keepWarm: () => Promise.resolve(true),
    onUnreachable: () => undefined,
    onUnverified: () => undefined,
    onReachable: () => undefined,
    onRefused: () => undefined,
    ...options,
  });
}

it.each<[string, () => AttestedConnection]>([
  ['whose evidence ended', () => ({ socket: new Socket(), expiresAt: 1000 })],
  ['that was closed', () => ({ socket: new Socket().destroy(), expiresAt: 2000 })],
])('a connection %s while it was being verified is given to nobody', async (_, open) => {
  const opened: AttestedConnection[] = [];
  const pool = pooled(() => {
    const connection = open();
    opened.push(connection);
    return connection;
  });
  await expect(pool.acquire(new AbortController().signal)).rejects.toMatchObject({ code: 'unreachable' });
  expect(opened.map(({ socket }) => socket.destroyed)).toEqual([true]);
  pool.close();
  await expect(pool.acquire(new AbortController().signal)).rejects.toBeInstanceOf(PoolError);
});

it('a fault of this program ends the start: it is no enclave that is unreachable', async () => {
  const pool = pooled(() => {
    throw new TypeError('of this program');
  });
  await expect(pool.start()).rejects.toThrow('of this program');
  pool.close();
  const unreachable = pooled(() => {
    throw Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
  });
  await unreachable.start();
  unreachable.close();
});

it('one that is open, with evidence that has not ended, is', async () => {
  const socket = new Socket();
  const pool = pooled(() => ({ socket, expiresAt: 1001 }));
  expect((await pool.acquire(new AbortController().signal)).socket).toBe(socket);
  pool.close();
});

it('another connection is made a minute before the evidence of the only one ends, and takes its place', async () => {
  vi.useFakeTimers();
  try {
    const made: Socket[] = [];
    const lifeMs = 600_000;
    const open = (): AttestedConnection => {
      const socket = new Socket();
      made.push(socket);
      return { socket, expiresAt: Date.now() + lifeMs };
    };
    const pool = pooled(open, { now: Date.now });
    await pool.start();
    await vi.advanceTimersByTimeAsync(lifeMs - 60_001);
    expect(made).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(made.map(({ destroyed }) => destroyed)).toEqual([false, false]);
    const lease = await pool.acquire(new AbortController().signal);
    expect(lease.socket).toBe(made[1]);
    lease.release(true);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(made.map(({ destroyed }) => destroyed)).toEqual([true, false]);
    pool.close();
  } finally {
    vi.useRealTimers();
  }
});

it('a request that cannot be made anew is refused, and leaves its connection free', async () => {
  const released: boolean[] = [];
  const lease = { socket: new Socket(), release: (reusable: boolean) => void released.push(reusable) };
  // Only a listener that was told to be lenient lets such a header in.
  const server = createServer({ insecureHTTPParser: true }, (request, response) => {
    void forward(request, response, {
      pool: { acquire: () => Promise.resolve(lease) },
      ...{ host: 'enclave', authorization: 'Bearer TEST', maxBodyBytes: 1000, timeoutSeconds: 60 },
      hostNames: undefined,
      log: () => undefined,
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.end('GET / HTTP/1.1\r\nHost: tunnel\r\nAccept: a\u0001b\r\n\r\n');
  expect(await text(client)).toMatch(/^HTTP\/1\.1 400 .*"reason":"malformed_request"/s);
  expect(released).toEqual([true]);
  server.close();
});
