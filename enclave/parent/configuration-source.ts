// Where the enclave's configuration comes from: the image, or the parent, at boot. What arrives is measured before
// anything acts on it.

import { open } from 'node:fs/promises';
import type { Socket } from 'node:net';
import type { Log } from '../../common/observe/log.ts';
import {
  CONFIGURATION_LENGTH_BYTES,
  CONFIGURATION_PORT,
  MAX_CONFIGURATION_BYTES,
} from '../../signer/api/parent-ports.ts';
import type { Transport } from '../../signer/native/transport.ts';
import { keepTrying, type Patience } from '../platform.ts';

export interface FetchLimits extends Patience {
  readonly attemptMs: number;
}

export const FETCH_LIMITS: FetchLimits = {
  patienceMs: 120_000,
  attemptMs: 10_000,
  firstPauseMs: 100,
  maxPauseMs: 5_000,
};

export async function fetchConfiguration(
  parent: Transport,
  { log, limits = FETCH_LIMITS }: { readonly log: Log; readonly limits?: FetchLimits | undefined },
): Promise<Buffer> {
  try {
    return await keepTrying(() => fetchOnce(parent, limits.attemptMs), limits, {
      onFailure: (error, attempt) =>
        log.warn({ attempt, problem: problemOf(error) }, 'the parent has given no configuration yet'),
    });
  } catch (error) {
    throw new Error(
      `the parent gives no configuration on vsock port ${CONFIGURATION_PORT}: ${problemOf(error)}; run \`strongroom parent-proxy -c FILE\` there`,
      { cause: error },
    );
  }
}

export async function readBakedConfiguration(path: string): Promise<Buffer> {
  await using file = await open(path);
  const bytes = Buffer.alloc(MAX_CONFIGURATION_BYTES + 1);
  let length = 0;
  for (let read = -1; read !== 0 && length < bytes.length; length += read) {
    ({ bytesRead: read } = await file.read(bytes, length));
  }
  if (length > MAX_CONFIGURATION_BYTES) throw new Error(`${path} is over ${MAX_CONFIGURATION_BYTES} bytes`);
  if (length === 0) throw new Error(`${path} is empty`);
  return bytes.subarray(0, length);
}

async function fetchOnce(parent: Transport, timeoutMs: number): Promise<Buffer> {
  const deadline = AbortSignal.timeout(timeoutMs);
  const socket = await parent.connect(CONFIGURATION_PORT, { timeoutMs, signal: deadline });
  const cut = (): unknown => socket.destroy(new Error(`no complete configuration within ${timeoutMs} ms`));
  deadline.addEventListener('abort', cut);
  try {
    return await readFramed(socket);
  } finally {
    deadline.removeEventListener('abort', cut);
    socket.destroy();
  }
}

async function readFramed(socket: Socket): Promise<Buffer> {
  const frame = Buffer.alloc(CONFIGURATION_LENGTH_BYTES + MAX_CONFIGURATION_BYTES);
  let received = 0;
  let wanted: number | undefined;
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    chunk.copy(frame, received); // what does not fit is a surplus, and refused below
    received += chunk.length;
    if (received < CONFIGURATION_LENGTH_BYTES) continue;
    wanted ??= announcedLength(frame);
    if (received > CONFIGURATION_LENGTH_BYTES + wanted) {
      throw new Error(`more came than the ${wanted} bytes that were announced`);
    }
  }
  if (wanted === undefined || received < CONFIGURATION_LENGTH_BYTES + wanted) {
    throw new Error(`the stream ended after ${received} bytes, before the configuration was complete`);
  }
  return frame.subarray(CONFIGURATION_LENGTH_BYTES, received);
}

function announcedLength(frame: Buffer): number {
  const wanted = frame.readUInt32BE();
  if (wanted === 0) throw new Error('an empty configuration was announced');
  if (wanted > MAX_CONFIGURATION_BYTES) {
    throw new Error(`${wanted} bytes were announced, over the limit of ${MAX_CONFIGURATION_BYTES}`);
  }
  return wanted;
}

function problemOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
