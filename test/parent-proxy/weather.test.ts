// The parent proxy as a process, in rough weather: thousands of connections, floods, readers that do not read, no file
// descriptors left, an end in the middle. Afterwards it has what it had before.

import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { CONFIGURATION_PORT, CREDENTIALS_PORT, LOG_PORT } from '../../signer/api/parent-ports.ts';
import type { TransportListener } from '../../signer/native/transport.ts';
import { ownAddress } from '../support/own-address.ts';
import { tcpServer } from '../support/parent-proxy.ts';
import { type ProcessOptions, type ProxyProcess, startProxyProcess } from '../support/parent-proxy-process.ts';
import { dial, hear, hearBytes } from '../support/streams.ts';

const MEBIBYTE = 1024 * 1024;
const opened: { close(): Promise<unknown> }[] = [];

afterEach(async () => {
  for (const each of opened.splice(0).toReversed()) await each.close();
});

async function start(options: ProcessOptions = {}): Promise<ProxyProcess> {
  const proxy = await startProxyProcess(options);
  opened.push({ close: () => (proxy.child.exitCode === null ? proxy.stop() : Promise.resolve()) });
  return proxy;
}

async function enclaveListens(
  proxy: ProxyProcess,
  port: number,
  serve: (socket: Socket) => void,
): Promise<TransportListener> {
  const listener = await proxy.enclave.listen(port, (socket) => {
    socket.on('error', () => undefined);
    serve(socket);
  });
  opened.push(listener);
  return listener;
}

function echo(socket: Socket): void {
  socket.pipe(socket);
}

/** What closes takes a moment to be closed on the other side. */
async function settles(value: () => number, wanted: (value: number) => boolean): Promise<number> {
  while (!wanted(value())) await pause(10);
  return value();
}

describe('many connections', () => {
  it('carries 2,000 at a time, each its own bytes, and has its file descriptors back', async () => {
    const proxy = await start({ limits: { max_connections_per_port: 2000 } });
    await enclaveListens(proxy, 9000, echo);
    await hear((await dial(proxy.ingressPorts.probes)).end('warm')); // what the first connection opens for good
    const before = await settles(proxy.fileDescriptors, () => true);

    const clients: Socket[] = [];
    for (let batch = 0; batch < 20; batch++) {
      clients.push(...(await Promise.all(Array.from({ length: 100 }, () => dial(proxy.ingressPorts.probes)))));
    }
    const answers = clients.map(async (client, index) => {
      const said = `client ${index} `.padEnd(1000, '.');
      client.write(said);
      expect((await hearBytes(client, 1000)).toString()).toBe(said);
    });
    await Promise.all(answers);
    expect(proxy.fileDescriptors()).toBeGreaterThan(4000);
    for (const client of clients) client.resetAndDestroy();
    await settles(proxy.fileDescriptors, (count) => count <= before);
    expect((await hear((await dial(proxy.ingressPorts.probes)).end('still here'))).bytes.toString()).toBe('still here');
  });

  it('outlives the end of its file descriptors, serves those it has, and all when there are some again', async () => {
    const proxy = await start({ maxFileDescriptors: 100 });
    expect(proxy.lines.some((line) => line.includes('limit of file descriptors is below'))).toBe(true);
    await enclaveListens(proxy, 9000, echo);
    const arrivals = Array.from({ length: 200 }, () => dial(proxy.ingressPorts.probes).catch(() => undefined));
    const clients = (await Promise.all(arrivals)).filter((client) => client !== undefined);
    const answers = await Promise.all(clients.map((client) => hear(client.end('?'))));
    expect(answers.filter(({ bytes }) => bytes.toString() === '?').length).toBeGreaterThan(10);
    for (const client of clients) client.destroy();
    await settles(proxy.fileDescriptors, (count) => count < 60);
    expect((await hear((await dial(proxy.ingressPorts.probes)).end('back'))).bytes.toString()).toBe('back');
  });

  it('finds an enclave that was away: clients who came before it are served when it is there', async () => {
    const proxy = await start({ limits: { connect_retry_ms: 30_000 } });
    const early = await Promise.all(Array.from({ length: 100 }, () => dial(proxy.ingressPorts.probes)));
    const answers = early.map((client) => hear(client.end('early')));
    const listener = await enclaveListens(proxy, 9000, echo);
    for (const { bytes } of await Promise.all(answers)) expect(bytes.toString()).toBe('early');
    await listener.close();
    const away = hear((await dial(proxy.ingressPorts.probes)).end('later'));
    await enclaveListens(proxy, 9000, echo);
    expect((await away).bytes.toString()).toBe('later');
  });
});

