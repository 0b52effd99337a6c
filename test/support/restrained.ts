// Stores of tests behind restraints, or behind none.

import {
  aheadOfClock,
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

/** The floor of a start and the clock of an enclave, as restrainStore puts them together. */
export function behindLocalFloor(
  backend: SlashingBackend,
  { floor, latest }: { readonly floor: StoreFloor; readonly latest: () => StoreFloor },
): SlashingBackend {
  return aheadOfClock(
    localFloor(backend, () => floor),
    latest,
  );
}
