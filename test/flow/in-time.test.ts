// Promises that belong to another, and may never settle.

import { expect, it } from 'vitest';
import { inTime, renewedWhenLate } from '../../common/flow/in-time.ts';

const never = () => new Promise<never>(() => undefined);
const late = (): never => {
  throw new Error('late');
};

it('what comes in time is the answer, and so is a failure', async () => {
  await expect(inTime(Promise.resolve(7), 60_000, late)).resolves.toBe(7);
  await expect(inTime(Promise.reject(new Error('no')), 60_000, late)).rejects.toThrow('no');
});

it('what never comes is answered for when the time is over', async () => {
  await expect(inTime(never(), 1, () => 'none')).resolves.toBe('none');
  await expect(inTime(never(), 1, late)).rejects.toThrow('late');
});

it('a provider that is late is replaced for the next call, once for all who waited', async () => {
  let made = 0;
  const provider = renewedWhenLate(
    () => {
      made += 1;
      const isFirst = made === 1;
      return (name: string) => (isFirst ? never() : Promise.resolve(`${name} of ${made}`));
    },
    1,
    late,
  );
  const first = await Promise.allSettled([provider('a'), provider('b'), provider('c')]);
  expect(first.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect(await provider('a')).toBe('a of 2');
  expect(await provider('b')).toBe('b of 2');
});
