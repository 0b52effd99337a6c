// The permits of the signing path as the configuration asks for them.

import { expect, it } from 'vitest';
import { openPermits } from '../../enclave/boot/serving.ts';
import type { Permits } from '../../enclave/signing/permits.ts';
import { loadGood } from '../config/loading.ts';
import { recordingLog } from '../support/recording-log.ts';

const never = new AbortController().signal;

function permitsOf(priority: string): { readonly permits: Permits; readonly warnings: readonly string[] } {
  const log = recordingLog();
  const config = loadGood({ yaml: `signing: {max_concurrent_jobs: 60, priority: ${priority}}` });
  const permits = openPermits(config, { logger: { module: () => log } });
  return { permits, warnings: log.lines.filter(({ level }) => level === 'warn').map(({ message }) => message) };
}

function normalPermits(permits: Permits): number {
  let taken = 0;
  while (permits.acquire('normal', never) === undefined) taken += 1;
  return taken;
}

it('a priority pool without operations is said to be for nothing, and takes no permits from the others', () => {
  const { permits, warnings } = permitsOf('{enabled: true}');
  expect(warnings).toEqual([expect.stringContaining('nothing has priority')]);
  expect(normalPermits(permits)).toBe(60);
});

it('a priority pool with operations gets its permits without a word', () => {
  const { permits, warnings } = permitsOf('{enabled: true, operations: [BLOCK_V2]}');
  expect(warnings).toEqual([]);
  expect(normalPermits(permits)).toBe(10);
});