describe('readers and writers that do not keep up', () => {
  it('a client that does not read stops the enclave, and costs a few buffers', async () => {
    const proxy = await start();
    const CLIENTS = 200;
    const offered = new Map<Socket, number>();
    const flood = Buffer.alloc(MEBIBYTE, 1);
    await enclaveListens(proxy, 9000, (socket) => {
      const send = (): void => {
        while (!socket.destroyed && socket.write(flood)) offered.set(socket, (offered.get(socket) ?? 0) + 1);
        offered.set(socket, (offered.get(socket) ?? 0) + 1);
      };
      socket.on('drain', send);
      send();
    });
    const [before, heldBefore] = [proxy.residentBytes(), await proxy.heldBytes()];
    const clients = await Promise.all(Array.from({ length: CLIENTS }, () => dial(proxy.ingressPorts.probes)));
    for (const client of clients) client.pause();
    let last = -1;
    await settles(
      () => [...offered.values()].reduce((sum, each) => sum + each, 0),
      (sum) => {
        const still = offered.size === CLIENTS && sum === last;
        last = sum;
        return still;
      },
    );
    // Two buffers of 64 KiB each way at most, and the objects around them; what is not collected yet is no more for
    // more clients.
    expect((await proxy.heldBytes()) - heldBefore).toBeLessThan(CLIENTS * 192 * 1024);
    expect(proxy.residentBytes() - before).toBeLessThan(192 * MEBIBYTE);
    // And the bytes that were held arrive, in the order they were sent.
    const [client] = clients;
    if (client === undefined) throw new Error('there are clients');
    expect((await hearBytes(client, 8 * MEBIBYTE)).every((byte) => byte === 1)).toBe(true);
    for (const each of clients) each.destroy();
  });

  it('carries 64 MiB both ways at once, unchanged', async () => {
    const upstream = await tcpServer(echo);
    opened.push(upstream);
    const proxy = await start({ egress: { 8001: upstream.port } });
    const stream = await proxy.enclave.connect(8001);
    const block = Buffer.from(Array.from({ length: MEBIBYTE }, (_, index) => (index * 31) & 0xff));
    let received = 0;
    let wrong = 0;
    stream.on('data', (bytes: Buffer) => {
      if (bytes[0] !== block[received % MEBIBYTE]) wrong += 1;
      received += bytes.length;
    });
    for (let sent = 0; sent < 64; sent++) if (!stream.write(block)) await once(stream, 'drain');
    stream.end();
    await once(stream, 'end');
    expect({ received, wrong }).toEqual({ received: 64 * MEBIBYTE, wrong: 0 });
  });
});

describe('floods of the reserved ports', () => {
  it('leave memory as it was, however long they last, and everything else served', async () => {
    const upstream = await tcpServer((socket) => socket.end('served'));
    opened.push(upstream);
    const proxy = await start({ egress: { 8001: upstream.port }, logs: { max_bytes_per_second: 65_536 } });
    await enclaveListens(proxy, 9000, echo);
    const before = proxy.residentBytes();
    const flood = async (connections: number): Promise<number> => {
      await floodReservedPorts(proxy, connections);
      expect((await hear(await proxy.enclave.connect(8001))).bytes.toString()).toBe('served');
      expect((await hear((await dial(proxy.ingressPorts.probes)).end('echo'))).bytes.toString()).toBe('echo');
      return proxy.heldBytes();
    };
    const short = await flood(300);
    const long = await flood(1500);
    // Not even a KiB of a connection that has gone.
    expect(long - short).toBeLessThan(1500 * 1024);
    expect(proxy.residentBytes() - before).toBeLessThan(128 * MEBIBYTE);
  });
});

