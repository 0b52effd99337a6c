// The enclave's way out: to the declared endpoints, and to nothing else.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type LookupFunction, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { createPlainLogger } from '../../../common/observe/plain-logger.ts';
import { pausingClock } from '../../../parent-proxy/clock.ts';
import { listenEgress } from '../../../parent-proxy/forwarding/egress.ts';
import { createProxyMetrics, type ProxyMetrics } from '../../../parent-proxy/metrics.ts';
import { type ProxyUnderTest, startProxyUnderTest, tcpServer } from '../../support/parent-proxy.ts';
import { LONGEST_WAIT_MS } from '../../support/patience.ts';
import { hear, hearBytes } from '../../support/streams.ts';
import { unixTransport } from '../../support/unix-transport.ts';

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of opened.splice(0).toReversed()) await each.close();
});

async function upstream(onConnection: (socket: Socket) => void) {
  const server = await tcpServer(onConnection);
  opened.push(server);
  return server;
}

async function start(
  egress: Record<number, number>,
  limits: Readonly<Record<string, number>> = {},
): Promise<ProxyUnderTest> {
  const proxy = await startProxyUnderTest({ egress, limits });
  opened.push(proxy);
  return proxy;
}

describe('egress', () => {
  it('carries each vsock port to its own endpoint', async () => {
    const kms = await upstream((socket) => socket.end('kms'));
    const dynamodb = await upstream((socket) => socket.end('dynamodb'));
    const proxy = await start({ 8001: kms.port, 8002: dynamodb.port });
    expect((await hear(await proxy.enclave.connect(8001))).bytes.toString()).toBe('kms');
    expect((await hear(await proxy.enclave.connect(8002))).bytes.toString()).toBe('dynamodb');
  });

  it('has no port that was not declared', async () => {
    const kms = await upstream((socket) => socket.end('kms'));
    const proxy = await start({ 8001: kms.port });
    for (const port of [kms.port, 443, 8000, 8002, 9000, 9443, 7003, 7002]) {
      await expect(proxy.enclave.connect(port)).rejects.toMatchObject({ code: 'ECONNRESET' });
    }
  });

  it('lets nothing that the enclave says name a host: every byte goes to the declared endpoint', async () => {
    const heard = Promise.withResolvers<Buffer>();
    const kms = await upstream((socket) => void hear(socket).then(({ bytes }) => heard.resolve(bytes)));
    const proxy = await start({ 8001: kms.port });
    const request = 'CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n';
    (await proxy.enclave.connect(8001)).end(request);
    expect((await heard.promise).toString()).toBe(request);
  });

  it('keeps a half-closed connection open in the other direction, both ways', async () => {
    const kms = await upstream((socket) => void hear(socket).then(({ bytes }) => socket.end(`heard ${String(bytes)}`)));
    const proxy = await start({ 8001: kms.port });
    const first = await proxy.enclave.connect(8001);
    first.end('a question');
    expect((await hear(first)).bytes.toString()).toBe('heard a question');

    const heard = Promise.withResolvers<Buffer>();
    const logs = await upstream((socket) => {
      socket.end('go on');
      void hear(socket).then(({ bytes }) => heard.resolve(bytes));
    });
    const other = await start({ 8001: logs.port });
    const second = await other.enclave.connect(8001);
    expect((await hear(second)).how).toBe('ended');
    second.end('the rest');
    expect((await heard.promise).toString()).toBe('the rest');
  });

  it('breaks both sides when one breaks', async () => {
    const accepted = Promise.withResolvers<Socket>();
    const kms = await upstream(accepted.resolve);
    const proxy = await start({ 8001: kms.port });
    const stream = await proxy.enclave.connect(8001);
    stream.write('?');
    const socket = await accepted.promise;
    await hearBytes(socket, 1);
    socket.resetAndDestroy();
    expect((await hear(stream)).bytes).toHaveLength(0);
    stream.destroy();
    await proxy.reaches('svc_parent_proxy_connection_ends_total{service="egress",port="8001",reason="broken"}', 1);
  });

  it('cuts the stream when the endpoint refuses, counts it and names the endpoint', async () => {
    const gone = await tcpServer(() => undefined);
    await gone.close();
    const proxy = await start({ 8001: gone.port });
    const stream = await proxy.enclave.connect(8001);
    expect((await hear(stream)).bytes.length).toBe(0);
    stream.destroy();
    expect(proxy.sample('svc_parent_proxy_connect_failures_total{service="egress",port="8001",reason="refused"}')).toBe(
      1,
    );
    expect(proxy.lines.some((line) => line.includes(`localhost:${gone.port}`) && line.includes('refused'))).toBe(true);
  });

  it('cuts endpoints over the cap, and a flood of one port leaves the others', async () => {
    const kms = await upstream(() => undefined);
    const dynamodb = await upstream((socket) => socket.end('served'));
    const proxy = await start({ 8001: kms.port, 8002: dynamodb.port }, { max_connections_per_port: 5 });
    const streams = await Promise.all(Array.from({ length: 100 }, () => proxy.enclave.connect(8001)));
    for (const stream of streams) stream.on('error', () => undefined);
    await proxy.reaches('svc_parent_proxy_connections_total{service="egress",port="8001",outcome="limit"}', 95);
    expect((await hear(await proxy.enclave.connect(8002))).bytes.toString()).toBe('served');
    for (const stream of streams) stream.destroy();
  });
});

