// No slashing protection at all: every vote and every block is called safe and nothing is recorded. It exists for
// test networks, behind `--allow-unsafe-noop-anti-slashing`; whoever calls this has checked the flag. Which keys were
// retired is remembered by the process, for whoever deletes a key and looks; it refuses nothing.

import { NO_MARKS } from './history/rules.ts';
import type {
  HighWaterMarks,
  PublicKeyHex,
  SlashableMessage,
  SlashingBackend,
  ValidatorHistory,
  Verdict,
} from './types.ts';

/** @param genesisValidatorsRoot `0x` and 64 hex digits, for the status only */
export function unsafeNoopBackend(genesisValidatorsRoot: string): SlashingBackend {
  const retired = new Set<PublicKeyHex>();
  return {
    name: 'noop',
    batchLimits: { maxMessages: 512, maxInFlight: 1, minIntervalMs: 0 },
    async checkAndRecord(
      messages: readonly SlashableMessage[],
      _floors: readonly HighWaterMarks[],
    ): Promise<Verdict[]> {
      return messages.map(() => ({ kind: 'safe', repeat: false }));
    },
    async checkHealth() {},
    async identity() {
      return { id: NO_STORE, revision: 0, floor: null };
    },
    async advance() {
      return 0;
    },
    async jump() {
      return { id: NO_STORE, revision: 0, floor: null };
    },
    async highestMarks() {
      return NO_MARKS;
    },
    async retire(publicKeys) {
      for (const publicKey of publicKeys) retired.add(publicKey);
    },
    async reinstate(publicKeys) {
      return publicKeys.filter((publicKey) => retired.delete(publicKey));
    },
    async retiredKeys(publicKeys) {
      return [...retired].filter((publicKey) => publicKeys?.includes(publicKey) ?? true);
    },
    /** Reads the file, so that a malformed one is refused, and keeps nothing of it. */
    async importHistories(histories: AsyncIterable<ValidatorHistory>) {
      for await (const _history of histories);
      return { validators: 0, blocks: 0, attestations: 0, alreadyPresent: 0, conflicts: 0, conflicting: [] };
    },
    async *exportHistories() {},
    async pruneStep() {
      return 0;
    },
    async status() {
      return { validators: 0, blocks: 0, attestations: 0, genesisValidatorsRoot };
    },
    async close() {},
  };
}

const NO_STORE = '0'.repeat(32);
