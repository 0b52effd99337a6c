// The contract of slashing backends on the store in memory: what tests rest on it holds of the real ones.

import { slashingContract } from '../contract/slashing.ts';
import { type MemoryRecords, memoryBackend, newMemoryRecords } from './slashing-memory.ts';

slashingContract('memory', {
  complete: true,
  manySigners: true,
  createStore: async () => {
    let records: MemoryRecords | undefined;
    return {
      async open(genesisValidatorsRoot) {
        records ??= newMemoryRecords(genesisValidatorsRoot);
        if (records.genesisValidatorsRoot === genesisValidatorsRoot) return memoryBackend(records);
        throw new Error(
          `the store is of another network: its genesis validators root is ${records.genesisValidatorsRoot}`,
        );
      },
      async remove() {},
    };
  },
});
