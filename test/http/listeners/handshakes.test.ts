// TLS handshakes begin with the whole first message of a client, a few in each turn of the event loop, by turns of
// addresses. On real TLS listeners and, for the order, on a loop that the test turns.

import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer, connect as netConnect, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { type SecureContextOptions, type TlsOptions, connect as tlsConnect } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import { createStaticAuthenticator } from '../../../signer/auth/static.ts';
import {
  type Handshakes,
  handshakeTurns,
  isFirstMessageHere,
  MAX_BEGUN_PER_TURN,
} from '../../../signer/http/listeners/handshakes.ts';
import { listenTls } from '../../../signer/http/listeners/ports.ts';
import { keylessApp } from '../../support/auth-app.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { recordingLog } from '../../support/recording-log.ts';

let hello: Buffer;
beforeEach(async () => {
  hello = await clientHello();
});

/** What a client of this Node.js sends first. */
async function clientHello(): Promise<Buffer> {
  const sent = Promise.withResolvers<Buffer>();
  const wire = new Duplex({
    read: () => undefined,
    write(bytes: Buffer, _encoding, done) {
      sent.resolve(bytes);
      done();
    },
  });
  const client = tlsConnect({ socket: wire, ALPNProtocols: ['http/1.1'] }).on('error', () => undefined);
  const first = await sent.promise;
  client.destroy();
  return first;
}

describe('the first message', () => {
  it('is here with its last byte', () => {
    for (let length = 0; length < hello.length; length++) {
      expect(isFirstMessageHere(hello.subarray(0, length))).toBe(false);
    }
    expect(isFirstMessageHere(hello)).toBe(true);
  });

  it('is here with its last byte, in records of any size', () => {
    for (const size of [1, 2, 3, 4, 5, 100]) {
      const records: Buffer[] = [];
      for (let at = 5; at < hello.length; ) {
        const part = hello.subarray(at, at + (at < 20 ? size : 500)); // the length of the message is in its beginning
        records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
        at += part.length;
      }
      const bytes = Buffer.concat(records);
      expect(isFirstMessageHere(bytes.subarray(0, -1))).toBe(false);
      expect(isFirstMessageHere(bytes)).toBe(true);
    }
  });

  it.each([
    ['HTTP', Buffer.from('G')],
    ['an empty record', Buffer.from([22, 3, 1, 0, 0])],
    ['another record behind a part of it', Buffer.from([22, 3, 1, 0, 1, 1, 23])],
    ['more than any client sends', Buffer.alloc(8193, 22)],
  ])('is not waited for in %s', (_what, bytes) => {
    expect(isFirstMessageHere(bytes)).toBe(true);
  });
});

