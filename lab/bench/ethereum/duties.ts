// What the validators of a whole network ask their signer for in one slot of Gloas, and when: consensus-specs,
// "Time parameters" of specs/gloas. Selection proofs and preferences are not here: clients ask for them epochs ahead.

import { ssz } from '@lodestar/types';
import { encodeHex } from '../../../common/formats/hex.ts';
import { publicNetwork } from '../../../signer/sign/networks.ts';
import { expectedRoot } from '../../../test/expected/expected-root.ts';
import { messageAt } from '../../../test/support/fork-messages.ts';
import type { TestKey } from '../../../test/support/requests.ts';

export const SLOTS_PER_EPOCH = 32;
export const GLOAS_EPOCH = 353_024;
const NETWORK = publicNetwork('sepolia');
const FORKS = { previous: 'fulu', current: 'gloas', epoch: GLOAS_EPOCH } as const;
/** Of mainnet's preset; with few keys all that there are. */
const [SYNC_COMMITTEE, PAYLOAD_COMMITTEE, AGGREGATORS, CONTRIBUTORS] = [512, 512, 1024, 64];

export type Kind = 'proposal' | 'vote' | 'sync message' | 'aggregate' | 'contribution' | 'payload vote';
type Message = Record<string, unknown>;

/** Requests of one kind that become due at one time. */
export interface Duty {
  readonly kind: Kind;
  /** Share of the slot. */
  readonly at: number;
  readonly message: Message;
  readonly keys: readonly TestKey[];
  /** Many keys sign the same, so that a batch may carry it. */
  readonly isShared: boolean;
  /** Asked by the same key as soon as the one before is answered. */
  readonly following?: readonly Message[];
}

export function dutiesOf(keys: readonly TestKey[], slot: number): Duty[] {
  const voters = votersOf(keys, slot);
  const first = (count: number): readonly TestKey[] => voters.slice(0, count);
  // A new proposer, sync committee and payload committee each slot, so that no key is asked twice for a slot.
  return [
    { ...at('proposal', 0, slot, 'RANDAO_REVEAL', first(1)), isShared: false, following: proposalOf(slot) },
    at('vote', 1 / 4, slot, 'ATTESTATION', voters),
    at('sync message', 1 / 4, slot, 'SYNC_COMMITTEE_MESSAGE', first(SYNC_COMMITTEE)),
    { ...at('aggregate', 1 / 2, slot, 'AGGREGATE_AND_PROOF_V2', first(AGGREGATORS)), isShared: false },
    {
      ...at('contribution', 1 / 2, slot, 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF', first(CONTRIBUTORS)),
      isShared: false,
    },
    at('payload vote', 3 / 4, slot, 'PAYLOAD_ATTESTATION_MESSAGE', first(PAYLOAD_COMMITTEE)),
  ];
}

/** A thirty-second of the keys: each votes once an epoch. */
export function votersOf(keys: readonly TestKey[], slot: number): readonly TestKey[] {
  const size = Math.ceil(keys.length / SLOTS_PER_EPOCH);
  const place = slot % SLOTS_PER_EPOCH;
  return keys.slice(place * size, (place + 1) * size);
}

/** Without the signer's code. */
export function signingRootOf(message: Message): Uint8Array {
  return expectedRoot({ ...message, type: String(message['type']) }, CHAIN);
}

const CHAIN = {
  genesisValidatorsRoot: encodeHex(NETWORK.genesisValidatorsRoot),
  slotsPerEpoch: SLOTS_PER_EPOCH,
  forks: NETWORK.forks.map(({ name, version, epoch }) => ({ name, version: encodeHex(version), epoch })),
};

function at(kind: Kind, share: number, slot: number, type: string, keys: readonly TestKey[]): Duty {
  return { kind, at: share, message: messageOf(type, slot), keys, isShared: true };
}

function messageOf(type: string, slot: number): Message {
  const stated = type === 'AGGREGATE_AND_PROOF_V2' ? { stated: 'GLOAS' } : {};
  return messageAt(NETWORK, type, slot, { ...FORKS, ...stated });
}

/** The block, and the envelope that its proposer builds itself. */
function proposalOf(slot: number): Message[] {
  const block = messageOf('BLOCK_V2', slot);
  const header = (block['beacon_block'] as { readonly block_header: unknown }).block_header;
  const type = ssz.phase0.BeaconBlockHeader;
  const root = encodeHex(type.hashTreeRoot(type.fromJson(header)));
  const message = messageOf('EXECUTION_PAYLOAD_ENVELOPE', slot);
  const envelope = message['execution_payload_envelope'] as object;
  return [block, { ...message, execution_payload_envelope: { ...envelope, beacon_block_root: root } }];
}
