// The transport of the host tests keeps the promises of the one it stands for (signer/native/transport.ts).

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Transport, TransportListener } from '../../signer/native/transport.ts';
import { unixTransport } from '../support/unix-transport.ts';

let directory = '';
let enclave: Transport;
let parent: Transport;
const open: TransportListener[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strongroom-transport-'));
  enclave = unixTransport(directory, 'enclave');
  parent = unixTransport(directory, 'parent');
});

afterEach(async () => {
  for (const listener of open.splice(0)) await listener.close();
  rmSync(directory, { recursive: true });
});

async function listen(on: Transport, port: number, onConnection: (socket: Socket) => void): Promise<TransportListener> {
  const listener = await on.listen(port, onConnection);
  open.push(listener);
  return listener;
}

describe('the Unix-socket transport', () => {
  it('connects each side to the ports of the other, not to its own', async () => {
    await listen(parent, 7000, (socket) => socket.end('parent'));
    await listen(enclave, 7000, (socket) => socket.end('enclave'));
    expect(await text((await enclave.connect(7000)).end())).toBe('parent');
    expect(await text((await parent.connect(7000)).end())).toBe('enclave');
  });

  it('leaves the other direction open when one ends', async () => {
    await listen(enclave, 9443, (socket) => {
      socket.on('data', (bytes) => socket.write(`heard ${String(bytes)}`));
      socket.on('end', () => socket.end(', and its end'));
    });
    const socket = await parent.connect(9443);
    socket.end('all of it');
    expect(await text(socket)).toBe('heard all of it, and its end');
  });

  it('answers ECONNRESET where nobody listens, and when who listened has closed', async () => {
    await expect(parent.connect(9443)).rejects.toMatchObject({ code: 'ECONNRESET' });
    const listener = await listen(enclave, 9443, () => undefined);
    await listener.close();
    await expect(parent.connect(9443)).rejects.toMatchObject({ code: 'ECONNRESET' });
  });

  it('a listener that closes leaves its open connections', async () => {
    const accepted = Promise.withResolvers<Socket>();
    const listener = await listen(enclave, 9443, accepted.resolve);
    const socket = await parent.connect(9443);
    const other = await accepted.promise;
    await listener.close();
    other.end('still here');
    expect(await text(socket.end())).toBe('still here');
  });

  it('gives up when it is told to', async () => {
    await listen(enclave, 9443, () => undefined);
    await expect(parent.connect(9443, { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('refuses a port that is taken, and takes over the file of a process that was killed', async () => {
    await listen(parent, 7001, (socket) => socket.destroy());
    await expect(parent.listen(7001, () => undefined)).rejects.toMatchObject({ code: 'EADDRINUSE' });

    const script = `require('net').createServer().listen(${JSON.stringify(join(directory, 'parent-7002'))}, () => console.log('listening'))`;
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'exit');
    await listen(parent, 7002, (socket) => socket.end('new'));
    expect(await text((await enclave.connect(7002)).end())).toBe('new');
  });
});
