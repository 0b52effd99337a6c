// What native code has freed goes back to the system when it is asked to: glibc keeps it otherwise, as long as anything
// lies above it in the heap.

import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { ADDON_PATH } from '../../signer/native/load.ts';
import { addonForTests } from '../support/addon.ts';

/** Too small for malloc to map each by itself. */
const PROGRAM = `
  const { readFileSync } = require('node:fs');
  const addon = require(${JSON.stringify(ADDON_PATH)});
  const residentKibibytes = () => Number(/VmRSS:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]);
  let buffers = Array.from({ length: 2000 }, () => Buffer.allocUnsafeSlow(64 * 1024).fill(1));
  globalThis.above = Buffer.allocUnsafeSlow(64 * 1024).fill(1);
  const full = residentKibibytes();
  buffers = undefined;
  gc();
  gc(); // ends the sweep of the first
  const freed = residentKibibytes();
  addon.returnFreedMemory();
  console.log(JSON.stringify({ full, freed, returned: residentKibibytes() }));
`;

const header = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
const isGlibc = header.header?.glibcVersionRuntime !== undefined;

it.skipIf(!addonForTests() || !isGlibc)('nine tenths of 125 MiB go back', () => {
  const env = { ...process.env, MALLOC_ARENA_MAX: '2' };
  const said = execFileSync(process.execPath, ['--expose-gc', '-e', PROGRAM], { encoding: 'utf8', env });
  const { full, freed, returned } = JSON.parse(said) as Record<'full' | 'freed' | 'returned', number>;
  expect(full - returned).toBeGreaterThan(0.9 * 2000 * 64);
  expect(full - freed).toBeLessThan(0.9 * 2000 * 64);
});
