// One decision on colour for every program: terminals have it, NO_COLOR and TERM=dumb turn it off, FORCE_COLOR on.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { hasColor, painter, paintResults } from '../../common/command-line/paint.ts';

const TERMINAL = { isTTY: true };
const PIPE = {};

it.each<[string, object, Record<string, string>, boolean]>([
  ['a terminal', TERMINAL, { TERM: 'xterm' }, true],
  ['a terminal that says nothing of itself', TERMINAL, {}, true],
  ['a terminal without colours', TERMINAL, { TERM: 'dumb' }, false],
  ['a terminal with NO_COLOR', TERMINAL, { NO_COLOR: '1' }, false],
  ['an empty NO_COLOR', TERMINAL, { NO_COLOR: '' }, true],
  ['a pipe', PIPE, { TERM: 'xterm', COLORTERM: 'truecolor', CI: 'true' }, false],
  ['a pipe with FORCE_COLOR', PIPE, { FORCE_COLOR: '1' }, true],
  ['a dumb terminal with FORCE_COLOR', TERMINAL, { TERM: 'dumb', FORCE_COLOR: 'true' }, true],
  ['a terminal with FORCE_COLOR=0', TERMINAL, { FORCE_COLOR: '0' }, false],
  ['both', PIPE, { FORCE_COLOR: '1', NO_COLOR: '1' }, false],
])('%s', (_, stream, env, isColored) => {
  expect(hasColor(stream, env)).toBe(isColored);
});

it('paints each line by itself, and nothing where there is no colour', () => {
  const text = 'one\n\ntwo\n';
  expect(painter(PIPE, {})(text, 'bad')).toBe(text);
  expect(painter(TERMINAL, {})(text, 'bad')).toBe('\u001B[31mone\u001B[0m\n\n\u001B[31mtwo\u001B[0m\n');
});

it('paints results where a second column begins with them, and no other words', () => {
  const table = 'CHECK    RESULT  FOUND\nclock    OK      it is OK\nsign it  FAIL: x  OK\n         OK  x\nOK  FAILED\n';
  const paint = (text: string, tone: string) => `<${tone} ${text}>`;
  expect(paintResults(table, { OK: 'good', FAIL: 'bad' }, paint)).toBe(
    'CHECK    RESULT  FOUND\nclock    <good OK>      it is OK\nsign it  <bad FAIL>: x  OK\n         OK  x\nOK  FAILED\n',
  );
});

it('the verdict of a command comes last, in its colour', () => {
  const strongroom = join(import.meta.dirname, '../../bin/strongroom');
  const argv = ['operator', 'doctor', '--signer-url', 'http://127.0.0.1:9000'];
  const { stdout, status } = spawnSync(strongroom, argv, {
    encoding: 'utf8',
    env: { HOME: '/nowhere', FORCE_COLOR: '1' },
  });
  expect(status).toBe(1);
  expect(stdout).toContain('\nsettings  \u001B[31mFAIL\u001B[0m    --signer-url is without TLS');
  expect(stdout.trimEnd().split('\n').at(-1)).toBe(
    '\u001B[31mverdict  of 1 check: 1 FAILED, 0 with a warning\u001B[0m',
  );
});
