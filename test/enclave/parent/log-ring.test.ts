// The log's way to the parent: nothing waits for it, nothing is lost without being counted.

import { mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LOG_RING_LIMITS, LogRing, type LogRingLimits } from '../../../enclave/parent/log-ring.ts';
import { LOG_PORT } from '../../../signer/api/parent-ports.ts';
import type { TransportListener } from '../../../signer/native/transport.ts';
import { unixTransport } from '../../support/unix-transport.ts';

const QUICK: LogRingLimits = { ...LOG_RING_LIMITS, batchMs: 1, firstPauseMs: 1, maxPauseMs: 5 };
/** Longer than any of this takes. */
const AT_LAST_MS = 30_000;

let folder: string;
let listener: TransportListener | undefined;
let ring: LogRing;
let open: Socket[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sr-'));
  open = [];
});
afterEach(async () => {
  await ring.end(0);
  await listener?.close();
  listener = undefined;
  for (const socket of open) socket.destroy();
  rmSync(folder, { recursive: true, force: true });
});

function startRing(limits: Partial<LogRingLimits> = {}): LogRing {
  ring = new LogRing(unixTransport(folder, 'enclave'), { ...QUICK, ...limits });
  return ring;
}

interface Parent {
  readonly connections: readonly Socket[];
  text(): string;
  got(text: string): Promise<void>;
}

/** A parent that reads, unless told otherwise. */
async function parent(serve: (socket: Socket) => void = () => undefined): Promise<Parent> {
  let text = '';
  const waiting = new Set<() => void>();
  listener = await unixTransport(folder, 'parent').listen(LOG_PORT, (socket) => {
    open.push(socket);
    socket.on('error', () => undefined);
    socket.on('end', () => socket.end());
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString();
      for (const look of waiting) look();
    });
    serve(socket);
  });
  return {
    connections: open,
    text: () => text,
    got: (wanted) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!text.includes(wanted)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
  };
}

/** Again and again until it is so. */
async function until(isSo: () => boolean, act: () => void): Promise<void> {
  while (!isSo()) {
    act();
    await new Promise(setImmediate);
  }
}

const numbered = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, index) => `{"n":${from + index}}\n`);

describe('the log ring', () => {
  it('sends lines in their order', async () => {
    const { got, text } = await parent();
    startRing();
    for (const line of numbered(1, 500)) ring.write(line);
    await got('{"n":500}\n');
    expect(text()).toBe(numbered(1, 500).join(''));
    expect(ring.droppedLines()).toBe(0);
  });

  it('keeps lines for a parent that is not there yet, and end() waits for it to take them', async () => {
    startRing();
    for (const line of numbered(1, 10)) ring.write(line);
    const ended = ring.end(AT_LAST_MS);
    const { got, text } = await parent();
    await ended;
    await got('{"n":10}\n');
    expect(text()).toBe(numbered(1, 10).join(''));
  });

  it('drops the oldest lines when it is full, counts them, and says so in the log', async () => {
    startRing({ maxLines: 3 });
    for (const line of numbered(1, 10)) ring.write(line);
    expect(ring.droppedLines()).toBe(7);
    const { got, text } = await parent();
    await got('{"n":10}\n');
    const [notice, ...rest] = text().trimEnd().split('\n');
    expect(JSON.parse(notice ?? '')).toMatchObject({ level: 'warn', msg: 'log lines were dropped', lines: 7 });
    expect(rest).toEqual(['{"n":8}', '{"n":9}', '{"n":10}']);
  });

  it('has a limit in bytes, and one for a line', () => {
    startRing({ maxBytes: 25, maxLineBytes: 12 });
    ring.write('0123456789\n');
    ring.write('0123456789ab\n');
    expect(ring.droppedLines()).toBe(1);
    ring.write('1123456789\n');
    ring.write('2123456789\n');
    expect(ring.droppedLines()).toBe(2);
  });

  it('goes on with another connection where one broke: no line is missing', async () => {
    let connections = 0;
    const { got, text } = await parent((socket) => {
      connections += 1;
      if (connections === 1) socket.once('data', () => socket.destroy());
    });
    startRing();
    ring.write('{"n":1}\n');
    await got('{"n":1}\n');
    for (const line of numbered(2, 20)) ring.write(line);
    await got('{"n":20}\n');
    for (const line of numbered(1, 20)) expect(text()).toContain(line);
    expect(ring.droppedLines()).toBe(0);
  });

  it('gives up a parent that does not read, drops what does not fit, and never waits', async () => {
    let connections = 0;
    const { got, text } = await parent((socket) => {
      connections += 1;
      if (connections === 1) socket.pause();
    });
    startRing({ maxBytes: 64 * 1024, stalledMs: 20 });
    const line = `${'x'.repeat(1000)}\n`;
    await until(
      () => connections > 1,
      () => ring.write(line),
    );
    ring.write('{"last":true}\n');
    await got('{"last":true}\n');
    expect(ring.droppedLines()).toBeGreaterThan(0);
    expect(text()).toContain('"msg":"log lines were dropped"');
  });

  it('ends the connection of a parent that sends something, whatever it is, and goes on with another', async () => {
    let connections = 0;
    const { got, text } = await parent((socket) => {
      connections += 1;
      if (connections <= 3) socket.write(Buffer.alloc(1_000_000, 7));
    });
    startRing();
    ring.write('{"n":1}\n');
    await got('{"n":1}\n');
    await until(
      () => connections > 3,
      () => ring.write('{"n":2}\n'),
    );
    ring.write('{"n":3}\n');
    await got('{"n":3}\n');
    expect(text().endsWith('{"n":3}\n')).toBe(true);
  });

  it('end() gives up after its time', async () => {
    startRing();
    ring.write('{"n":1}\n');
    await ring.end(10);
    ring.write('{"n":2}\n');
    expect(ring.droppedLines()).toBe(1);
  });

  it('flush() hands over what waits before the process is gone', async () => {
    const { got, text } = await parent();
    startRing({ batchMs: AT_LAST_MS });
    ring.write('{"n":1}\n'); // opens the connection
    await got('{"n":1}\n');
    ring.write('{"n":2}\n');
    ring.flush();
    await got('{"n":2}\n');
    expect(text()).toBe(numbered(1, 2).join(''));
  });
});
