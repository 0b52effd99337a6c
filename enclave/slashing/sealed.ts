// Stands in for the slashing store of a replica that started sealed: there is no master key, so no row could be
// verified, and nothing may be signed. Every call is refused; the real store is not touched, so nothing is said of its
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
