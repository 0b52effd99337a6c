// The permits of the signing path as the configuration asks for them.

import { expect, it } from 'vitest';
import { openPermits } from '../../signer/boot/boot.ts';
import { loadGood } from '../config/loading.ts';

const never = new AbortController().signal;

it.each([
  ['no operations takes no permits from the others', '{enabled: true}', 60],
  ['operations gets its permits', '{enabled: true, operations: [BLOCK_V2]}', 10],
  ['operations that is not enabled is none', '{enabled: false, operations: [BLOCK_V2]}', 60],
])('a priority pool with %s', (_what, priority, normal) => {
  const permits = openPermits(loadGood({ yaml: `signing: {max_concurrent_jobs: 60, priority: ${priority}}` }).signing);
  let taken = 0;
  while (permits.acquire('normal', never) === undefined && taken < 100) taken += 1;
  expect(taken).toBe(normal);
});
