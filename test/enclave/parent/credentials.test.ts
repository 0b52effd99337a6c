// AWS credentials from the parent: good ones are kept and renewed in time, anything else is refused and never shown.

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type CredentialProvider, firstCredentials, parentCredentials } from '../../../enclave/parent/credentials.ts';
import { CREDENTIALS_PATH, CREDENTIALS_PORT } from '../../../signer/api/parent-ports.ts';
import { awsFault } from '../../../signer/aws/errors.ts';
import type { TransportListener } from '../../../signer/native/transport.ts';
import { LONGEST_WAIT_MS } from '../../support/patience.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { unixTransport } from '../../support/unix-transport.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const SECRET = 'TEST-secret-access-key';

let folder: string;
let listener: TransportListener | undefined;
let server: Server | undefined;
let now: number;
let answers: number;
let log: ReturnType<typeof recordingLog>;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sr-'));
  now = Date.UTC(2026, 0, 1);
  answers = 0;
  log = recordingLog();
});
afterEach(async () => {
  await stop();
  rmSync(folder, { recursive: true, force: true });
});

async function stop(): Promise<void> {
  await listener?.close();
  listener = undefined;
  server?.closeAllConnections();
}

async function listen(onConnection: (socket: Socket) => void): Promise<void> {
  await stop();
  listener = await unixTransport(folder, 'parent').listen(CREDENTIALS_PORT, (socket) => {
    socket.on('error', () => undefined);
    onConnection(socket);
  });
}

async function serve(answer: RequestListener): Promise<void> {
  const http = createServer((request, response) => {
    answers += 1;
    answer(request, response);
  });
  server = http;
  await listen((socket) => http.emit('connection', socket));
}

const body = (members: object = {}): string =>
  JSON.stringify({
    AccessKeyId: `ASIATEST${answers}`,
    SecretAccessKey: SECRET,
    Token: 'TEST-token',
    Expiration: new Date(now + HOUR_MS).toISOString(),
    ...members,
  });

function provider(): CredentialProvider {
  const clock = { now: () => now, monotonic: () => now };
  return parentCredentials(unixTransport(folder, 'enclave'), { clock, log });
}

describe('credentials of the parent', () => {
  it('are asked for at the known path and given with their end', async () => {
    await serve((request, response) => {
      expect([request.method, request.url]).toEqual(['GET', CREDENTIALS_PATH]);
      response.end(body());
    });
    expect(await provider()()).toEqual({
      accessKeyId: 'ASIATEST1',
      secretAccessKey: SECRET,
      sessionToken: 'TEST-token',
      expiration: new Date(now + HOUR_MS),
    });
  });

  it('are kept until ten minutes before their end, one question at a time', async () => {
    await serve((_, response) => response.end(body()));
    const credentials = provider();
    await Promise.all([credentials(), credentials(), credentials()]);
    now += 49 * MINUTE_MS;
    expect((await credentials()).accessKeyId).toBe('ASIATEST1');
    now += 2 * MINUTE_MS;
    await Promise.all([credentials(), credentials(), credentials()]);
    await vi.waitFor(async () => expect((await credentials()).accessKeyId).toBe('ASIATEST2'), LONGEST_WAIT_MS);
    expect(answers).toBe(2);
  });

  it('serve on while the parent is away, as long as they are good', async () => {
    await serve((_, response) => response.end(body()));
    const credentials = provider();
    await credentials();
    await stop();
    now += 59 * MINUTE_MS;
    expect((await credentials()).accessKeyId).toBe('ASIATEST1');
    await vi.waitFor(
      () => expect(log.lines).toMatchObject([{ level: 'warn', message: 'AWS credentials not renewed' }]),
      LONGEST_WAIT_MS,
    );
    now += MINUTE_MS;
    const error = await credentials().catch((thrown: unknown) => thrown);
    expect(awsFault(error)).toBe('unreachable');
    await serve((_, response) => response.end(body()));
    expect((await credentials()).accessKeyId).toBe('ASIATEST2');
  });

  it('that are short-lived are not asked for more than once a second', async () => {
    await serve((_, response) => response.end(body({ Expiration: new Date(now + 5 * MINUTE_MS).toISOString() })));
    const credentials = provider();
    for (let call = 0; call < 10; call++) await credentials();
    expect(answers).toBe(1);
    now += 1_000;
    await credentials();
    await vi.waitFor(() => expect(answers).toBe(2), LONGEST_WAIT_MS);
  });

  it('keep no call waiting for a parent that does not answer, as long as they are good', async () => {
    await serve((_, response) => response.end(body()));
    const credentials = provider();
    await credentials();
    const asked: Socket[] = [];
    await listen((socket) => void asked.push(socket.resume()));
    now += 55 * MINUTE_MS;
    for (let call = 0; call < 10; call++) expect((await credentials()).accessKeyId).toBe('ASIATEST1');
    await vi.waitFor(() => expect(asked).toHaveLength(1), LONGEST_WAIT_MS);
    expect(log.lines).toEqual([]); // all of them were served before that one question ended
    for (const socket of asked) socket.destroy();
  });

  it.each<[string, RequestListener]>([
    ['is an error', (_, response) => response.writeHead(503).end(body())],
    ['is no JSON', (_, response) => response.end(`${SECRET} {`)],
    ['is another document', (_, response) => response.end('{"AccessKeyId":"a"}')],
    ['has no session token', (_, response) => response.end(body({ Token: '' }))],
    ['has no end', (_, response) => response.end(body({ Expiration: 'tomorrow' }))],
    ['has expired', (_, response) => response.end(body({ Expiration: new Date(now).toISOString() }))],
    ['is too long', (_, response) => response.end(' '.repeat(65_537) + body())],
  ])('are refused when the answer %s, and no word of it is repeated', async (_, answer) => {
    await serve(answer);
    const error = (await provider()().catch((thrown: unknown) => thrown)) as Error;
    expect(error.message).toContain('answer for AWS credentials is refused');
    expect(awsFault(error)).toBe('denied');
    expect(JSON.stringify(log.lines) + error.message + error.stack).not.toContain('TEST-');
  });

  it.each<[string, (socket: Socket) => void]>([
    ['floods headers', (socket) => void flood(socket, 'HTTP/1.1 200 OK\r\n', 'x-flood: 1\r\n')],
    ['floods a body', (socket) => void flood(socket, 'HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(4096))],
    ['speaks another protocol', (socket) => socket.end('SSH-2.0-OpenSSH_9\r\n')],
    [
      'changes the protocol',
      (socket) =>
        void socket.once('data', () =>
          socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
        ),
    ],
    ['breaks off', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{')],
  ])('are refused when the parent %s', async (_, answer) => {
    await listen(answer);
    await expect(provider()()).rejects.toThrow();
  });

  it('are waited for at the start, for a bounded time', async () => {
    const patience = { patienceMs: LONGEST_WAIT_MS, firstPauseMs: 1, maxPauseMs: 5 };
    await serve((_, response) => void (answers < 3 ? response.writeHead(503).end() : response.end(body())));
    await firstCredentials(provider(), { log, patience });
    expect(answers).toBe(3);
    await stop();
    await expect(firstCredentials(provider(), { log, patience: { ...patience, patienceMs: 0 } })).rejects.toThrow(
      /no AWS credentials on vsock port 7002: ECONNRESET; give the instance a role/,
    );
  });
});

function flood(socket: Socket, first: string, more: string): void {
  socket.write(first);
  const write = (): void => {
    while (!socket.destroyed && socket.write(more));
    socket.once('drain', write);
  };
  write();
}
