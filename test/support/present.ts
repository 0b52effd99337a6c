// What lies at the present of mainnet: a signer that may have lost its store to another one jumps there, and signs what
// comes after.

import { publicNetwork } from '../../signer/sign/networks.ts';
import { floorAt } from '../../signer/slashing/jump.ts';
import { block, rootOf } from './messages.ts';

const MAINNET = publicNetwork('mainnet').time;
if (MAINNET === undefined) throw new Error('the genesis time of mainnet is known');
const { genesisTimeSeconds, slotDurationMs } = MAINNET;

/** The epoch that a jump made at this time raises to: the latest that a fleet signs. */
export const latestEpoch = (now = Date.now()): number => floorAt(now, MAINNET).targetEpoch;

export const latestSlot = (now = Date.now()): number => floorAt(now, MAINNET).slot;

export function presentSlot(now = Date.now()): number {
  return Math.floor((now - genesisTimeSeconds * 1000) / slotDurationMs);
}

/** A block of the slot of this time. */
export function presentBlock(now = Date.now()): Record<string, unknown> {
  return block({ slot: presentSlot(now), body: rootOf(9) });
}
