// The integrity codes of a complete store's rows, and the multiset hash by which a head knows its entries.
//
// Every entry has one keyed hash of 32 bytes. The first half is its code, stored beside it. The second half is its
// element, stored nowhere. The digest of a history is the XOR of its elements, stored under a mask from a fresh nonce
// (MSet-XOR-Hash: Clarke, Devadas, van Dijk, Gassend, Suh, ASIACRYPT 2003, section 4). So a person who can write rows
// but has no key cannot find another set of rows with the digest of the head: the codes do not reveal the elements, nor
// do two digests, because no mask is used twice. Without a key all of this is a checksum against accidents.

import { strict as assert } from 'node:assert';
import { randomFillSync } from 'node:crypto';
import type { BlockEntry, HighWaterMarks, SlashableMessage, VoteEntry } from '../types.ts';
import { INTEGRITY_CODE_BYTES, type IntegrityField, NO_PUBLIC_KEY, type RowIntegrity } from './integrity.ts';
import { type EntrySet, higherMarks, type KeyState, marksOf, type PrunedBelow } from './rules.ts';

export const DIGEST_BYTES = 16;
const NONCE_BYTES = 16;

export interface HeadSeal {
  /** Empty without a key: there is nothing to hide then. */
  readonly nonce: Uint8Array;
  readonly blockDigest: Uint8Array;
  readonly attestationDigest: Uint8Array;
  readonly code: Uint8Array;
}

export interface EntryCodes {
  /** 16 bytes, stored beside the entry. */
  readonly code: Uint8Array;
  /** 16 bytes, stored nowhere. */
  readonly element: Uint8Array;
}

export type HistoryCodes = ReturnType<typeof historyCodes>;

export function historyCodes(integrity: RowIntegrity) {
  const isKeyed = integrity.kind === 'hmac';

  const entryCodes = (domain: string, publicKey: Uint8Array, fields: readonly IntegrityField[]): EntryCodes => {
    const hash = integrity.hash(domain, publicKey, fields);
    return { code: hash.subarray(0, INTEGRITY_CODE_BYTES), element: hash.subarray(INTEGRITY_CODE_BYTES) };
  };
  const masksOf = (publicKey: Uint8Array, nonce: Uint8Array): Uint8Array | undefined =>
    isKeyed ? integrity.mask(publicKey, nonce) : undefined;

  return {
    block: (publicKey: Uint8Array, { slot, signingRoot }: BlockEntry) =>
      entryCodes('block', publicKey, [slot, signingRoot]),
    attestation: (publicKey: Uint8Array, { sourceEpoch, targetEpoch, signingRoot }: VoteEntry) =>
      entryCodes('attestation', publicKey, [sourceEpoch, targetEpoch, signingRoot]),

    sealHead(publicKey: Uint8Array, state: KeyState): HeadSeal {
      const nonce = isKeyed ? freshNonce() : NO_NONCE;
      const masks = masksOf(publicKey, nonce);
      const blockDigest = masked(state.blocks.digest, masks, 0);
      const attestationDigest = masked(state.attestations.digest, masks, DIGEST_BYTES);
      const fields: IntegrityField[] = headNumbers(state);
      fields.push(nonce, blockDigest, attestationDigest);
      return { nonce, blockDigest, attestationDigest, code: integrity.code(HEAD_DOMAIN, publicKey, fields) };
    },

    /** @param numbers as `headNumbers` has them; nothing of the row is believed yet @returns undefined: a wrong code */
    openHead(publicKey: Uint8Array, numbers: readonly (number | null)[], seal: HeadSeal): KeyState | undefined {
      if (isKeyed && seal.nonce.length !== NONCE_BYTES) return undefined;
      const fields = [...numbers, seal.nonce, seal.blockDigest, seal.attestationDigest];
      for (const field of fields) if (!isPossible(field)) return undefined;
      if (!integrity.verify(seal.code, HEAD_DOMAIN, publicKey, fields)) return undefined;
      const masks = masksOf(publicKey, seal.nonce);
      const at = (place: number): number | null => numbers[place] ?? null;
      return {
        highest: { blockSlot: at(0), sourceEpoch: at(1), targetEpoch: at(2) },
        lowWater: { slot: at(3), sourceEpoch: at(4), targetEpoch: at(5) },
        prunedBelow: { slot: at(6), targetEpoch: at(7) },
        tenure: at(8) ?? 0,
        blocks: { count: at(9) ?? 0, digest: masked(seal.blockDigest, masks, 0) },
        attestations: { count: at(10) ?? 0, digest: masked(seal.attestationDigest, masks, DIGEST_BYTES) },
      };
    },

    storeCode: (fields: readonly IntegrityField[]) => integrity.code('store v2', NO_PUBLIC_KEY, fields),
  };
}

export type Coded<Entry> = Entry & EntryCodes;

/** Blocks, or votes: what a store keeps of them in a table of their own. */
export interface EntryKind<Entry extends BlockEntry | VoteEntry> {
  readonly noun: 'block' | 'attestation';
  /** The table, and the member of a head and of a history. */
  readonly name: 'blocks' | 'attestations';
  /** The columns of an entry's place, in the order of the index. */
  readonly columns: readonly string[];
  readonly placeOf: (entry: Entry) => readonly number[];
  readonly entryOf: (signingRoot: Uint8Array | null, ...place: number[]) => Entry;
  readonly codesOf: (codes: HistoryCodes, publicKey: Uint8Array, entry: Entry) => EntryCodes;
  /** The marks for the first column. */
  readonly highest: keyof HighWaterMarks;
  readonly prunedBelow: keyof PrunedBelow;
}

