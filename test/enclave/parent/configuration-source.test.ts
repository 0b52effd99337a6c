// The configuration from the parent: exactly what was announced, or nothing.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type FetchLimits,
  fetchConfiguration,
  readBakedConfiguration,
} from '../../../enclave/parent/configuration-source.ts';
import { CONFIGURATION_PORT, MAX_CONFIGURATION_BYTES } from '../../../signer/api/parent-ports.ts';
import type { TransportListener } from '../../../signer/native/transport.ts';
import { LONGEST_WAIT_MS } from '../../support/patience.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { unixTransport } from '../../support/unix-transport.ts';

const ONE_ATTEMPT: FetchLimits = { patienceMs: 0, attemptMs: LONGEST_WAIT_MS, firstPauseMs: 1, maxPauseMs: 1 };
const MANY_ATTEMPTS: FetchLimits = { ...ONE_ATTEMPT, patienceMs: LONGEST_WAIT_MS };
const YAML = Buffer.from('network: hoodi\n');

let folder: string;
let listener: TransportListener | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sr-'));
});
afterEach(async () => {
  await listener?.close();
  listener = undefined;
  rmSync(folder, { recursive: true, force: true });
});

/** A parent that answers every connection so, one answer after the other, the last one again and again. */
async function parent(...answers: ((socket: Socket) => void)[]): Promise<void> {
  let next = 0;
  listener = await unixTransport(folder, 'parent').listen(CONFIGURATION_PORT, (socket) => {
    socket.on('error', () => undefined);
    socket.on('end', () => socket.end());
    answers[Math.min(next, answers.length - 1)]?.(socket);
    next += 1;
  });
}

function fetching(limits: FetchLimits, log = recordingLog()): Promise<Buffer> {
  return fetchConfiguration(unixTransport(folder, 'enclave'), { log, limits });
}

function frame(bytes: Buffer, announced = bytes.length): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(announced);
  return Buffer.concat([length, bytes]);
}

describe('the configuration from the parent', () => {
  it('is the bytes that were announced, however they arrive', async () => {
    await parent(async (socket) => {
      for (const byte of frame(YAML)) await new Promise((resolve) => socket.write(Buffer.of(byte), resolve));
      socket.end();
    });
    expect(await fetching(ONE_ATTEMPT)).toEqual(YAML);
  });

  it('may have a mebibyte', async () => {
    const most = Buffer.alloc(MAX_CONFIGURATION_BYTES, '#');
    await parent((socket) => socket.end(frame(most)));
    expect((await fetching(ONE_ATTEMPT)).equals(most)).toBe(true);
  });

  it.each<[string, (socket: Socket) => void, RegExp]>([
    [
      'is cut',
      (socket) => socket.end(frame(YAML).subarray(0, -1)),
      /ended after 18 bytes, before the configuration was complete/,
    ],
    ['is cut in its length', (socket) => socket.end(Buffer.of(0, 0)), /ended after 2 bytes/],
    ['is nothing', (socket) => socket.end(), /ended after 0 bytes/],
    ['goes on', (socket) => socket.end(frame(Buffer.concat([YAML, YAML]), YAML.length)), /more came than the 15 bytes/],
    [
      'announces too much',
      (socket) => socket.end(frame(YAML, MAX_CONFIGURATION_BYTES + 1)),
      /1048577 bytes were announced, over the limit/,
    ],
    ['announces nothing', (socket) => socket.end(frame(Buffer.alloc(0))), /an empty configuration/],
    ['is text without a length', (socket) => socket.end('network: hoodi\n'), /bytes were announced, over the limit/],
    ['is reset', (socket) => socket.destroy(), /ended after 0 bytes|ECONNRESET|EPIPE/],
  ])('is refused when the answer %s', async (_, answer, problem) => {
    await parent(answer);
    const error = await fetching(ONE_ATTEMPT).catch((thrown: Error) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect((error as Error).message).toMatch(problem);
    expect((error as Error).message).toContain('strongroom parent-proxy');
  });

  it('is refused when it floods, without being kept', async () => {
    await parent((socket) => {
      const flood = (): void => {
        while (socket.write(Buffer.alloc(65_536, 1)));
        socket.once('drain', flood);
      };
      flood();
    });
    await expect(fetching(ONE_ATTEMPT)).rejects.toThrow(/16843009 bytes were announced, over the limit/);
  });

  it.each<[string, (socket: Socket) => void]>([
    ['never answers', () => undefined],
    ['never ends', (socket) => socket.write(frame(YAML))],
  ])('is refused in time when the parent %s', async (_, answer) => {
    await parent(answer);
    await expect(fetching({ ...ONE_ATTEMPT, attemptMs: 50 })).rejects.toThrow(/no complete configuration within 50 ms/);
  });

  it('is asked for again, and what was wrong is logged', async () => {
    const log = recordingLog();
    await parent(
      (socket) => socket.end(frame(YAML, 3)),
      (socket) => socket.end(),
      (socket) => socket.end(frame(YAML)),
    );
    expect(await fetching(MANY_ATTEMPTS, log)).toEqual(YAML);
    expect(log.lines.map(({ fields }) => fields)).toMatchObject([
      { attempt: 1, problem: expect.stringContaining('more came') },
      { attempt: 2, problem: expect.stringContaining('ended after 0 bytes') },
    ]);
  });

  it('is waited for until a parent is there', async () => {
    const answer = fetching(MANY_ATTEMPTS);
    await parent((socket) => socket.end(frame(YAML)));
    expect(await answer).toEqual(YAML);
  });

  it('is given up when nobody is there', async () => {
    await expect(fetching(ONE_ATTEMPT)).rejects.toThrow(/no configuration on vsock port 7001: connect ECONNRESET/);
  });
});

describe('a configuration of the image', () => {
  const write = (bytes: Buffer): string => {
    const path = join(folder, 'config.yaml');
    writeFileSync(path, bytes);
    return path;
  };

  it('is the file, to the last byte', async () => {
    const bytes = Buffer.from('network: hoodi\r\n\n');
    expect(await readBakedConfiguration(write(bytes))).toEqual(bytes);
  });

  it('has the same limit', async () => {
    expect(await readBakedConfiguration(write(Buffer.alloc(MAX_CONFIGURATION_BYTES)))).toHaveLength(
      MAX_CONFIGURATION_BYTES,
    );
    await expect(readBakedConfiguration(write(Buffer.alloc(MAX_CONFIGURATION_BYTES + 1)))).rejects.toThrow(
      /is over 1048576 bytes/,
    );
    await expect(readBakedConfiguration(write(Buffer.alloc(0)))).rejects.toThrow(/is empty/);
    await expect(readBakedConfiguration(join(folder, 'none'))).rejects.toThrow(/ENOENT/);
  });
});
