// The contract of every slashing backend, run on each of them. `complete` backends keep the whole history and are held
// to the complete verdicts; the others keep high-water marks and are held to the minimal ones.

import { afterEach, describe } from 'vitest';
import type { SlashingBackend } from '../../signer/slashing/types.ts';
import { MAIN_ROOT } from '../support/slashing.ts';
import { clocksContract } from './slashing-clocks.ts';
import { durabilityContract } from './slashing-durability.ts';
import type { SlashingHarness, SlashingStore } from './slashing-harness.ts';
import { historiesContract } from './slashing-histories.ts';
import { identityContract } from './slashing-identity.ts';
import { jumpsContract } from './slashing-jumps.ts';
import { movesContract } from './slashing-moves.ts';
import { neverWeakerContract } from './slashing-never-weaker.ts';
import { retirementContract } from './slashing-retirement.ts';
import { signedBlocksContract } from './slashing-signed-blocks.ts';
import { verdictsContract } from './slashing-verdicts.ts';

export interface SlashingContractOptions {
  createStore(): Promise<SlashingStore>;
  /** Held to the complete verdicts of EIP-3076, else to the minimal ones. */
  readonly complete: boolean;
  /** Several backends may have one store open at once. */
  readonly manySigners: boolean;
}

export function slashingContract(name: string, options: SlashingContractOptions): void {
  const backends: SlashingBackend[] = [];
  const stores: SlashingStore[] = [];

  const harness: SlashingHarness = {
    complete: options.complete,
    manySigners: options.manySigners,
    createStore: options.createStore,
    async freshStore() {
      const store = await options.createStore();
      stores.push(store);
      return store;
    },
    async open(store, genesisValidatorsRoot = MAIN_ROOT) {
      const backend = await store.open(genesisValidatorsRoot);
      backends.push(backend);
      return backend;
    },
    async fresh(genesisValidatorsRoot) {
      return harness.open(await harness.freshStore(), genesisValidatorsRoot);
    },
  };

  afterEach(async () => {
    for (const backend of backends.splice(0)) await backend.close();
    for (const store of stores.splice(0)) await store.remove();
  });

  describe(`slashing contract: ${name}`, () => {
    verdictsContract(harness);
    durabilityContract(harness);
    historiesContract(harness);
    neverWeakerContract(harness);
    movesContract(harness);
    retirementContract(harness);
    jumpsContract(harness);
    clocksContract(harness);
    identityContract(harness);
    signedBlocksContract(harness);
  });
}
