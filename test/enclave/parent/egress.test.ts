// The ways out of an enclave: a declared name, a loopback address, a port of the parent, and nothing beside them.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Egress, type EgressOutcome, openEgress } from '../../../enclave/parent/egress.ts';
import type { EgressEndpoint } from '../../../signer/api/egress.ts';
import type { Transport, TransportListener } from '../../../signer/native/transport.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { hear } from '../../support/streams.ts';
import { unixTransport } from '../../support/unix-transport.ts';

const ALIAS_PORT = 24_443;
const KMS: EgressEndpoint = { hostname: 'kms.example.org', loopback: '127.83.1.1', vsock_port: 8001, port: 443 };
const DB: EgressEndpoint = { hostname: 'db.example.org', loopback: '127.83.1.2', vsock_port: 8002, port: 5432 };

let folder: string;
let egress: Egress;
let listeners: TransportListener[];
let outcomes: [number, EgressOutcome][];
let told: () => void;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sr-'));
  listeners = [];
  outcomes = [];
  told = () => undefined;
});
afterEach(async () => {
  await egress.close();
  for (const listener of listeners) await listener.close();
  rmSync(folder, { recursive: true, force: true });
});

async function open(endpoints: readonly EgressEndpoint[] = [KMS, DB], parent?: Transport): Promise<void> {
  egress = await openEgress(endpoints, {
    parent: parent ?? unixTransport(folder, 'enclave'),
    hostsPath: join(folder, 'hosts'),
    aliasPort: () => ALIAS_PORT,
    onConnection: (endpoint, outcome) => {
      outcomes.push([endpoint, outcome]);
      told();
    },
    log: recordingLog(),
  });
}

async function upstream(port: number, serve: (socket: Socket) => void): Promise<void> {
  listeners.push(
    await unixTransport(folder, 'parent').listen(port, (socket) => {
      socket.on('error', () => undefined);
      serve(socket);
    }),
  );
}

function call({ loopback }: EgressEndpoint): Socket {
  const socket = connect({ host: loopback, port: ALIAS_PORT, allowHalfOpen: true });
  socket.on('error', () => undefined);
  return socket;
}

describe('egress', () => {
  it('puts the declared names, and no other, into the hosts file', async () => {
    await open();
    expect(readFileSync(join(folder, 'hosts'), 'utf8')).toBe(
      '127.0.0.1 localhost\n127.83.1.1 kms.example.org\n127.83.1.2 db.example.org\n',
    );
  });

  it('hands each alias to the port that was declared for it', async () => {
    await upstream(8001, (socket) => socket.end('kms'));
    await upstream(8002, (socket) => socket.end('db'));
    await open();
    expect((await hear(call(KMS))).bytes.toString()).toBe('kms');
    expect((await hear(call(DB))).bytes.toString()).toBe('db');
    expect(outcomes).toEqual([
      [0, 'connected'],
      [1, 'connected'],
    ]);
  });

  it('has no listener at an address that was not declared', async () => {
    await open([KMS]);
    const socket = call(DB);
    const [error] = await new Promise<[NodeJS.ErrnoException]>((resolve) => socket.once('error', (e) => resolve([e])));
    expect(error.code).toBe('ECONNREFUSED');
  });

  it('connects to nothing but declared ports', async () => {
    const asked = new Set<number>();
    const enclave = unixTransport(folder, 'enclave');
    const parent: Transport = {
      ...enclave,
      connect: (port, options) => {
        asked.add(port);
        return enclave.connect(port, options);
      },
    };
    await upstream(8001, (socket) => socket.end());
    await open([KMS], parent);
    const socket = call(KMS);
    socket.end('CONNECT db.example.org:5432 HTTP/1.1\r\n\r\n');
    await hear(socket);
    expect([...asked]).toEqual([8001]);
  });

  it('keeps an end in one direction to that direction', async () => {
    await upstream(8001, (socket) => {
      const parts: Buffer[] = [];
      socket.on('data', (part: Buffer) => parts.push(part));
      socket.on('end', () => socket.end(`${Buffer.concat(parts).toString()} heard to its end`));
    });
    await open();
    const socket = call(KMS);
    socket.end('a question');
    expect((await hear(socket)).bytes.toString()).toBe('a question heard to its end');
  });

  it('carries megabytes unchanged past a slow reader, without keeping them', async () => {
    const sent = Buffer.alloc(8 * 1024 * 1024, 'abcdefg');
    let written = 0;
    const { promise: stuck, resolve } = Promise.withResolvers<Socket>();
    await upstream(8001, (socket) => {
      const write = (): void => {
        while (written < sent.length) {
          const part = sent.subarray(written, written + 65_536);
          written += part.length;
          if (!socket.write(part)) {
            resolve(socket);
            socket.once('drain', write);
            return;
          }
        }
        socket.end();
      };
      write();
    });
    await open();
    const socket = call(KMS);
    socket.pause();
    await stuck;
    expect(written).toBeLessThan(sent.length);
    const { bytes, how } = await hear(socket);
    expect(how).toBe('ended');
    expect(bytes.equals(sent)).toBe(true);
  });

  it('breaks one side when the other breaks', async () => {
    const { promise: arrived, resolve } = Promise.withResolvers<Socket>();
    await upstream(8001, resolve);
    await open();
    const client = call(KMS);
    client.write(Buffer.alloc(4 * 1024 * 1024));
    const outside = await arrived;
    await new Promise((resolve) => outside.once('readable', resolve));
    outside.destroy();
    expect((await hear(client)).how).toBe('broken');

    const { promise: again, resolve: arriveAgain } = Promise.withResolvers<Socket>();
    await upstream(8002, arriveAgain);
    const other = call(DB);
    const far = await again;
    other.resetAndDestroy();
    await hear(far);
  });

  it('cuts the client when the parent is not there, and says so', async () => {
    await open();
    const said = new Promise<void>((resolve) => {
      told = resolve;
    });
    expect((await hear(call(KMS))).how).toBe('broken');
    await said;
    expect(outcomes).toEqual([[0, 'unreachable']]);
  });

  it('waits for a parent that is restarting', async () => {
    await open();
    const socket = call(KMS);
    await new Promise((resolve) => socket.once('connect', resolve));
    await upstream(8001, (far) => far.end('back'));
    expect((await hear(socket)).bytes.toString()).toBe('back');
  });

  it('close() cuts what is open', async () => {
    await upstream(8001, () => undefined);
    await open();
    const connected = new Promise<void>((resolve) => {
      told = resolve;
    });
    const heard = hear(call(KMS));
    await connected;
    await egress.close();
    expect((await heard).how).toBe('broken');
  });

  it('names the endpoint whose alias cannot be had, and leaves nothing open', async () => {
    await open([KMS]);
    const again = openEgress([DB, KMS], {
      parent: unixTransport(folder, 'enclave'),
      hostsPath: join(folder, 'hosts'),
      aliasPort: () => ALIAS_PORT,
      onConnection: () => undefined,
      log: recordingLog(),
    });
    await expect(again).rejects.toThrow('the alias 127.83.1.1:443 of kms.example.org cannot be had (EADDRINUSE)');
    const [error] = await new Promise<[NodeJS.ErrnoException]>((resolve) =>
      call(DB).once('error', (e) => resolve([e])),
    );
    expect(error.code).toBe('ECONNREFUSED');
  });
});
