// Where secrets of a running signer are: its memory live and a heap snapshot of V8, or its core (core.ts), each
// searched for each secret in each encoding. Linux.

import { closeSync, openSync, readdirSync, readFileSync, readSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { coreOf } from './core.ts';
import { CHUNK_BYTES, countIn, memoryOf, type Region, regionsOf } from './regions.ts';

const SNAPSHOT_WAIT_MS = 120_000;
const ZEROS = Buffer.alloc(2 * CHUNK_BYTES);
/** For the environment of a signer that is searched. */
export const TAKES_SNAPSHOTS = { NODE_OPTIONS: '--heapsnapshot-signal=SIGUSR2' };

/** `locked`: in locked memory only. `nowhere`: not even there. `told`: where it is found is printed, and no fault. */
export type Allowed = 'locked' | 'nowhere' | 'told';
export interface Secret {
  readonly name: string;
  readonly allowed: Allowed;
  readonly patterns: Readonly<Record<string, Buffer>>;
}

/** As bytes in both orders, and as the texts that programs make of them, in both widths of V8's strings. */
export function encodings(bytes: Uint8Array): Record<string, Buffer> {
  const raw = Buffer.from(bytes);
  const hex = raw.toString('hex');
  const decimal = BigInt(`0x${hex}`).toString();
  return {
    bytes: raw,
    reversed: Buffer.from(raw.toReversed()),
    hex: Buffer.from(hex),
    HEX: Buffer.from(hex.toUpperCase()),
    'hex in UTF-16': Buffer.from(hex, 'utf16le'),
    base64: Buffer.from(raw.toString('base64').replace(/=+$/, '')),
    decimal: Buffer.from(decimal),
  };
}

export function texts(text: string): Record<string, Buffer> {
  return { text: Buffer.from(text), 'text in UTF-16': Buffer.from(text, 'utf16le') };
}

class Findings {
  readonly #found = new Map<string, Map<string, number>>();
  readonly #secrets: readonly Secret[];

  constructor(secrets: readonly Secret[]) {
    this.#secrets = secrets;
    for (const { name } of secrets) this.#found.set(name, new Map());
  }

  note(secret: Secret, place: string, encoding: string, count: number): void {
    if (count === 0) return;
    const places = this.#found.get(secret.name);
    const label = `${place} (${encoding})`;
    places?.set(label, (places.get(label) ?? 0) + count);
  }

  /** Prints where each secret is. @returns what must not be */
  report(): string[] {
    const faults: string[] = [];
    for (const { name, allowed } of this.#secrets) {
      const places = [...(this.#found.get(name) ?? [])];
      const text = places.map(([place, count]) => `${place} ${count}`).join(', ');
      process.stdout.write(`${name}: ${text || 'nowhere'}\n`);
      const bad = places.filter(([place]) => !(allowed === 'locked' && place.startsWith('locked memory')));
      if (allowed !== 'told') faults.push(...bad.map(([place]) => `${name} is in ${place}`));
    }
    return faults;
  }

  get isEmpty(): boolean {
    return [...this.#found.values()].every(({ size }) => size === 0);
  }
}

/** The memory of a signer that runs on, and its heap. @returns what must not be */
export async function search(signer: RunningSigner, folder: string, secrets: readonly Secret[]): Promise<string[]> {
  const findings = new Findings(secrets);
  const regions = regionsOf(signer.pid);
  for (const [region, part] of memoryOf(signer.pid, regions, longestOf(secrets) - 1)) {
    countAll(part, secrets, (secret, encoding, count) => findings.note(secret, placeOf(region), encoding, count));
  }
  searchFile(await snapshotOf(signer, folder), secrets, (secret, encoding, count) => {
    if (!encoding.includes('UTF-16')) findings.note(secret, 'heap snapshot', encoding, count);
  });
  return findings.report();
}

/** Ends the signer. A core in which nothing at all is found is a fault: it is of another process, or empty. */
export async function searchCore(signer: RunningSigner, folder: string, secrets: readonly Secret[]): Promise<string[]> {
  const core = await coreOf(signer, folder);
  const { size, blocks } = statSync(core);
  process.stdout.write(
    `core: ${Math.round(size / 1e6)} MB, of which ${Math.round((blocks * 512) / 1e6)} MB are there\n`,
  );
  const findings = new Findings(secrets);
  searchFile(core, secrets, (secret, encoding, count) => findings.note(secret, 'core', encoding, count));
  rmSync(core);
  const faults = findings.report();
  return findings.isEmpty ? [...faults, 'the core has nothing of this signer'] : faults;
}

function placeOf({ isLocked, isLeftOut, name }: Region): string {
  if (isLocked && isLeftOut) return 'locked memory';
  return name === '[stack]' || name === '[heap]' ? name : 'other memory';
}

type OnFound = (secret: Secret, encoding: string, count: number) => void;

function searchFile(path: string, secrets: readonly Secret[], onFound: OnFound): void {
  const file = openSync(path, 'r');
  const chunk = Buffer.alloc(CHUNK_BYTES + longestOf(secrets) - 1);
  for (let at = 0; ; at += CHUNK_BYTES) {
    const length = readSync(file, chunk, 0, chunk.length, at);
    if (length === 0) break;
    const part = chunk.subarray(0, length);
    if (!part.equals(ZEROS.subarray(0, length))) countAll(part, secrets, onFound); // else a hole of the core
  }
  closeSync(file);
}

function countAll(part: Buffer, secrets: readonly Secret[], onFound: OnFound): void {
  for (const secret of secrets) {
    for (const [encoding, pattern] of Object.entries(secret.patterns))
      onFound(secret, encoding, countIn(part, pattern, CHUNK_BYTES));
  }
}

function longestOf(secrets: readonly Secret[]): number {
  return Math.max(...secrets.flatMap(({ patterns }) => Object.values(patterns).map(({ length }) => length)));
}

async function snapshotOf(signer: RunningSigner, folder: string): Promise<string> {
  process.kill(signer.pid, 'SIGUSR2');
  const end = performance.now() + SNAPSHOT_WAIT_MS;
  for (let size = -1; performance.now() < end; await pause(1_000)) {
    const name = readdirSync(folder).find((one) => one.endsWith('.heapsnapshot'));
    if (name === undefined) continue;
    const text = readFileSync(join(folder, name));
    if (text.length === size && text.at(-1) === 0x7d) return join(folder, name);
    size = text.length;
  }
  throw new Error('no heap snapshot was written');
}
