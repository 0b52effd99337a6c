// TCP of the parent to the enclave's ports: what arrives there, how each side's end is passed on, and an enclave that
// is not there.

import type { Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { parseProxyHeader, proxyHeaderBytes } from '../../../common/formats/proxy-header.ts';
import { type ProxyTestOptions, type ProxyUnderTest, startProxyUnderTest } from '../../support/parent-proxy.ts';
import { closed, dial, hear, hearBytes } from '../../support/streams.ts';

let proxy: ProxyUnderTest;

async function start(options?: ProxyTestOptions): Promise<void> {
  proxy = await startProxyUnderTest(options);
}

afterEach(() => proxy.close());

/** The enclave's listener of a port; the streams that arrive, one after the other. */
async function enclaveListener(port: number): Promise<{ next(): Promise<Socket>; close(): Promise<void> }> {
  const arrived: Socket[] = [];
  const waiting: ((socket: Socket) => void)[] = [];
  const listener = await proxy.enclave.listen(port, (socket) => {
    socket.on('error', () => undefined);
    const taker = waiting.shift();
    if (taker === undefined) arrived.push(socket);
    else taker(socket);
  });
  return {
    next: async () => arrived.shift() ?? (await new Promise<Socket>((resolve) => void waiting.push(resolve))),
    close: listener.close,
  };
}

async function header(stream: Socket) {
  const preamble = await hearBytes(stream, 16);
  const total = proxyHeaderBytes(preamble.subarray(0, 16));
  if (typeof total !== 'number') throw new Error(total.problem);
  return { header: parseProxyHeader(preamble.subarray(0, total)), rest: preamble.subarray(total) };
}

describe('ingress', () => {
  it('tells the RA-TLS listener who connected, before anything else', async () => {
    await start();
    const listener = await enclaveListener(9443);
    const client = await dial(proxy.ingressPorts.tls);
    const stream = await listener.next();
    const said = await header(stream);
    expect(said.header).toEqual({
      kind: 'proxied',
      source: { address: '127.0.0.1', port: client.localPort },
      destination: { address: '127.0.0.1', port: proxy.ingressPorts.tls },
    });
    client.end('hello');
    expect((await hear(stream)).bytes.toString()).toBe('hello');
    stream.end();
  });

  it.each([
    ['probes', 9000],
    ['metrics', 3000],
  ] as const)('carries %s as they are, without a header', async (name, port) => {
    await start();
    const listener = await enclaveListener(port);
    const client = await dial(proxy.ingressPorts[name]);
    client.write('GET / HTTP/1.1\r\n');
    const stream = await listener.next();
    expect((await hearBytes(stream, 16)).toString()).toBe('GET / HTTP/1.1\r\n');
    stream.end('200');
    const heard = await hear(client);
    expect({ ...heard, bytes: heard.bytes.toString() }).toEqual({ bytes: '200', how: 'ended' });
    client.end();
    await closed(stream);
  });

  it("passes on the client's end and goes on carrying the answer", async () => {
    await start();
    const listener = await enclaveListener(9000);
    const client = await dial(proxy.ingressPorts.probes);
    client.end('question');
    const stream = await listener.next();
    expect((await hear(stream)).how).toBe('ended');
    stream.write('first, ');
    stream.end('second');
    expect((await hear(client)).bytes.toString()).toBe('first, second');
    await Promise.all([closed(client), closed(stream)]);
  });

  it("passes on the enclave's end and goes on carrying what the client says", async () => {
    await start();
    const listener = await enclaveListener(9000);
    const client = await dial(proxy.ingressPorts.probes);
    const stream = await listener.next();
    stream.end('that is all from me');
    expect((await hear(client)).how).toBe('ended');
    client.end('and from me');
    expect((await hear(stream)).bytes.toString()).toBe('and from me');
    await Promise.all([closed(client), closed(stream)]);
    expect(proxy.sample('svc_parent_proxy_connection_ends_total{service="probes",port="9000",reason="complete"}')).toBe(
      1,
    );
  });

  it('a client that breaks off breaks the stream, and what was cut never looks complete to a client', async () => {
    await start();
    const listener = await enclaveListener(9000);
    const client = await dial(proxy.ingressPorts.probes);
    const stream = await listener.next();
    client.resetAndDestroy();
    await hear(stream);
    stream.destroy();

    const second = await dial(proxy.ingressPorts.probes);
    const cut = await listener.next();
    cut.write('half of an ans');
    await hearBytes(second, 14);
    second.write(Buffer.alloc(4 * 1024 * 1024)); // more than any reader's own buffer: some stays in the kernel
    await hearBytes(cut, 64 * 1024);
    cut.destroy(); // as when an enclave dies: its kernel resets what has something unread
    expect((await hear(second)).how).toBe('broken');
  });

  it('waits for an enclave that is not there yet', async () => {
    const paused = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    await start({
      clock: {
        pause: async () => {
          paused.resolve();
          await goOn.promise;
        },
      },
    });
    const client = await dial(proxy.ingressPorts.probes);
    client.write('patience');
    await paused.promise;
    const listener = await enclaveListener(9000);
    goOn.resolve();
    const stream = await listener.next();
    expect((await hearBytes(stream, 8)).toString()).toBe('patience');
    expect(proxy.sample('svc_parent_proxy_connect_failures_total{service="probes",port="9000",reason="refused"}')).toBe(
      1,
    );
    client.destroy();
  });

  it('gives up after a bounded time, with full jitter between the attempts, and resets the client', async () => {
    let now = 0;
    const pauses: number[] = [];
    await start({
      limits: { connect_retry_ms: 3000 },
      clock: {
        monotonic: () => now,
        random: () => 1,
        pause: async (milliseconds) => {
          pauses.push(milliseconds);
          now += milliseconds;
        },
      },
    });
    const client = await dial(proxy.ingressPorts.probes);
    expect((await hear(client)).how).toBe('broken');
    expect(pauses).toEqual([50, 100, 200, 400, 800, 1000]);
    expect(proxy.lines.filter((line) => line.includes('does not take connections'))).toHaveLength(1);
    expect(
      proxy.sample('svc_parent_proxy_connections_total{service="probes",port="9000",outcome="connect_failed"}'),
    ).toBe(1);
  });

  it('says once a minute that the enclave is away, however many clients come', async () => {
    let now = 0;
    await start({ limits: { connect_retry_ms: 0 }, clock: { monotonic: () => now } });
    const come = async (count: number): Promise<void> => {
      for (let client = 0; client < count; client++) await hear(await dial(proxy.ingressPorts.probes));
    };
    await come(20);
    now += 60_000;
    await come(1);
    const warnings = proxy.lines
      .filter((line) => line.includes('does not take connections'))
      .map((line) => JSON.parse(line));
    expect(warnings.map(({ suppressed }) => suppressed)).toEqual([undefined, 19]);
  });

  it('cuts off what comes over the cap of those in use, and takes the next when a place is free', async () => {
    await start({ limits: { max_connections_per_port: 3 } });
    const listener = await enclaveListener(9000);
    const clients: Socket[] = [];
    for (let each = 0; each < 3; each++) {
      const client = await dial(proxy.ingressPorts.probes);
      client.write('question');
      const stream = await listener.next();
      stream.write('answer'); // whoever was answered keeps its place
      await hearBytes(client, 6);
      clients.push(client);
    }
    const surplus = await dial(proxy.ingressPorts.probes);
    await hear(surplus);
    surplus.destroy();
    expect(proxy.sample('svc_parent_proxy_connections_total{service="probes",port="9000",outcome="limit"}')).toBe(1);
    clients[0]?.resetAndDestroy();
    await proxy.reaches('svc_parent_proxy_open_connections{service="probes",port="9000"}', 2);
    const next = await dial(proxy.ingressPorts.probes);
    next.write('room');
    expect((await hearBytes(await listener.next(), 4)).toString()).toBe('room');
    for (const client of [...clients, next]) client.destroy();
  });

  it('cuts a connection on which nothing is said, not one on which something is', async () => {
    // Longer than this process stands still on a busy machine: then both would be late alike.
    await start({ limits: { idle_timeout_seconds: 5 } });
    const listener = await enclaveListener(9000);
    const silent = await dial(proxy.ingressPorts.probes);
    const silentStream = await listener.next();
    const busy = await dial(proxy.ingressPorts.probes);
    const busyStream = await listener.next();
    const ticking = setInterval(() => busyStream.write('.'), 100);
    busy.resume();
    await hear(silent);
    await hear(silentStream);
    expect(busy.destroyed).toBe(false);
    await proxy.reaches('svc_parent_proxy_connection_ends_total{service="probes",port="9000",reason="idle"}', 1);
    clearInterval(ticking);
    busy.destroy();
  });
});
