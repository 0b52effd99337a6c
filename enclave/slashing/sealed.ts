// Replaces the slashing store in a replica that started sealed. Without a master key, no row can be verified, and
// nothing may be signed. It refuses every call. It does not touch the real store, so it says nothing about the store's
// health.

import { SignerError } from '../api/errors.ts';
import type { SlashingBackend } from './types.ts';

export function sealedBackend(name: SlashingBackend['name']): SlashingBackend {
  return {
    name,
    batchLimits: { maxMessages: 1, maxInFlight: 1, minIntervalMs: 0 },
    checkAndRecord: refuse,
    checkHealth: refuse,
    identity: refuse,
    advance: refuse,
    jump: refuse,
    highestMarks: refuse,
    retire: refuse,
    reinstate: refuse,
    retiredKeys: refuse,
    importHistories: refuse,
    exportHistories: () => ({ [Symbol.asyncIterator]: () => ({ next: refuse }) }),
    pruneStep: refuse,
    status: refuse,
    close: async () => {},
  };
}

async function refuse(): Promise<never> {
  throw new SignerError('sealed');
}
