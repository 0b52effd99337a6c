// The log of an enclave to its end: a start that fails says why, whatever else writes meanwhile.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openOutput } from '../../common/observe/output.ts';
import { openEnclaveLog } from '../../enclave/parent/log.ts';
import { LOG_PORT } from '../../signer/api/parent-ports.ts';
import type { TransportListener } from '../../signer/native/transport.ts';
import { unixTransport } from '../support/unix-transport.ts';

let folder: string;
let listener: TransportListener;
let connections: Socket[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sr-'));
  connections = [];
  listener = await unixTransport(folder, 'parent').listen(LOG_PORT, (socket) => void connections.push(socket));
});
afterEach(async () => {
  await listener.close();
  for (const socket of connections) socket.destroy();
  rmSync(folder, { recursive: true, force: true });
});

it('takes lines of whatever still runs until the parent has the last one', async () => {
  const path = join(folder, 'console');
  const collected = { bytes: 4096, milliseconds: 60_000 };
  const console = openOutput(path, { maxWaitingBytes: 1024 * 1024, collected });
  const parent = unixTransport(folder, 'enclave');
  const { promise: isReachable, resolve: reach } = Promise.withResolvers<void>();
  const late = {
    ...parent,
    connect: (...given: Parameters<typeof parent.connect>) => isReachable.then(() => parent.connect(...given)),
  };
  const logger = openEnclaveLog(late, console).logger({ level: 'info', format: 'json' });
  const log = logger.module('server');
  log.error({ error: 'the reason' }, 'cannot start');
  const ended = logger.end();
  await console.confirmed();
  await new Promise(setImmediate); // whoever waited for the console has gone on
  log.info({}, 'something else goes on');
  reach();
  await ended;
  const heard = await connections[0]?.setEncoding('utf8').toArray();
  expect(heard?.join('')).toMatch(/"the reason".*\n.*"something else goes on"/);
  expect(readFileSync(path, 'utf8')).toMatch(/"the reason".*\n.*"something else goes on"/);
});

it('shows the console what it is told to show it, and the parent everything', async () => {
  const lines: string[] = [];
  const console = { write: (line: string) => void lines.push(line) };
  const log = openEnclaveLog(unixTransport(folder, 'enclave'), console);
  log.logger({ level: 'info', format: 'json' }).module('server').info({}, 'starting');
  const quiet = log.logger({ level: 'info', format: 'json' }, false);
  quiet.module('http').info({}, 'a request');
  await quiet.end();
  expect(lines.join('')).toContain('starting');
  expect(lines.join('')).not.toContain('a request');
  expect((await connections[0]?.setEncoding('utf8').toArray())?.join('')).toMatch(/"starting".*\n.*"a request"/);
});
