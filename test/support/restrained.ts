// Stores of tests behind restraints, or behind none.

import {
  aheadOfClock,
  type Decisions,
  decided,
  type Hindrance,
  localFloor,
  type RestrainedStore,
  restrainStore,
} from '../../signer/slashing/restraints.ts';
import type { SlashingBackend, StoreFloor } from '../../signer/slashing/types.ts';

/** Nothing is restrained, unless the question is given. */
export function unrestrained(
  backend: SlashingBackend,
  hindrance: Hindrance = () => undefined,
  close?: SlashingBackend['close'],
): RestrainedStore {
  return restrainStore(backend, { hindrance, ...(close === undefined ? {} : { close }) });
}

/** The methods of the store, bound, for whoever replaces some: a spread of a class has none. */
export function forwardedStore(backend: SlashingBackend): SlashingBackend {
  return decided(backend, FORWARDS);
}

/** The floor of a start and the clock of an enclave, as restrainStore puts them together. */
export function behindLocalFloor(
  backend: SlashingBackend,
  { floor, latest }: { readonly floor: StoreFloor; readonly latest: () => StoreFloor },
): SlashingBackend {
  const floored = decided(backend, localFloor(backend, floor));
  return decided(floored, aheadOfClock(floored, latest));
}

const FORWARDS: Decisions = {
  checkAndRecord: 'forwards',
  checkHealth: 'forwards',
  identity: 'forwards',
  incarnate: 'forwards',
  jump: 'forwards',
  highestMarks: 'forwards',
  tenures: 'forwards',
  endTenures: 'forwards',
  beginTenures: 'forwards',
  signedBlockRoot: 'forwards',
  importHistories: 'forwards',
  exportHistories: 'forwards',
  pruneStep: 'forwards',
  status: 'forwards',
  close: 'forwards',
};
