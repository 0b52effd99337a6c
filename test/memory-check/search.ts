// Where secrets of a running signer are: its memory live, a core that gdb wrote (Linux only), and a heap snapshot of
// V8, each searched for each secret in each encoding.

import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, readSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { RunningSigner } from '../../tools/rehearsal/signer.ts';
import { type Region, regionsOf, searchMemory } from './regions.ts';

const SNAPSHOT_WAIT_MS = 120_000;
const CHUNK_BYTES = 16 * 1024 * 1024;
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

/** Prints where each secret is. @returns what must not be */
export async function search(signer: RunningSigner, folder: string, secrets: readonly Secret[]): Promise<string[]> {
  const found = new Map<string, Map<string, number>>(secrets.map(({ name }) => [name, new Map()]));
  const note = (secret: Secret, place: string, encoding: string, count: number): void => {
    if (count === 0) return;
    const places = found.get(secret.name);
    const label = `${place} (${encoding})`;
    places?.set(label, (places.get(label) ?? 0) + count);
  };
  const regions = regionsOf(signer.pid);
  for (const secret of secrets) {
    for (const [encoding, pattern] of Object.entries(secret.patterns)) {
      for (const [region, count] of searchMemory(signer.pid, regions, pattern)) {
        note(secret, placeOf(region), encoding, count);
      }
    }
  }
  if (process.env['CORE'] === '0') process.stdout.write('SKIPPED: the core (CORE=0)\n');
  else {
    const core = coreOf(signer, folder);
    searchFile(core, secrets, (secret, encoding, count) => note(secret, 'core', encoding, count));
    rmSync(core);
  }
  searchFile(await snapshotOf(signer, folder), secrets, (secret, encoding, count) => {
    if (!encoding.includes('UTF-16')) note(secret, 'heap snapshot', encoding, count);
  });

  const faults: string[] = [];
  for (const { name, allowed } of secrets) {
    const places = [...(found.get(name) ?? [])];
    process.stdout.write(`${name}: ${places.map(([place, count]) => `${place} ${count}`).join(', ') || 'nowhere'}\n`);
    const bad = places.filter(([place]) => !(allowed === 'locked' && place.startsWith('locked memory')));
    if (allowed !== 'told') faults.push(...bad.map(([place]) => `${name} is in ${place}`));
  }
  return faults;
}

function placeOf({ isLocked, isLeftOut, name }: Region): string {
  if (isLocked && isLeftOut) return 'locked memory';
  return name === '[stack]' || name === '[heap]' ? name : 'other memory';
}

type OnFound = (secret: Secret, encoding: string, count: number) => void;

function searchFile(path: string, secrets: readonly Secret[], onFound: OnFound): void {
  const file = openSync(path, 'r');
  const longest = Math.max(...secrets.flatMap(({ patterns }) => Object.values(patterns).map(({ length }) => length)));
  const chunk = Buffer.alloc(CHUNK_BYTES + longest);
  for (let at = 0; ; at += CHUNK_BYTES) {
    const length = readSync(file, chunk, 0, chunk.length, at);
    if (length === 0) break;
    const part = chunk.subarray(0, length);
    for (const secret of secrets) {
      for (const [encoding, pattern] of Object.entries(secret.patterns)) {
        let count = 0;
        for (let hit = part.indexOf(pattern); hit !== -1 && hit < CHUNK_BYTES; hit = part.indexOf(pattern, hit + 1))
          count += 1;
        onFound(secret, encoding, count);
      }
    }
  }
  closeSync(file);
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

/** gdb writes the whole address space, of which V8 reserves tens of gigabytes: so much has to be free on the disk. */
function coreOf({ pid }: RunningSigner, folder: string): string {
  const base = join(folder, 'core');
  execFileSync('gcore', ['-o', base, String(pid)], { stdio: 'pipe' });
  return `${base}.${pid}`;
}