export const BLOCKS: EntryKind<BlockEntry> = {
  noun: 'block',
  name: 'blocks',
  columns: ['slot'],
  placeOf: ({ slot }) => [slot],
  entryOf: (signingRoot, slot: number) => ({ slot, signingRoot }),
  codesOf: (codes, publicKey, block) => codes.block(publicKey, block),
  highest: 'blockSlot',
  prunedBelow: 'slot',
};

export const VOTES: EntryKind<VoteEntry> = {
  noun: 'attestation',
  name: 'attestations',
  columns: ['target_epoch', 'source_epoch'],
  placeOf: ({ targetEpoch, sourceEpoch }) => [targetEpoch, sourceEpoch],
  entryOf: (signingRoot, targetEpoch: number, sourceEpoch: number) => ({ sourceEpoch, targetEpoch, signingRoot }),
  codesOf: (codes, publicKey, vote) => codes.attestation(publicKey, vote),
  highest: 'targetEpoch',
  prunedBelow: 'targetEpoch',
};

/** In the order of the code; stores keep them under names of their own. */
export function headNumbers({
  highest,
  lowWater,
  prunedBelow,
  tenure,
  blocks,
  attestations,
}: KeyState): (number | null)[] {
  return [
    highest.blockSlot,
    highest.sourceEpoch,
    highest.targetEpoch,
    lowWater.slot,
    lowWater.sourceEpoch,
    lowWater.targetEpoch,
    prunedBelow.slot,
    prunedBelow.targetEpoch,
    tenure,
    blocks.count,
    attestations.count,
  ];
}

export function withEntry({ count, digest }: EntrySet, { element }: EntryCodes): EntrySet {
  return { count: count + 1, digest: xor(digest, element, 0) };
}

export function withoutEntry({ count, digest }: EntrySet, { element }: EntryCodes): EntrySet {
  assert(count > 0, 'an entry is taken from a set that has one');
  return { count: count - 1, digest: xor(digest, element, 0) };
}

/** Once a safe message is recorded. A first message sets its low-water mark. */
export function stateAfter(
  state: KeyState,
  message: SlashableMessage,
  publicKey: Uint8Array,
  codes: HistoryCodes,
): { readonly state: KeyState; readonly codes: EntryCodes } {
  const own = marksOf(message);
  const { lowWater } = state;
  const isBlock = message.kind === 'block';
  const entryCodes = isBlock ? codes.block(publicKey, message) : codes.attestation(publicKey, message);
  const set = isBlock ? 'blocks' : 'attestations';
  return {
    state: {
      ...state,
      highest: higherMarks(state.highest, own),
      lowWater: {
        slot: lowWater.slot ?? own.blockSlot,
        sourceEpoch: lowWater.sourceEpoch ?? own.sourceEpoch,
        targetEpoch: lowWater.targetEpoch ?? own.targetEpoch,
      },
      [set]: withEntry(state[set], entryCodes),
    },
    codes: entryCodes,
  };
}

/** For a store that reads a set in steps: the elements need not be kept. */
export function entrySum() {
  const digest = new Uint8Array(DIGEST_BYTES);
  let count = 0;
  return {
    add(element: Uint8Array): void {
      count += 1;
      for (let at = 0; at < DIGEST_BYTES; at++) digest[at] = (digest[at] ?? 0) ^ (element[at] ?? 0);
    },
    isWhole: (set: EntrySet) => count === set.count && Buffer.compare(digest, set.digest) === 0,
    set: (): EntrySet => ({ count, digest: Uint8Array.from(digest) }),
  };
}

const HEAD_DOMAIN = 'head v2';
const NO_NONCE = new Uint8Array(0);

/** Asked for each, the system's randomness would cost as much as the code. */
const NONCE_POOL = new Uint8Array(256 * NONCE_BYTES);
let nonceAt = NONCE_POOL.length;

function freshNonce(): Uint8Array {
  if (nonceAt === NONCE_POOL.length) {
    randomFillSync(NONCE_POOL);
    nonceAt = 0;
  }
  nonceAt += NONCE_BYTES;
  return NONCE_POOL.slice(nonceAt - NONCE_BYTES, nonceAt);
}

/** A number that this program never wrote has no code. */
export function isPossible(field: IntegrityField): boolean {
  return typeof field !== 'number' || (Number.isSafeInteger(field) && field >= 0);
}

function masked(digest: Uint8Array, masks: Uint8Array | undefined, offset: number): Uint8Array {
  return masks === undefined ? digest : xor(digest, masks, offset);
}

/** A loop: `map` would call a function for each byte. */
function xor(one: Uint8Array, other: Uint8Array, offset: number): Uint8Array {
  const result = new Uint8Array(DIGEST_BYTES);
  for (let at = 0; at < DIGEST_BYTES; at++) result[at] = (one[at] ?? 0) ^ (other[offset + at] ?? 0);
  return result;
}
