// No slashing protection at all: every vote and every block is called safe and nothing is recorded. It exists for test
// networks, behind `--allow-unsafe-noop-anti-slashing`; the caller has checked the flag. The process remembers tenures,
// for a deletion that looks at them; it refuses nothing.

import { NO_INCARNATION } from '../signer/slashing/incarnation.ts';
import type { PublicKeyHex, SlashingBackend, ValidatorHistory } from '../signer/slashing/types.ts';
import { begun, ended, isEndedTenure } from '../signer/tenure.ts';

/** @param genesisValidatorsRoot `0x` and 64 hex digits, for the status only */
export function unsafeNoopBackend(genesisValidatorsRoot: string): SlashingBackend {
  const tenures = new Map<PublicKeyHex, number>();
  return {
    name: 'noop',
    batchLimits: { maxMessages: 512, maxInFlight: 1, minIntervalMs: 0 },
    checkAndRecord: async (messages) => messages.map(() => ({ kind: 'safe', repeat: false })),
    signedBlockRoot: async () => null,
    async checkHealth() {},
    identity: async () => NO_STORE,
    incarnate: async () => true,
    jump: async () => NO_STORE,
    async tenures(publicKeys) {
      return new Map([...tenures].filter(([publicKey]) => publicKeys?.includes(publicKey) ?? true));
    },
    async endTenures(publicKeys) {
      for (const publicKey of publicKeys) tenures.set(publicKey, ended(tenures.get(publicKey) ?? 0));
      return new Map(publicKeys.map((publicKey) => [publicKey, tenures.get(publicKey) ?? 0]));
    },
    async beginTenures(from) {
      const starting = [...from].filter(
        ([publicKey, tenure]) => isEndedTenure(tenure) && tenures.get(publicKey) === tenure,
      );
      for (const [publicKey, tenure] of starting) tenures.set(publicKey, begun(tenure));
      return new Map(starting.map(([publicKey, tenure]) => [publicKey, begun(tenure)]));
    },
    marksBeyond: async () => new Map(),
    startAfresh: async () => true,
    /** Reads the file, so that a malformed one is refused, and keeps nothing of it. */
    async importHistories(histories: AsyncIterable<ValidatorHistory>) {
      for await (const _history of histories);
      return { validators: 0, blocks: 0, attestations: 0, alreadyPresent: 0, conflicts: 0, conflicting: [] };
    },
    async *exportHistories() {},
    pruneStep: async () => 0,
    status: async () => ({ validators: 0, blocks: 0, attestations: 0, genesisValidatorsRoot }),
    async close() {},
  };
}

const NO_STORE = { id: '0'.repeat(32), incarnation: NO_INCARNATION, floor: null };
