// A coverage-guided fuzzer for decoders. It changes inputs of a corpus, runs the decoder, and keeps the inputs that
// reach what none before reached, as V8's own precise coverage says (node:inspector). A decoder may return or throw an
// error of its own; a TypeError, RangeError, ReferenceError or AssertionError is a fault, and so is an input that takes
// too long. Why not @jazzer.js/core: docs/reliability.md.

import { AssertionError } from 'node:assert';
import { createHash } from 'node:crypto';
import { Session } from 'node:inspector/promises';

export interface FuzzTarget {
  readonly name: string;
  readonly sources: readonly string[];
  readonly words: readonly string[];
  readonly seeds: () => readonly Uint8Array[];
  readonly decode: (input: Uint8Array) => unknown;
}

export interface Fault {
  readonly input: Uint8Array;
  readonly error: unknown;
}

export interface FuzzResult {
  readonly runs: number;
  /** Places of the sources that were reached, by how often in one run. */
  readonly features: number;
  readonly faults: readonly Fault[];
  /** Inputs that reached something new, the smallest of those that reached the same. */
  readonly kept: readonly Uint8Array[];
}

const MAX_INPUT_BYTES = 8_192;
/** Of CPU: a machine that does other work does not make a decoder slow. */
const MAX_INPUT_CPU_MS = 2_000;
const MAX_FAULTS = 10;
const MAX_CHANGES = 6;
/** A coverage report costs as much as hundreds of inputs. */
const RUNS_PER_LOOK = 512;

export async function fuzz(
  target: FuzzTarget,
  {
    corpus,
    until,
    seed,
  }: { readonly corpus: readonly Uint8Array[]; readonly until: () => boolean; readonly seed: number },
): Promise<FuzzResult> {
  const coverage = await openCoverage(target.sources);
  const random = randomNumbers(seed);
  const known = new Set<string>();
  const kept: Uint8Array[] = [];
  const faults = new Map<string, Fault>();
  let runs = 0;

  async function attempt(input: Uint8Array): Promise<void> {
    runs += 1;
    const before = process.cpuUsage();
    try {
      await target.decode(input);
    } catch (error) {
      if (isFault(error)) note(input, error);
    }
    const { user, system } = process.cpuUsage(before);
    const milliseconds = (user + system) / 1000;
    if (milliseconds > MAX_INPUT_CPU_MS) note(input, new Error(`took ${Math.round(milliseconds)} ms of CPU`));
  }
  function note(input: Uint8Array, error: unknown): void {
    const place = error instanceof Error ? (error.stack ?? '').split('\n').slice(0, 3).join('\n') : String(error);
    if (faults.size < MAX_FAULTS && !faults.has(place)) faults.set(place, { input, error });
  }
  /** What the runs since the last look reached that none reached before. */
  async function news(): Promise<Set<string>> {
    const reached = await coverage.take();
    const fresh = new Set(reached.filter((feature) => !known.has(feature)));
    for (const feature of fresh) known.add(feature);
    return fresh;
  }

  /** Which of them reached it is found by halves. What needs two inputs is of neither. */
  async function keepThoseOf(inputs: readonly Uint8Array[], fresh: Set<string>): Promise<void> {
    for (const half of [inputs.slice(0, inputs.length / 2), inputs.slice(inputs.length / 2)]) {
      if (half.length === 0 || fresh.size === 0 || until()) continue;
      for (const input of half) await attempt(input);
      const reached = (await coverage.take()).filter((feature) => fresh.has(feature));
      if (reached.length === 0) continue;
      if (half.length > 1) await keepThoseOf(half, fresh);
      else kept.push(...half);
      for (const feature of reached) fresh.delete(feature);
    }
  }

  try {
    for (const input of [...corpus, ...target.seeds()]) {
      await attempt(input);
      if ((await news()).size > 0) kept.push(input);
    }
    if (kept.length === 0) kept.push(new Uint8Array());
    while (!until()) {
      const inputs = Array.from({ length: RUNS_PER_LOOK }, () => changed(kept, target.words, random));
      for (const input of inputs) await attempt(input);
      const fresh = await news();
      if (fresh.size > 0) await keepThoseOf(inputs, fresh);
    }
  } finally {
    await coverage.close();
  }
  return { runs, features: known.size, faults: [...faults.values()], kept };
}

function isFault(error: unknown): boolean {
  return (
    !(error instanceof Error) ||
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof ReferenceError ||
    error instanceof AssertionError
  );
}

async function openCoverage(sources: readonly string[]) {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  return {
    async take(): Promise<string[]> {
      const { result } = await session.post('Profiler.takePreciseCoverage');
      const features: string[] = [];
      for (const { url, functions } of result) {
        if (!sources.some((source) => url.includes(source))) continue;
        for (const { ranges } of functions)
          for (const { startOffset, endOffset, count } of ranges)
            if (count > 0)
              features.push(`${url}:${startOffset}-${endOffset}:${Math.min(7, Math.floor(Math.log2(count)))}`);
      }
      return features;
    },
    async close(): Promise<void> {
      await session.post('Profiler.stopPreciseCoverage');
      session.disconnect();
    },
  };
}

type Random = (below: number) => number;

/** mulberry32: the same inputs for the same seed. */
function randomNumbers(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) % Math.max(1, below);
  };
}

function changed(corpus: readonly Uint8Array[], words: readonly string[], random: Random): Uint8Array {
  let bytes: Buffer = Buffer.from(corpus[random(corpus.length)] ?? []);
  for (let changes = 1 + random(MAX_CHANGES); changes > 0; changes--) bytes = change(bytes, corpus, words, random);
  return bytes.subarray(0, MAX_INPUT_BYTES);
}

const EDGES = [0, 1, 0x7f, 0x80, 0xff, 0x20, 0x22, 0x30, 0x5b, 0x7b];

function change(bytes: Buffer, corpus: readonly Uint8Array[], words: readonly string[], random: Random): Buffer {
  const at = random(bytes.length + 1);
  const length = 1 + random(Math.min(16, Math.max(1, bytes.length - at)));
  const parts = (middle: Uint8Array, skipped = 0) =>
    Buffer.concat([bytes.subarray(0, at), middle, bytes.subarray(at + skipped)]);
  switch (random(9)) {
    case 0:
      return parts(Buffer.from([random(256)]), 1);
    case 1:
      return parts(Buffer.from([EDGES[random(EDGES.length)] ?? 0]), 1);
    case 2:
      return parts(Buffer.alloc(0), length);
    case 3:
      return parts(bytes.subarray(at, at + length));
    case 4:
      return parts(Buffer.from(words[random(words.length)] ?? ''), random(2) === 0 ? 0 : length);
    case 5: {
      const other = Buffer.from(corpus[random(corpus.length)] ?? []);
      const from = random(other.length + 1);
      return parts(other.subarray(from, from + 1 + random(64)), random(2) === 0 ? 0 : length);
    }
    case 6: {
      const copy = Buffer.from(bytes);
      if (at < copy.length) copy[at] = (copy[at] ?? 0) ^ (1 << random(8));
      return copy;
    }
    case 7:
      return bytes.subarray(0, at);
    default: // a number becomes another
      return Buffer.from(
        bytes
          .toString('latin1')
          .replace(/\d+/, () => String([0, 1, 255, 2 ** 31, 2 ** 53, '18446744073709551615'][random(6)])),
        'latin1',
      );
  }
}

export function nameOf(input: Uint8Array): string {
  return createHash('sha256').update(input).digest('hex').slice(0, 16);
}
