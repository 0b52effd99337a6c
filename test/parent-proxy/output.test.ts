// Where the parent proxy writes: in order, bounded, across a rotation, past a reader that has stopped and a disk that
// is full.

import { spawnSync } from 'node:child_process';
import { constants, mkdtempSync, openSync, readFileSync, readSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MAX_WAITING_BYTES, openOutput } from '../../parent-proxy/output.ts';

let directory = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strongroom-output-'));
});

afterEach(() => rmSync(directory, { recursive: true }));

describe('the output', () => {
  it('writes lines in order, and appends to what is there', async () => {
    const path = join(directory, 'log');
    for (const part of ['a', 'b']) {
      const output = openOutput(path);
      for (let line = 0; line < 5000; line++) output.write(`${part}${line}\n`);
      await output.end(5000);
    }
    const expected = ['a', 'b'].flatMap((part) => Array.from({ length: 5000 }, (_, line) => `${part}${line}`));
    expect(readFileSync(path, 'utf8').split('\n').slice(0, -1)).toEqual(expected);
  });

  it('loses no line to a rotation in the middle of a write', async () => {
    const path = join(directory, 'log');
    const output = openOutput(path);
    for (let line = 0; line < 20_000; line++) {
      output.write(`${line}\n`);
      if (line === 10_000) {
        renameSync(path, `${path}.1`);
        output.reopen();
      }
    }
    await output.end(5000);
    const both = readFileSync(`${path}.1`, 'utf8') + readFileSync(path, 'utf8');
    expect(both.split('\n').length - 1).toBe(20_000);
    expect(output.lostWrites).toBe(0);
  });

  it('says when enough waits, loses and counts what is beyond, and goes on when it is read', async () => {
    const path = join(directory, 'pipe');
    spawnSync('mkfifo', [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const output = openOutput(path);
    const block = `${'x'.repeat(MAX_WAITING_BYTES / 8 - 1)}\n`;
    const taken: boolean[] = [];
    for (let write = 0; write < 32; write++) taken.push(output.write(block));
    expect(taken.slice(0, 6)).toEqual(Array.from({ length: 6 }, () => true));
    expect(taken.slice(8)).toEqual(Array.from({ length: 24 }, () => false));
    expect(output.lostWrites).toBeGreaterThanOrEqual(16);
    let read = 0;
    const buffer = Buffer.alloc(65_536);
    const reading = setInterval(() => {
      try {
        for (let count = 1; count > 0; ) {
          count = readSync(reader, buffer);
          read += count;
        }
      } catch {
        // nothing there yet: EAGAIN
      }
    }, 1);
    await output.drained();
    await output.end(10_000);
    clearInterval(reading);
    expect(read).toBeGreaterThan(0);
  });

  it('outlives writes that fail', async () => {
    const output = openOutput('/dev/full');
    output.write('nobody can keep this\n');
    await output.end(2000);
    expect(output.lostWrites).toBe(1);
  });
});
