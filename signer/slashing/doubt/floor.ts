// The floor of a store as this process saw it last, to tell a floor of the future from what keys have signed. The store
// itself judges by what it holds.

import type { SlashingBackend, StoreFloor, StoreIdentity } from '../types.ts';

export function floorWatch(store: SlashingBackend) {
  let seen: StoreFloor | null = null;
  const noting = async (asked: Promise<StoreIdentity>): Promise<StoreIdentity> => {
    const identity = await asked;
    seen = identity.floor;
    return identity;
  };
  return {
    store: {
      ...store,
      identity: () => noting(store.identity()),
      jump: (...given) => noting(store.jump(...given)),
    } satisfies SlashingBackend,
    get floor(): StoreFloor | null {
      return seen;
    },
  };
}
