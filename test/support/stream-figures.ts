// Ways from a client to a server, measured beside each other in one run: throughput, round trips, connections. What
// comes back is compared with what was sent; what it costs to compare is part of every way alike.

import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { hear, hearBytes } from './streams.ts';

export type Connect = () => Promise<Socket>;

interface Amounts {
  /** Not counted: one round more, for the compilers. */
  readonly rounds: number;
  readonly mebibytes: number;
  readonly roundTrips: number;
  readonly connections: number;
}

export interface Figures {
  readonly mebibytesPerSecond: number;
  readonly roundTripMicroseconds: number;
  readonly connectionsPerSecond: number;
}

const FIGURES = ['mebibytesPerSecond', 'roundTripMicroseconds', 'connectionsPerSecond'] as const;
const BLOCK_BYTES = 1024 * 1024;
/** As a signing request and its answer. */
const MESSAGE_BYTES = 700;
const CONNECTIONS_AT_ONCE = 50;
const [SWALLOW, DIGEST, ECHO] = [...Buffer.from('sde')];

/** The other end. The first byte chooses: how many bytes came, as text; their SHA-256; or everything comes back. */
export function serve(socket: Socket): void {
  socket.on('error', () => undefined);
  socket.once('data', (first: Buffer) => {
    if (first[0] === SWALLOW) return answerAtTheEnd(socket, first, countBytes());
    if (first[0] === DIGEST) return answerAtTheEnd(socket, first, createHash('sha256'));
    socket.write(first);
    socket.pipe(socket);
  });
}

interface Summary {
  update(bytes: Buffer): unknown;
  digest(): Buffer;
}

function countBytes(): Summary {
  let count = 0;
  return {
    update(bytes) {
      count += bytes.length;
    },
    digest: () => Buffer.from(String(count)),
  };
}

function answerAtTheEnd(socket: Socket, first: Buffer, summary: Summary): void {
  summary.update(first);
  socket.on('data', (bytes: Buffer) => void summary.update(bytes));
  socket.once('end', () => socket.end(summary.digest()));
}

/** Interleaved, so that what else the machine does falls on all ways alike. @throws when bytes are lost or changed */
export async function measureWays(
  ways: Readonly<Record<string, Connect>>,
  amounts: Amounts,
): Promise<ReadonlyMap<string, readonly Figures[]>> {
  const results = new Map<string, Figures[]>(Object.keys(ways).map((name) => [name, []]));
  for (const connect of Object.values(ways)) await exactly(connect);
  for (let round = 0; round <= amounts.rounds; round++) {
    for (const [name, connect] of Object.entries(ways)) {
      const figures = {
        mebibytesPerSecond: await throughput(connect, amounts.mebibytes),
        roundTripMicroseconds: await roundTrip(connect, amounts.roundTrips),
        connectionsPerSecond: await connections(connect, amounts.connections),
      };
      if (round > 0) results.get(name)?.push(figures);
    }
  }
  return results;
}

/** Random bytes arrive as they were sent. */
async function exactly(connect: Connect): Promise<void> {
  const bytes = Buffer.concat([Buffer.of(DIGEST ?? 0), randomBytes(BLOCK_BYTES)]);
  const socket = await connect();
  socket.end(bytes);
  same((await hear(socket)).bytes, createHash('sha256').update(bytes).digest());
}

async function throughput(connect: Connect, mebibytes: number): Promise<number> {
  const socket = await connect();
  const block = Buffer.alloc(BLOCK_BYTES, SWALLOW);
  const started = performance.now();
  for (let sent = 0; sent < mebibytes; sent++) if (!socket.write(block)) await once(socket, 'drain');
  socket.end();
  same((await hear(socket)).bytes, Buffer.from(String(mebibytes * BLOCK_BYTES)));
  return mebibytes / ((performance.now() - started) / 1000);
}

async function roundTrip(connect: Connect, trips: number): Promise<number> {
  const socket = await connect();
  const message = Buffer.concat([Buffer.of(ECHO ?? 0), randomBytes(MESSAGE_BYTES - 1)]);
  const started = performance.now();
  for (let trip = 0; trip < trips; trip++) {
    socket.write(message);
    same(await hearBytes(socket, MESSAGE_BYTES), message);
  }
  socket.destroy();
  return ((performance.now() - started) * 1000) / trips;
}

async function connections(connect: Connect, count: number): Promise<number> {
  const started = performance.now();
  const message = Buffer.of(ECHO ?? 0);
  for (let batch = 0; batch < count; batch += CONNECTIONS_AT_ONCE) {
    await Promise.all(
      Array.from({ length: Math.min(CONNECTIONS_AT_ONCE, count - batch) }, async () => {
        const socket = await connect();
        socket.end(message);
        same((await hear(socket)).bytes, message);
      }),
    );
  }
  return count / ((performance.now() - started) / 1000);
}

function same(found: Buffer, expected: Buffer): void {
  if (!found.equals(expected))
    throw new Error(`${found.length} bytes came that are not the ${expected.length} expected`);
}

/** A line a figure: medians, and in brackets the ratio to the first way. */
export function figureLines(results: ReadonlyMap<string, readonly Figures[]>): readonly string[] {
  const [[, base] = ['', []]] = results;
  return FIGURES.map((figure) => {
    const cells = Array.from(results, ([name, figures]) => {
      const value = median(figures, figure);
      return `${name} ${value.toFixed(0)} (${(value / median(base, figure)).toFixed(2)})`;
    });
    return `${figure.padEnd(24)}${cells.join('   ')}`;
  });
}

function median(figures: readonly Figures[], figure: keyof Figures): number {
  const sorted = figures.map((one) => one[figure]).toSorted((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
