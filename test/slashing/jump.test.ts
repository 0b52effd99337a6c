// What a jump raises a store to.

import { describe, expect, it } from 'vitest';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../../signer/slashing/future.ts';
import { floorAt } from '../../signer/slashing/jump.ts';

const MAINNET = publicNetwork('mainnet').time;
/** Epoch 400,000 of mainnet begins. */
const BEGIN = (1_606_824_023 + 400_000 * 384) * 1000;

function mainnet() {
  if (MAINNET === undefined) throw new Error('the genesis time of mainnet is known');
  return MAINNET;
}

describe('the floor of a jump', () => {
  it('is the slot and epoch of the present, the source the epoch before', () => {
    expect(floorAt(BEGIN + 60_000, mainnet())).toEqual({
      slot: 400_000 * 32 + 6,
      targetEpoch: 400_000,
      sourceEpoch: 399_999,
    });
  });

  it('lies ahead by the tolerance for clocks', () => {
    const tolerance = CLOCK_TOLERANCE_SECONDS * 1000;
    expect(floorAt(BEGIN - tolerance, mainnet()).targetEpoch).toBe(400_000);
    expect(floorAt(BEGIN - tolerance - 1, mainnet()).targetEpoch).toBe(399_999);
  });

  it('refuses nothing before genesis', () => {
    expect(floorAt(0, mainnet())).toEqual({ slot: 0, targetEpoch: 0, sourceEpoch: 0 });
  });
});
