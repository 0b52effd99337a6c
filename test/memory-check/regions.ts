// The memory of another process of this machine by its regions: which are locked and left out of core dumps (VmFlags of
// proc(5), smaps), and how often bytes occur in each. Linux, as root.

import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

export interface Region {
  readonly start: number;
  readonly end: number;
  readonly name: string;
  readonly isLocked: boolean;
  /** MADV_DONTDUMP */
  readonly isLeftOut: boolean;
}

export const CHUNK_BYTES = 1024 * 1024;

/** Those that can be written. */
export function regionsOf(pid: number): Region[] {
  const regions: Region[] = [];
  let head: RegExpExecArray | null = null;
  for (const line of readFileSync(`/proc/${pid}/smaps`, 'utf8').split('\n')) {
    const start = /^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \S+\s*(.*)$/.exec(line);
    if (start !== null) head = start;
    else if (line.startsWith('VmFlags:') && head?.[3]?.startsWith('rw') === true) {
      const flags = line.split(/\s+/);
      regions.push({
        start: Number.parseInt(head[1] ?? '', 16),
        end: Number.parseInt(head[2] ?? '', 16),
        name: head[4] ?? '',
        isLocked: flags.includes('lo'),
        isLeftOut: flags.includes('dd'),
      });
    }
  }
  return regions;
}

/** Each part of the memory that is not all zeros, with the beginning of the next: `more` bytes of it. */
export function* memoryOf(pid: number, regions: readonly Region[], more: number): Generator<readonly [Region, Buffer]> {
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  const chunk = Buffer.alloc(CHUNK_BYTES + more);
  const zeros = Buffer.alloc(chunk.length);
  try {
    for (const region of regions) {
      for (let at = region.start; at < region.end; at += CHUNK_BYTES) {
        const part = readAt(memory, chunk.subarray(0, Math.min(chunk.length, region.end - at)), at);
        if (!part.equals(zeros.subarray(0, part.length))) yield [region, part];
      }
    }
  } finally {
    closeSync(memory);
  }
}

/** How often the pattern begins in the first `length` bytes. */
export function countIn(part: Buffer, pattern: Buffer, length: number): number {
  let count = 0;
  for (let hit = part.indexOf(pattern); hit !== -1 && hit < length; hit = part.indexOf(pattern, hit + 1)) count += 1;
  return count;
}

function readAt(memory: number, chunk: Buffer, position: number): Buffer {
  try {
    return chunk.subarray(0, readSync(memory, chunk, 0, chunk.length, position));
  } catch {
    return chunk.subarray(0, 0);
  }
}
