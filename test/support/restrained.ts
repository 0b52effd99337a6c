// Stores of tests behind restraints, or behind none.

import {
  aheadOfClock,
  type Decisions,
  decided,
  FORWARDS,
  type Hindrance,
  localFloor,
  type RestrainedStore,
  restrainStore,
} from '../../signer/slashing/restraints.ts';
import type { SlashingBackend, StoreFloor } from '../../signer/slashing/types.ts';

/** Nothing is restrained, unless the question is given. */
export function unrestrained(
  backend: SlashingBackend,
  hindrance?: Hindrance,
  close?: SlashingBackend['close'],
): RestrainedStore {
  return restrainStore(backend, { hindrance, ...(close === undefined ? {} : { close }) });
}

/** The methods of the store, bound, for whoever replaces some: a spread of a class has none. */
export function forwardedStore(backend: SlashingBackend): SlashingBackend {
  return decided(backend, ALL_FORWARD);
}

/** The floor of a start and the clock of an enclave, as restrainStore puts them together. */
export function behindLocalFloor(
  backend: SlashingBackend,
  { floor, latest }: { readonly floor: StoreFloor; readonly latest: () => StoreFloor },
): SlashingBackend {
  const floored = decided(backend, localFloor(backend, floor));
  return decided(floored, aheadOfClock(floored, latest));
}

const ALL_FORWARD: Decisions = {
  ...FORWARDS,
  checkAndRecord: 'forwards',
  identity: 'forwards',
  exportHistories: 'forwards',
};