/**
 * A MiB of garbage on every connection; what no place is left for is cut off by the proxy, the rest when newer ones are
 * there.
 */
async function floodReservedPorts(proxy: ProxyProcess, connections: number): Promise<void> {
  const garbage = Buffer.from(Array.from({ length: MEBIBYTE }, (_, index) => (index * 7919) & 0xff));
  const flood = async (port: number): Promise<void> => {
    const open: Socket[] = [];
    for (let count = 0; count < connections / 3; count++) {
      const socket = await proxy.enclave.connect(port);
      socket.on('error', () => undefined);
      socket.write(garbage);
      open.push(socket);
      if (open.length > 130) open.shift()?.destroy();
      if (port === LOG_PORT) await serves(proxy);
    }
    for (const socket of open) socket.destroy();
  };
  await Promise.all([LOG_PORT, CONFIGURATION_PORT, CREDENTIALS_PORT].map(flood));
}

/** A whole request on another port: the proxy has had its turns. */
async function serves(proxy: ProxyProcess): Promise<void> {
  await hear((await dial(proxy.ingressPorts.probes)).end('echo'));
}

describe('the end', () => {
  it('is graceful: no new connections, what is under way is finished, egress with it', async () => {
    const upstream = await tcpServer(
      (socket) => void hear(socket).then(({ bytes }) => socket.end(`signed ${String(bytes)}`)),
    );
    opened.push(upstream);
    // At an address of its own: nobody else is ever at the port that it closes.
    const host = ownAddress(2);
    const limits = { graceful_shutdown_timeout_seconds: 3600 };
    const proxy = await start({ egress: { 8001: upstream.port }, host, limits });
    const asked = Promise.withResolvers<Socket>();
    await enclaveListens(proxy, 9000, asked.resolve);
    const client = await dial(proxy.ingressPorts.probes, host);
    client.write('sign this');
    const request = await asked.promise;
    const exited = once(proxy.child, 'close');
    proxy.child.kill('SIGTERM');
    await settles(
      () => proxy.lines.filter((line) => line.includes('shutting down')).length,
      (count) => count === 1,
    );
    await settlesRefused(proxy.ingressPorts.probes, host);
    // The enclave still has to ask somebody before it can answer.
    const egress = await proxy.enclave.connect(8001);
    egress.end(await hearBytes(request, 9));
    request.end((await hear(egress)).bytes);
    expect((await hear(client)).bytes.toString()).toBe('signed sign this');
    client.end();
    expect(await exited).toEqual([0, null]);
    expect(proxy.lines.at(-1)).toContain('stopped');
  });

  it('waits no longer than the grace time for those who go on, and a second signal waits for nothing', async () => {
    const proxy = await start({ limits: { graceful_shutdown_timeout_seconds: 1 } });
    await enclaveListens(proxy, 9000, (socket) => {
      const ticking = setInterval(() => socket.write('.'), 50);
      socket.once('close', () => clearInterval(ticking));
    });
    const client = await dial(proxy.ingressPorts.probes);
    client.resume();
    const exited = once(proxy.child, 'exit');
    proxy.child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);

    const patient = await start({ limits: { graceful_shutdown_timeout_seconds: 3600 } });
    await enclaveListens(patient, 9000, (socket) => {
      const ticking = setInterval(() => socket.write('.'), 50);
      socket.once('close', () => clearInterval(ticking));
    });
    const other = await dial(patient.ingressPorts.probes);
    await hearBytes(other, 1);
    other.resume();
    const ended = once(patient.child, 'exit');
    patient.child.kill('SIGTERM');
    await settles(
      () => patient.lines.filter((line) => line.includes('shutting down')).length,
      (count) => count === 1,
    );
    patient.child.kill('SIGTERM');
    expect(await ended).toEqual([1, null]);
  });
});

async function settlesRefused(port: number, host: string): Promise<void> {
  for (;;) {
    try {
      (await dial(port, host)).destroy();
      await pause(10);
    } catch {
      return;
    }
  }
}
