// The integrity codes of a complete store's rows, and the multiset hash by which a head knows its entries.
//
// Every entry has one keyed hash of 32 bytes. The first half is its code, stored beside it. The second half is its
// element, stored nowhere. The digest of a history is the XOR of its elements, stored under a mask from a fresh nonce
// (MSet-XOR-Hash: Clarke, Devadas, van Dijk, Gassend, Suh, ASIACRYPT 2003, section 4). So a person who can write rows
// but has no key cannot find another set of rows with the digest of the head: the codes do not reveal the elements, nor
// do two digests, because no mask is used twice. Without a key all of this is a checksum against accidents.

import { strict as assert } from 'node:assert';
import { randomFillSync } from 'node:crypto';
import type { SlashableMessage } from '../types.ts';
import { INTEGRITY_CODE_BYTES, type IntegrityField, type RowIntegrity } from './integrity.ts';
import { type BlockEntry, type EntrySet, type KeyState, raiseMarks, type VoteEntry } from './rules.ts';

export const DIGEST_BYTES = 16;
const NONCE_BYTES = 16;

export interface HeadSeal {
  /** Empty without a key: there is nothing to hide then. */
  readonly nonce: Uint8Array;
  /** Under the mask of the nonce. */
  readonly blockDigest: Uint8Array;
  readonly attestationDigest: Uint8Array;
  readonly code: Uint8Array;
}

/** As it was read: nothing of it is believed yet. Digests in `state` are not set. */
export interface UncheckedHead {
  readonly state: Omit<KeyState, 'blocks' | 'attestations'>;
  readonly blockCount: number;
  readonly attestationCount: number;
  readonly seal: HeadSeal;
}

export interface EntryCodes {
  /** 16 bytes, stored beside the entry. */
  readonly code: Uint8Array;
  /** 16 bytes, stored nowhere. */
  readonly element: Uint8Array;
}

export interface HistoryCodes {
  block(publicKey: Uint8Array, entry: BlockEntry): EntryCodes;
  attestation(publicKey: Uint8Array, entry: VoteEntry): EntryCodes;
  sealHead(publicKey: Uint8Array, state: KeyState): HeadSeal;
  /** Undefined when the head fails its code. */
  openHead(publicKey: Uint8Array, head: UncheckedHead): KeyState | undefined;
  /** Of a row that is not of one key: 16 bytes. */
  storeCode(fields: readonly IntegrityField[]): Uint8Array;
}

export function historyCodes(integrity: RowIntegrity): HistoryCodes {
  const isKeyed = integrity.kind === 'hmac';

  const entryCodes = (domain: string, publicKey: Uint8Array, fields: readonly IntegrityField[]): EntryCodes => {
    const hash = integrity.hash(domain, publicKey, fields);
    return { code: hash.subarray(0, INTEGRITY_CODE_BYTES), element: hash.subarray(INTEGRITY_CODE_BYTES) };
  };
  const masksOf = (publicKey: Uint8Array, nonce: Uint8Array): Uint8Array | undefined =>
    isKeyed ? integrity.mask(publicKey, nonce) : undefined;

  return {
    block: (publicKey, { slot, signingRoot }) => entryCodes('block', publicKey, [slot, signingRoot]),
    attestation: (publicKey, { sourceEpoch, targetEpoch, signingRoot }) =>
      entryCodes('attestation', publicKey, [sourceEpoch, targetEpoch, signingRoot]),

    sealHead(publicKey, state) {
      const nonce = isKeyed ? freshNonce() : NO_NONCE;
      const masks = masksOf(publicKey, nonce);
      const blockDigest = masked(state.blocks.digest, masks, 0);
      const attestationDigest = masked(state.attestations.digest, masks, DIGEST_BYTES);
      const seal = { nonce, blockDigest, attestationDigest };
      const fields = headFields(state, state.blocks.count, state.attestations.count, seal);
      return { nonce, blockDigest, attestationDigest, code: integrity.code(HEAD_DOMAIN, publicKey, fields) };
    },

    openHead(publicKey, { state, blockCount, attestationCount, seal }) {
      if (isKeyed && seal.nonce.length !== NONCE_BYTES) return undefined;
      const fields = headFields(state, blockCount, attestationCount, seal);
      for (const field of fields) if (!isPossible(field)) return undefined;
      if (!integrity.verify(seal.code, HEAD_DOMAIN, publicKey, fields)) return undefined;
      const masks = masksOf(publicKey, seal.nonce);
      return {
        highest: state.highest,
        lowWater: state.lowWater,
        prunedBelow: state.prunedBelow,
        tenure: state.tenure,
        blocks: { count: blockCount, digest: masked(seal.blockDigest, masks, 0) },
        attestations: { count: attestationCount, digest: masked(seal.attestationDigest, masks, DIGEST_BYTES) },
      };
    },

    storeCode: (fields) => integrity.code('store v2', NO_PUBLIC_KEY, fields),
  };
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
  const highest = raiseMarks(state.highest, message);
  const { lowWater } = state;
  if (message.kind === 'block') {
    const entryCodes = codes.block(publicKey, message);
    const blocks = withEntry(state.blocks, entryCodes);
    const slot = lowWater.slot ?? message.slot;
    return { state: { ...state, highest, blocks, lowWater: { ...lowWater, slot } }, codes: entryCodes };
  }
  const entryCodes = codes.attestation(publicKey, message);
  const attestations = withEntry(state.attestations, entryCodes);
  const marks = {
    slot: lowWater.slot,
    sourceEpoch: lowWater.sourceEpoch ?? message.sourceEpoch,
    targetEpoch: lowWater.targetEpoch ?? message.targetEpoch,
  };
  return { state: { ...state, highest, attestations, lowWater: marks }, codes: entryCodes };
}

/** For a store that reads a set in steps: the elements need not be kept. */
export interface EntrySum {
  add(element: Uint8Array): void;
  isWhole(set: EntrySet): boolean;
  set(): EntrySet;
}

export function entrySum(): EntrySum {
  const digest = new Uint8Array(DIGEST_BYTES);
  let count = 0;
  return {
    add(element) {
      count += 1;
      for (let at = 0; at < DIGEST_BYTES; at++) digest[at] = (digest[at] ?? 0) ^ (element[at] ?? 0);
    },
    isWhole: (set) => count === set.count && Buffer.compare(digest, set.digest) === 0,
    set: () => ({ count, digest: Uint8Array.from(digest) }),
  };
}

const HEAD_DOMAIN = 'head v2';
const NO_NONCE = new Uint8Array(0);
const NO_PUBLIC_KEY = new Uint8Array(48);

/** In one list, without others on the way: done twice for each message that is signed. */
function headFields(
  { highest, lowWater, prunedBelow, tenure }: UncheckedHead['state'],
  blockCount: number,
  attestationCount: number,
  { nonce, blockDigest, attestationDigest }: Omit<HeadSeal, 'code'>,
): IntegrityField[] {
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
    blockCount,
    attestationCount,
    nonce,
    blockDigest,
    attestationDigest,
  ];
}

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

/** A number that this program never wrote has no code; the codes assert that they are not asked for one. */
function isPossible(field: IntegrityField): boolean {
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
