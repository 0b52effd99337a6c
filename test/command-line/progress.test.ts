// The line that says how far long work is: nothing below two seconds, in place on a terminal, a line each ten seconds
// in a pipe; time is the test's own. A terminal of its own (`script` of util-linux) shows what people see.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { durationText, type ProgressClock, progressLine, showProgress } from '../../common/command-line/progress.ts';
import { lacking } from '../support/needs.ts';

const KEYS = { doing: 'importing', unit: 'keys', total: 2000 };

function clockwork(): ProgressClock & { pass(milliseconds: number): void; readonly isRunning: boolean } {
  let time = 5_000_000;
  let run: (() => void) | undefined;
  return {
    now: () => time,
    every: (_milliseconds, each) => {
      run = each;
      return () => {
        run = undefined;
      };
    },
    pass(milliseconds) {
      time += milliseconds;
      run?.();
    },
    get isRunning() {
      return run !== undefined;
    },
  };
}

function shownOn(stream: { isTTY?: true; columns?: number }, env: Record<string, string> = {}) {
  const written: string[] = [];
  const beat = clockwork();
  const stderr = { ...stream, write: (text: string) => written.push(text) };
  return { written, beat, progress: showProgress({ stderr, env }, KEYS, beat) };
}

const LINE = 'importing ██████████████░░░░░░ 1,400 of 2,000 keys, 230/s, 3 s left';

describe('the line', () => {
  it.each([
    [80, LINE],
    [60, 'importing █████████░░░░ 1,400 of 2,000 keys, 230/s, 3 s left'],
    [50, 'importing 1,400 of 2,000 keys, 230/s, 3 s left'],
    [24, 'importing 1,400 of 2,00…'],
  ])('fits %i columns: the bar gives way first', (columns, line) => {
    const told = progressLine(KEYS, { done: 1400, seconds: 1400 / 230 }, columns);
    expect(told).toBe(line);
    expect(told.length).toBeLessThanOrEqual(columns);
  });

  it.each([
    [{ doing: 'reading', unit: 'keys', total: 10 }, 0, 4, 'reading 0 of 10 keys, 4 s'],
    [{ doing: 'reading', unit: 'keys', total: 10 }, 10, 4, 'reading 10 of 10 keys, 2.5/s'],
    [{ doing: 'reading', unit: 'keys', total: 10_000 }, 1, 3, 'reading 1 of 10,000 keys, 0.3/s, 8 h 20 min left'],
    [{ doing: 'reading', unit: 'keys' }, 12_345, 10, 'reading 12,345 keys so far, 1,235/s'],
    [{ doing: 'measuring the image' }, 0, 61.2, 'measuring the image, 62 s'],
    [{ doing: 'reading', unit: 'keys', total: 0 }, 0, 3, 'reading 0 of 0 keys'],
  ])('of %o at %i after %f s', (work, done, seconds, line) => {
    expect(progressLine(work, { done, seconds }, 25 + line.length).replace(/[█░]+ /, '')).toBe(line);
  });

  it('tells time in at most two units', () => {
    expect([0.2, 119, 120, 3599, 7200, 7260, 90_000].map(durationText)).toEqual(
      ['1 s', '119 s', '2 min', '60 min', '2 h 0 min', '2 h 1 min', '25 h 0 min'], //
    );
  });
});

describe('on a terminal', () => {
  it('nothing is said of work below two seconds', () => {
    const { written, beat, progress } = shownOn({ isTTY: true, columns: 80 });
    beat.pass(1999);
    progress.reach(1999);
    progress[Symbol.dispose]();
    expect(written).toEqual([]);
    expect(beat.isRunning).toBe(false);
  });

  it('one line is written again in place, at most five times a second, and is gone at the end', () => {
    const { written, beat, progress } = shownOn({ isTTY: true, columns: 80 });
    progress.reach(1400);
    beat.pass((1400 / 230) * 1000);
    expect(written).toEqual([`\r\u001b[K${LINE}`]);
    for (let count = 1401; count < 1500; count++) progress.reach(count);
    expect(written).toHaveLength(1);
    beat.pass(200);
    expect(written).toHaveLength(2);
    expect(written[1]?.split('\u001b[K')[1]).toMatch(/^importing █+░+ 1,499 of 2,000 keys/);
    progress[Symbol.dispose]();
    expect(written.at(-1)).toBe('\r\u001b[K');
    progress.reach(2000);
    expect(written.join('')).not.toContain('\n');
    expect(written).toHaveLength(3);
  });

  it('the parts of work follow each other in the same line', () => {
    const { written, beat, progress } = shownOn({ isTTY: true, columns: 80 });
    beat.pass(3000);
    progress.begin({ doing: 'measuring' });
    beat.pass(1000);
    expect(written.at(-1)).toBe('\r\u001b[Kmeasuring, 1 s');
  });

  it('that moves no cursor (TERM=dumb) is a pipe', () => {
    const { written, beat } = shownOn({ isTTY: true, columns: 80 }, { TERM: 'dumb' });
    beat.pass(9999);
    expect(written).toEqual([]);
    beat.pass(1);
    expect(written).toEqual(['importing ░░░░░░░░░░░░░░░░░░░░ 0 of 2,000 keys, 10 s\n']);
  });
});

it('in a pipe a line comes each ten seconds, whole, without escapes', () => {
  const { written, beat, progress } = shownOn({});
  for (let second = 1; second <= 35; second++) {
    progress.reach(second * 40);
    beat.pass(1000);
  }
  progress[Symbol.dispose]();
  expect(written.map((line) => line.replace(/[█░]+ /, ''))).toEqual([
    'importing 400 of 2,000 keys, 40/s, 40 s left\n',
    'importing 800 of 2,000 keys, 40/s, 30 s left\n',
    'importing 1,200 of 2,000 keys, 40/s, 20 s left\n',
  ]);
});

it.skipIf(lacking('Linux', 'script'))('a real terminal shows it, and is clean again afterwards', async () => {
  const root = join(import.meta.dirname, '../..');
  const module = pathToFileURL(join(root, 'common/command-line/progress.ts')).href;
  // It works until a key is pressed.
  const program = `
    import { showProgress } from '${module}';
    const shown = showProgress(process, { doing: 'importing', unit: 'keys', total: 10 });
    shown.reach(5);
    process.stdin.once('data', () => { shown[Symbol.dispose](); console.error('done'); process.exit(0); });`;
  const command = `stty -echo cols 60; exec '${root}/bin/pinned-node' --input-type=module -e "$PROGRAM"`;
  const env = { PATH: process.env['PATH'], TERM: 'xterm', PROGRAM: program };
  const child = spawn('script', ['-qec', command, '/dev/null'], { env });
  let screen = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const isSeen = screen.includes('5 of 10 keys');
    screen += text;
    if (!isSeen && screen.includes('5 of 10 keys')) child.stdin.write('\n');
  });
  const [code] = (await once(child, 'close')) as [number | null];
  expect(code).toBe(0);
  const [first = ''] = screen.split('\r\u001b[K').filter((line) => line !== '');
  expect(first).toMatch(/^importing █{5,}░{5,} 5 of 10 keys, [\d.]+\/s, \d+ s left$/);
  expect(first.length).toBeLessThan(60);
  expect(screen.endsWith('\r\u001b[Kdone\r\n')).toBe(true);
});
