// How often custody keys are asked how they are, when many want to know and the service is slow.

import { expect, it } from 'vitest';
import { CUSTODY_HEALTH_SECONDS, custodyHealth } from '../../signer/chamber/custody-health.ts';
import { testClock } from '../support/stateful-auth.ts';

const KEY = { arns: ['arn:aws:kms:eu-central-1:111122223333:key/1'] };
const OK = { ok: true } as const;

it('a key that answers slowly is not asked again before it has answered, then once in a while', async () => {
  const clock = testClock();
  const { promise, resolve } = Promise.withResolvers<typeof OK>();
  let asks = 0;
  const reachable = () => {
    asks += 1;
    return promise;
  };
  const health = custodyHealth([KEY], { reachable, clock });
  const first = health();
  clock.advance(10 * CUSTODY_HEALTH_SECONDS);
  const second = health();
  expect(asks).toBe(1);
  resolve(OK);
  expect(await first).toEqual([{ arns: KEY.arns, status: 'reachable' }]);
  expect(await second).toEqual(await first);
  await health();
  expect(asks).toBe(2);
  clock.advance(CUSTODY_HEALTH_SECONDS);
  await health();
  expect(asks).toBe(2);
});
