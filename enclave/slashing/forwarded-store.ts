// A store that does what another one does, for whoever replaces some of its methods.

import type { SlashingBackend } from './types.ts';

/** The methods of the store, bound: implementations are classes and records, and a spread of a class has no methods. */
export function forwardedStore(backend: SlashingBackend): SlashingBackend {
  return {
    name: backend.name,
    batchLimits: backend.batchLimits,
    checkAndRecord: (messages, floors) => backend.checkAndRecord(messages, floors),
    checkHealth: (signal) => backend.checkHealth(signal),
    identity: () => backend.identity(),
    advance: (atLeast) => backend.advance(atLeast),
    jump: (floor, options) => backend.jump(floor, options),
    highestMarks: () => backend.highestMarks(),
    retire: (publicKeys) => backend.retire(publicKeys),
    reinstate: (publicKeys) => backend.reinstate(publicKeys),
    retiredKeys: (publicKeys) => backend.retiredKeys(publicKeys),
    importHistories: (histories, options) => backend.importHistories(histories, options),
    exportHistories: (publicKeys) => backend.exportHistories(publicKeys),
    pruneStep: (maxEntries) => backend.pruneStep(maxEntries),
    status: () => backend.status(),
    close: (waitMs) => backend.close(waitMs),
  };
}