describe('turns of handshakes', () => {
  let server: Server;
  let accepted: Socket[];
  let clients: Socket[];
  let planned: (() => void)[];
  let turns: Handshakes;
  let begun: string[];

  beforeEach(async () => {
    accepted = [];
    clients = [];
    planned = [];
    begun = [];
    turns = handshakeTurns((work) => void planned.push(work));
    server = createServer((socket) => void accepted.push(socket)).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(() => {
    for (const socket of [...clients, ...accepted]) socket.destroy();
    server.close();
  });

  const nextTurn = (): void => {
    for (const work of planned.splice(0)) work();
  };
  /** A connection that waits for its handshake. */
  async function open(address: string): Promise<{ readonly client: Socket; readonly socket: Socket }> {
    const { port } = server.address() as AddressInfo;
    const client = netConnect(port, '127.0.0.1').on('error', () => undefined);
    clients.push(client);
    await once(client, 'connect');
    await expect.poll(() => accepted.length).toBe(clients.length);
    const socket = accepted.at(-1) as Socket;
    turns.await(socket, address, () => void begun.push(address));
    return { client, socket };
  }
  async function send(client: Socket, socket: Socket, bytes: Buffer): Promise<void> {
    const had = socket.bytesRead;
    client.write(bytes);
    await expect.poll(() => socket.bytesRead).toBe(had + bytes.length);
    await new Promise(setImmediate);
  }
  async function ask(address: string): Promise<{ readonly client: Socket; readonly socket: Socket }> {
    const opened = await open(address);
    await send(opened.client, opened.socket, hello);
    return opened;
  }

  it('are not taken by connections that say nothing, or not enough', async () => {
    const { client, socket } = await open('192.0.2.1');
    await send(client, socket, hello.subarray(0, -1));
    expect(begun).toEqual([]);
    await send(client, socket, hello.subarray(-1));
    expect(begun).toEqual(['192.0.2.1']);
    expect(socket.read()).toEqual(hello);
  });

  it('are a few in each turn of the loop, and go round the addresses', async () => {
    for (let each = 0; each < MAX_BEGUN_PER_TURN + 4; each++) await ask('192.0.2.1');
    await ask('192.0.2.2');
    expect(begun).toEqual(['192.0.2.1', '192.0.2.1']);
    nextTurn();
    expect(begun.slice(MAX_BEGUN_PER_TURN)).toEqual(['192.0.2.1', '192.0.2.2']);
    nextTurn();
    nextTurn();
    expect(begun).toHaveLength(MAX_BEGUN_PER_TURN + 5);
  });

  it('leave out a connection that ended while it waited', async () => {
    for (let each = 0; each < MAX_BEGUN_PER_TURN; each++) await ask('192.0.2.1');
    const gone = await ask('192.0.2.2');
    await ask('192.0.2.3');
    gone.socket.destroy();
    await once(gone.socket, 'close');
    nextTurn();
    expect(begun.slice(MAX_BEGUN_PER_TURN)).toEqual(['192.0.2.3']);
  });
});

it('the TLS listener computes a few in each turn of its loop, and all of them in the end', async () => {
  const MANY = 20;
  const folder = mkdtempSync(join(tmpdir(), 'handshakes-'));
  const { cert, key } = makeCertificate(folder, 'signer');
  let turn = 0;
  let isOver = false;
  const countTurns = (): void => {
    turn += 1;
    if (!isOver) setImmediate(countTurns);
  };
  countTurns();
  const inTurn = new Map<number, number>();
  /** OpenSSL asks for it in the middle of the server's part of a handshake. */
  const ALPNCallback: TlsOptions['ALPNCallback'] = () => {
    inTurn.set(turn, (inTurn.get(turn) ?? 0) + 1);
    return 'http/1.1';
  };
  const authenticator = createStaticAuthenticator({ policies: [], anonymousPolicies: [], tokens: [] });
  const app = await keylessApp({ authenticator, clock: systemClock, log: recordingLog() });
  const secureContext = { cert: readFileSync(cert), key: readFileSync(key), ALPNCallback } as SecureContextOptions;
  const { server, address } = await listenTls(app, { host: '127.0.0.1', port: 0, maxConnections: 64, secureContext });
  let accepted = 0;
  server.on('connection', () => (accepted += 1));
  const clients = Array.from({ length: MANY }, () =>
    netConnect(address.port, '127.0.0.1').on('error', () => undefined),
  );
  await Promise.all(clients.map((client) => once(client, 'connect')));
  await expect.poll(() => accepted).toBe(MANY);

  for (const client of clients) client.write(hello); // they are all here when the loop looks at its connections
  const begun = (): number => [...inTurn.values()].reduce((sum, count) => sum + count, 0);
  await expect.poll(begun).toBe(MANY);
  isOver = true;
  // Those at once and those of the next turn may fall between two of the counts here.
  expect(Math.max(...inTurn.values())).toBeLessThanOrEqual(2 * MAX_BEGUN_PER_TURN);

  for (const client of clients) client.destroy();
  server.close();
  await app.close();
  rmSync(folder, { recursive: true });
});