describe('egress by name', () => {
  /** One listener alone, with names that the test resolves. */
  async function listen(lookup: LookupFunction, port: number, connectTimeoutMs = LONGEST_WAIT_MS) {
    const proxy = await start({});
    const lines: string[] = [];
    const output = { ...nowhere, write: (line: string) => lines.push(line) > 0 };
    const metrics = createProxyMetrics();
    const world = {
      transport: unixTransport(proxy.directory, 'parent'),
      clock: pausingClock,
      logger: createPlainLogger(output, pausingClock),
      metrics,
      output,
    };
    const limits = { maxConnections: 100, idleTimeoutMs: LONGEST_WAIT_MS, connectTimeoutMs, connectRetryMs: 0 };
    const endpoint = { hostname: 'kms.eu-west-1.amazonaws.com', loopback: '127.0.1.1', vsock_port: 8001, port };
    const listener = await listenEgress(endpoint, limits, world, lookup);
    opened.push({
      async close() {
        await listener.close();
        listener.cutAll();
        await listener.empty();
      },
    });
    return { enclave: proxy.enclave, metrics, lines };
  }

  it('resolves the name for every connection, once for those that come together', async () => {
    const server = await upstream((socket) => socket.end('here'));
    const asked: (() => void)[] = [];
    const firstAsked = Promise.withResolvers<void>();
    const { enclave, metrics } = await listen((name, _, callback) => {
      expect(name).toBe('kms.eu-west-1.amazonaws.com');
      asked.push(() => callback(null, [{ address: '127.0.0.1', family: 4 }]));
      firstAsked.resolve();
    }, server.port);
    const streams = await Promise.all([enclave.connect(8001), enclave.connect(8001), enclave.connect(8001)]);
    await firstAsked.promise;
    await seen(metrics, 'svc_parent_proxy_open_connections{service="egress",port="8001"} 3');
    expect(asked).toHaveLength(1);
    asked[0]?.();
    for (const stream of streams) await hear(stream);
    const later = await enclave.connect(8001);
    while (asked.length < 2) await new Promise<void>((resolve) => void setImmediate(resolve));
    asked[1]?.();
    await hear(later);
  });

  it('goes on to the next address when one refuses, IPv6 and IPv4', async () => {
    const server = await upstream((socket) => socket.end('here'));
    const { enclave } = await listen((_, __, callback) => {
      callback(null, [
        { address: '::1', family: 6 },
        { address: '127.0.0.2', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ]);
    }, server.port);
    expect((await hear(await enclave.connect(8001))).bytes.toString()).toBe('here');
  });

  it('cuts the stream when the name has no address', async () => {
    const { enclave, metrics, lines } = await listen((_, __, callback) => {
      callback(Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' }), []);
    }, 443);
    await hear(await enclave.connect(8001));
    expect(metrics.render()).toContain('connect_failures_total{service="egress",port="8001",reason="unresolvable"} 1');
    expect(lines.join()).toContain('unresolvable');
  });

  it('gives up a name that hangs within the time limit', async () => {
    const { enclave, metrics } = await listen(() => undefined, 443, 50);
    await hear(await enclave.connect(8001));
    expect(metrics.render()).toContain('connect_failures_total{service="egress",port="8001",reason="timeout"} 1');
  });

  it('gives up an endpoint that hangs within the time limit', async () => {
    const port = await hangingPort();
    const { enclave, metrics } = await listen(
      (_, __, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
      port,
      50,
    );
    await hear(await enclave.connect(8001));
    expect(metrics.render()).toContain('connect_failures_total{service="egress",port="8001",reason="timeout"} 1');
  });
});

/** A listener of a process that is stopped, with its accept queue full: the system answers no connect. */
async function hangingPort(): Promise<number> {
  const script =
    "const s = require('net').createServer().listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => console.log(s.address().port))";
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [printed] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(printed.toString());
  child.kill('SIGSTOP');
  const filling: Socket[] = [];
  opened.push({
    async close() {
      for (const socket of filling) socket.destroy();
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  });
  // listen(2): the queue takes one more than the backlog; the next connect has no answer.
  for (let count = 0; count < 2; count++) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    filling.push(socket);
    await once(socket, 'connect');
  }
  return port;
}

async function seen(metrics: ProxyMetrics, line: string): Promise<void> {
  while (!metrics.render().includes(line)) await pause(1);
}

const nowhere = {
  write: () => true,
  drained: async () => undefined,
};
