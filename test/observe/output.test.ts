// Where lines of a log go: in order, bounded, across a rotation, past a reader that has stopped and a disk that is
// full.

import { spawnSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Output, type OutputOptions, openOutput } from '../../common/observe/output.ts';
import { lacking } from '../support/needs.ts';

const MAX_WAITING_BYTES = 8 * 1024 * 1024;
const LIMITS: OutputOptions = { maxWaitingBytes: MAX_WAITING_BYTES };
const collected = { bytes: 32 * 1024, milliseconds: 60_000 };

let directory = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strongroom-output-'));
});

afterEach(() => rmSync(directory, { recursive: true }));

/** A named pipe with a reader, which has not read yet. */
function pipe(): { readonly path: string; read(): string; close(): void } {
  const path = join(directory, 'pipe');
  if (spawnSync('mkfifo', [path]).status !== 0) throw new Error('no mkfifo');
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const buffer = Buffer.alloc(1024 * 1024);
  return {
    path,
    read() {
      let text = '';
      try {
        for (let count = 1; count > 0; ) {
          count = readSync(reader, buffer);
          text += buffer.toString('latin1', 0, count);
        }
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error; // nothing there yet
      }
      return text;
    },
    close: () => closeSync(reader),
  };
}

function linesOf(path: string): string[] {
  return readFileSync(path, 'utf8').split('\n').slice(0, -1);
}

describe('the output', () => {
  it('writes lines in order, and appends to what is there', async () => {
    const path = join(directory, 'log');
    for (const part of ['a', 'b']) {
      const output = openOutput(path, LIMITS);
      for (let line = 0; line < 5000; line++) output.write(`${part}${line}\n`);
      await output.end(5000);
    }
    const expected = ['a', 'b'].flatMap((part) => Array.from({ length: 5000 }, (_, line) => `${part}${line}`));
    expect(linesOf(path)).toEqual(expected);
  });

  it('loses no line to a rotation in the middle of a write', async () => {
    const path = join(directory, 'log');
    const output = openOutput(path, LIMITS);
    for (let line = 0; line < 20_000; line++) {
      output.write(`${line}\n`);
      if (line === 10_000) {
        renameSync(path, `${path}.1`);
        output.reopen();
      }
    }
    await output.end(5000);
    expect(linesOf(`${path}.1`).length + linesOf(path).length).toBe(20_000);
    expect(output.lostLines).toBe(0);
  });

  it('says when enough waits, loses and counts what is beyond, and says so when it is read again', async () => {
    const reader = pipe();
    const output = openOutput(reader.path, LIMITS);
    const block = `${'x'.repeat(MAX_WAITING_BYTES / 16 - 1)}\n`;
    const taken: boolean[] = [];
    for (let write = 0; write < 32; write++) taken.push(output.write(block));
    expect(taken.slice(0, 6)).toEqual(Array.from({ length: 6 }, () => true));
    expect(taken.slice(8)).toEqual(Array.from({ length: 24 }, () => false));
    expect(output.lostLines).toBeGreaterThanOrEqual(15);
    expect(output.isLosing).toBe(true);
    let text = '';
    const reading = setInterval(() => {
      text += reader.read();
    }, 1);
    await output.drained();
    await expect.poll(() => output.isLosing).toBe(false);
    await output.end(10_000);
    clearInterval(reading);
    text += reader.read();
    const lines = text.split('\n').slice(0, -1);
    const said = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as { lines: number });
    expect(said.map(({ lines: lost }) => lost)).toEqual([output.lostLines]);
    expect(lines.length - said.length + output.lostLines).toBe(32);
    reader.close();
  });

  it('collects lines for one write, and writes them at once for whoever waits', async () => {
    const path = join(directory, 'log');
    const output = openOutput(path, { ...LIMITS, collected });
    output.write('a\n');
    output.write('b\n');
    expect(readFileSync(path, 'utf8')).toBe('');
    await expect(output.confirmed()).resolves.toBe(true);
    expect(linesOf(path)).toEqual(['a', 'b']);
    await expect(output.confirmed()).resolves.toBe(true);
    await output.end(5000);
  });

  it('outlives writes that fail: drops and counts their lines, and tells whoever waits', async () => {
    const output = openOutput('/dev/full', LIMITS);
    output.write('one\n');
    await expect(output.confirmed()).resolves.toBe(false);
    expect([output.lostLines, output.isLosing]).toEqual([1, true]);
    output.write('two\nthree\n');
    await expect(output.confirmed()).resolves.toBe(false);
    expect(output.lostLines).toBe(3);
    output.write('four\n');
    await output.end(60_000); // one attempt, and no more
    expect(output.lostLines).toBe(4);
  });

  it('goes on with a reader that comes back, and says how many lines are missing', async () => {
    const reader = pipe();
    const output = openOutput(reader.path, LIMITS);
    output.write('read\n');
    await expect(output.confirmed()).resolves.toBe(true);
    expect(reader.read()).toBe('read\n');
    reader.close();
    for (let line = 0; line < 7; line++) output.write(`lost ${line}\n`);
    await expect(output.confirmed()).resolves.toBe(false);
    expect(output.lostLines).toBe(7);
    const next = openSync(reader.path, constants.O_RDONLY | constants.O_NONBLOCK);
    await expect.poll(() => output.isLosing).toBe(false);
    output.write('read again\n');
    await output.end(5000);
    const text = readFileSync(next, 'utf8').split('\n');
    expect(JSON.parse(text[0] ?? '')).toMatchObject({ level: 'warn', lines: 7, msg: 'log lines were dropped' });
    expect(text.slice(1)).toEqual(['read again', '']);
    closeSync(next);
  });

  it.skipIf(lacking('prlimit'))('ends the line that a full disk has cut', () => {
    const program = join(import.meta.dirname, 'output-on-small-disk.ts');
    const path = join(directory, 'log');
    const command = `ulimit -S -f 1; exec ${process.execPath} ${program} ${path}`; // blocks of 512 bytes in sh
    const { status, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([
      0,
      `strongroom: the log ${path} cannot be written (EFBIG): its lines are dropped and counted until it takes them again\n`,
    ]);
    const lines = linesOf(path);
    expect(lines.at(-1)).toBe('after');
    expect(JSON.parse(lines.at(-2) ?? '')).toMatchObject({ msg: 'log lines were dropped' });
    const written = lines.filter((line) => /^a{99}$/.test(line)).length;
    expect(JSON.parse(lines.at(-2) ?? '').lines + written).toBe(20);
    expect(lines).toHaveLength(written + 3); // one is cut
  });

  it('writes what waits before a process ends for a bug, and not for ever', () => {
    const reader = pipe();
    const output: Output = openOutput(reader.path, { ...LIMITS, collected });
    output.write('last words\n');
    output.flush();
    expect(reader.read()).toBe('last words\n');
    output.write(`${'x'.repeat(1024 * 1024)}\n`); // a pipe takes 64 KiB
    const startedAt = performance.now();
    output.flush();
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    reader.close();
  });
});
