// Looks for bytes in the whole writable memory of another process of this user: heap, buffers, stacks, locked pages.
// Linux only.

import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

const CHUNK_BYTES = 4 * 1024 * 1024;

/** How often each pattern occurs. The process should be stopped or idle. @throws when its memory may not be read */
export function scanProcess(pid: number, patterns: Readonly<Record<string, Buffer>>): Record<string, number> {
  const found = Object.fromEntries(Object.keys(patterns).map((name) => [name, 0]));
  const overlap = Math.max(...Object.values(patterns).map((pattern) => pattern.length)) - 1;
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  try {
    for (const { start, end } of writableRegions(pid)) {
      for (let at = start; at < end; at += CHUNK_BYTES) {
        const chunk = readAt(memory, at, Math.min(CHUNK_BYTES + overlap, end - at));
        for (const [name, pattern] of Object.entries(patterns)) {
          found[name] = (found[name] ?? 0) + occurrences(chunk, pattern, CHUNK_BYTES);
        }
      }
    }
  } finally {
    closeSync(memory);
  }
  return found;
}

function writableRegions(pid: number): { readonly start: number; readonly end: number }[] {
  const regions = readFileSync(`/proc/${pid}/maps`, 'utf8').matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw/gm);
  return [...regions].map(([, start = '', end = '']) => ({
    start: Number.parseInt(start, 16),
    end: Number.parseInt(end, 16),
  }));
}

/** Empty for pages that are not readable. */
function readAt(memory: number, position: number, length: number): Buffer {
  const chunk = Buffer.allocUnsafe(length);
  try {
    return chunk.subarray(0, readSync(memory, chunk, 0, length, position));
  } catch {
    return Buffer.alloc(0);
  }
}

/** Those that begin before `limit`: the rest belongs to the next chunk. */
function occurrences(chunk: Buffer, pattern: Buffer, limit: number): number {
  let count = 0;
  for (let at = chunk.indexOf(pattern); at !== -1 && at < limit; at = chunk.indexOf(pattern, at + 1)) count += 1;
  return count;
}
