// Which clocks a jump believes: what the witnesses say, each alone and together.

import { expect, it } from 'vitest';
import type { Testimony, Witness } from '../../../common/observe/clock.ts';
import { publicNetwork } from '../../../signer/sign/networks.ts';
import { confirmedPresent, doubtOfClock } from '../../../signer/slashing/doubt/clock.ts';
import { floorAt } from '../../../signer/slashing/jump.ts';

const NOW = 1_800_000_000_000;
const now = () => NOW;
const HOUR = 3_600_000;

const witness = (name: string, said: Testimony | undefined): Witness => ({ name, ask: async () => said });
const kernel = (isSynchronised: boolean, offMs = 0) =>
  witness('the kernel', { time: NOW + offMs, confirms: isSynchronised });
const table = (offMs: number) => witness('the table', { time: NOW + offMs, confirms: true });
const silent = witness('the database', undefined);
const broken: Witness = { name: 'the broken one', ask: () => Promise.reject(new Error('refused')) };

const NONE = /nothing confirms/;
const BELIEVED = 'believed';

/** What is said of the clock without the option, and with it. */
it.each<readonly [string, readonly Witness[], RegExp | string, RegExp | string]>([
  ['nobody', [], NONE, BELIEVED],
  ['a kernel that a time service sets', [kernel(true)], BELIEVED, BELIEVED],
  ['a kernel that nothing sets', [kernel(false)], NONE, BELIEVED],
  ['one that is silent', [silent], NONE, BELIEVED],
  ['one that fails', [broken], NONE, BELIEVED],
  ['another clock, in whole seconds', [kernel(false), table(-900)], BELIEVED, BELIEVED],
  ['another clock, as far off as clocks may be', [table(12_000), silent], BELIEVED, BELIEVED],
  ['one that is ahead', [kernel(true), table(HOUR)], /3600 s behind the table/, /3600 s behind the table/],
  ['one that is behind', [table(-HOUR), kernel(true)], /3600 s ahead of the table/, /3600 s ahead of the table/],
  ['a kernel that goes by another time', [kernel(false, -HOUR)], /ahead of the kernel/, /ahead of the kernel/],
])('%s', async (_name, witnesses, strict, lax) => {
  for (const [needsNoWitness, expected] of [
    [false, strict],
    [true, lax],
  ] as const) {
    expect((await doubtOfClock({ now, witnesses, needsNoWitness })) ?? BELIEVED).toMatch(expected);
  }
});

it('the time of a security module needs no witness', async () => {
  expect(await doubtOfClock({ now, witnesses: undefined, needsNoWitness: false })).toBeUndefined();
});

it('a witness that never answers is silent after two seconds', async () => {
  const hanging: Witness = { name: 'the hanging one', ask: () => new Promise(() => undefined) };
  const clock = { now, witnesses: [hanging, table(0)], needsNoWitness: false };
  expect(await doubtOfClock(clock)).toBeUndefined();
});

it('the present is the floor of a confirmed clock; else it says why, and what to do without a genesis time', async () => {
  const { time } = publicNetwork('mainnet');
  if (time === undefined) throw new Error('the genesis time of mainnet is known');
  const confirmed = { now, witnesses: [table(0)], needsNoWitness: false };
  expect(await confirmedPresent(time, confirmed)()).toEqual(floorAt(NOW, time));
  const unconfirmed = confirmedPresent(time, { ...confirmed, witnesses: [silent] });
  await expect(unconfirmed()).rejects.toMatchObject({ reason: 'clock_unconfirmed', hint: expect.stringMatching(NONE) });
  await expect(confirmedPresent(undefined, confirmed)()).rejects.toMatchObject({
    reason: 'slashing_unavailable',
    hint: expect.stringContaining('custom_network.genesis_time'),
  });
});
