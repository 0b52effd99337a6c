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

const CHUNK_BYTES = 8 * 1024 * 1024;

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

export function searchMemory(pid: number, regions: readonly Region[], pattern: Buffer): Map<Region, number> {
  const found = new Map<Region, number>();
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  const chunk = Buffer.alloc(CHUNK_BYTES + pattern.length - 1);
  for (const region of regions) {
    for (let at = region.start; at < region.end; at += CHUNK_BYTES) {
      const part = readAt(memory, chunk.subarray(0, Math.min(chunk.length, region.end - at)), at);
      for (let hit = part.indexOf(pattern); hit !== -1 && hit < CHUNK_BYTES; hit = part.indexOf(pattern, hit + 1)) {
        found.set(region, (found.get(region) ?? 0) + 1);
      }
    }
  }
  closeSync(memory);
  return found;
}

function readAt(memory: number, chunk: Buffer, position: number): Buffer {
  try {
    return chunk.subarray(0, readSync(memory, chunk, 0, chunk.length, position));
  } catch {
    return chunk.subarray(0, 0);
  }
}
