// The integrity code of a stored row: it shows that a row was altered, moved to another key, or copied from another
// network. With a key (from the master key) it is a MAC, without one a checksum. It does not detect missing rows.

import { strict as assert } from 'node:assert';
import { createHmac, hash, randomFillSync, timingSafeEqual } from 'node:crypto';
import type { BlockEntry, SlashableMessage, VoteEntry } from '../types.ts';
import { type EntrySet, higherMarks, type KeyState, lowWaterWith } from './head.ts';
import { marksOf } from './rules.ts';

export const INTEGRITY_CODE_BYTES = 16;

export const NO_PUBLIC_KEY: Uint8Array = new Uint8Array(48);

/** What this program writes are safe integers; an altered row may hold any number. */
export type IntegrityField = number | null | Uint8Array;

export type RowIntegrity = ReturnType<typeof rowIntegrity>;

interface RowIntegrityOptions {
  /** 32 bytes, copied; without it codes are checksums. */
  readonly key?: Uint8Array | undefined;
  /** 32 bytes. */
  readonly genesisValidatorsRoot: Uint8Array;
}

export function rowIntegrity(options: RowIntegrityOptions) {
  assert.equal(options.genesisValidatorsRoot.length, 32);
  const key = options.key === undefined ? undefined : Buffer.from(options.key);
  assert(key === undefined || key.length === 32);
  const network = Buffer.from(options.genesisValidatorsRoot);
  const masking = key === undefined ? undefined : maskInput(key);
  let wiped = false;

  function hashOf(domain: string, publicKey: Uint8Array, fields: readonly IntegrityField[]): Uint8Array {
    assert(!wiped, 'row integrity is used after it was wiped');
    const message = encode(domain, network, publicKey, fields);
    // As text and back: asked for bytes, Node makes memory of its own for each digest, at the price of the hash.
    return key === undefined
      ? Buffer.from(hash('sha256', message, 'latin1'), 'latin1')
      : Buffer.from(createHmac('sha256', key).update(message).digest('latin1'), 'latin1');
  }

  function code(domain: string, publicKey: Uint8Array, fields: readonly IntegrityField[]): Uint8Array {
    return hashOf(domain, publicKey, fields).subarray(0, INTEGRITY_CODE_BYTES);
  }

  return {
    kind: key === undefined ? ('checksum' as const) : ('hmac' as const),
    /** 32 bytes over the kind of row (`domain`), the network, the key the row belongs to (48 bytes), and the fields. */
    hash: hashOf,
    code,
    verify(stored: Uint8Array, domain: string, publicKey: Uint8Array, fields: readonly IntegrityField[]): boolean {
      return stored.length === INTEGRITY_CODE_BYTES && timingSafeEqual(stored, code(domain, publicKey, fields));
    },
    /** 32 bytes that cover something of this key which is stored under a nonce of 16 bytes. Only with a key. */
    mask(publicKey: Uint8Array, nonce: Uint8Array): Uint8Array {
      assert(!wiped, 'row integrity is used after it was wiped');
      assert(masking !== undefined, 'a mask needs a key');
      assert(publicKey.length === PUBLIC_KEY_BYTES && nonce.length === NONCE_BYTES);
      masking.set(publicKey, MASK_INFO_AT);
      masking.set(nonce, MASK_INFO_AT + PUBLIC_KEY_BYTES);
      return Buffer.from(hash('sha256', masking, 'latin1'), 'latin1');
    },
    wipe(): void {
      wiped = true;
      key?.fill(0);
      masking?.fill(0);
    },
  };
}

// The one-step key derivation of NIST SP 800-56C revision 2, section 4.1, option 1: the hash of a counter, the secret,
// and fixed information, of lengths that never vary. The secret serves nothing else. An HMAC would cost several times
// as much, and each check takes two masks.
const MASK_SECRET_AT = 4;
const MASK_INFO_AT = MASK_SECRET_AT + 32;
const PUBLIC_KEY_BYTES = 48;

function maskInput(key: Uint8Array): Buffer {
  const input = Buffer.alloc(MASK_INFO_AT + PUBLIC_KEY_BYTES + NONCE_BYTES);
  input.writeUInt32BE(1, 0);
  const secret = createHmac('sha256', key).update('strongroom digest mask v1').digest();
  input.set(secret, MASK_SECRET_AT);
  secret.fill(0);
  return input;
}

// Every part says its own length, so no two lists of parts have the same bytes.
const NULL_TAG = 0;
const NUMBER_TAG = 1;
const BYTES_TAG = 2;
const NUMBER_BYTES = 8;

/** Longer than any row of ours; each message is hashed before the next. */
const SCRATCH = Buffer.alloc(512);

function encode(domain: string, network: Uint8Array, publicKey: Uint8Array, fields: readonly IntegrityField[]): Buffer {
  assert.equal(publicKey.length, 48);
  assert(domain.length < 256);
  let length = 1 + domain.length + network.length + publicKey.length;
  for (const field of fields) length += 1 + fieldBytes(field);
  const message = length <= SCRATCH.length ? SCRATCH.subarray(0, length) : Buffer.alloc(length);
  const numbers = new DataView(message.buffer, message.byteOffset, length);

  message[0] = domain.length;
  let at = 1 + message.write(domain, 1, 'latin1');
  message.set(network, at);
  at += network.length;
  message.set(publicKey, at);
  at += publicKey.length;
  for (const field of fields) at = writeField(message, numbers, field, at);
  assert.equal(at, length);
  return message;
}

function fieldBytes(field: IntegrityField): number {
  if (field === null) return 0;
  return typeof field === 'number' ? NUMBER_BYTES : 4 + field.length;
}

function writeField(message: Uint8Array, numbers: DataView, field: IntegrityField, at: number): number {
  if (field === null) {
    message[at] = NULL_TAG;
    return at + 1;
  }
  if (typeof field === 'number') {
    message[at] = NUMBER_TAG;
    numbers.setFloat64(at + 1, field);
    return at + 1 + NUMBER_BYTES;
  }
  message[at] = BYTES_TAG;
  numbers.setUint32(at + 1, field.length);
  message.set(field, at + 5);
  return at + 5 + field.length;
}

// The codes of a complete store's rows, and the multiset hash by which a head knows its entries.
//
// Every entry has one keyed hash of 32 bytes. The first half is its code, stored in the entry's row. The second half is
// its element, stored nowhere. The digest of a history is the XOR of its elements, stored under a mask from a fresh
// nonce (MSet-XOR-Hash: Clarke, Devadas, van Dijk, Gassend, Suh, ASIACRYPT 2003, section 4). So a person who can write
// rows but has no key cannot find another set of rows with the digest of the head: the codes do not reveal the
// elements, nor do two digests, because no mask is used twice. Without a key all of this is a checksum against
// accidents.

const DIGEST_BYTES = 16;
const NONCE_BYTES = 16;

export interface HeadCode {
  /** The digest of the blocks, that of the votes, and the nonce: empty without a key, when there is nothing to hide. */
  readonly digests: Uint8Array;
  readonly code: Uint8Array;
}

export interface EntryCodes {
  /** 16 bytes, stored in the entry's row. */
  readonly code: Uint8Array;
  /** 16 bytes, stored nowhere. */
  readonly element: Uint8Array;
}

export type HistoryCodes = ReturnType<typeof historyCodes>;

export function historyCodes(integrity: RowIntegrity) {
  const isKeyed = integrity.kind === 'hmac';

  const masksOf = (publicKey: Uint8Array, nonce: Uint8Array): Uint8Array | undefined =>
    isKeyed ? integrity.mask(publicKey, nonce) : undefined;

  return {
    entry<Entry extends BlockEntry | VoteEntry>(
      { noun, fieldsOf }: EntryKind<Entry>,
      publicKey: Uint8Array,
      entry: Entry,
    ): EntryCodes {
      const hash = integrity.hash(noun, publicKey, fieldsOf(entry));
      return { code: hash.subarray(0, INTEGRITY_CODE_BYTES), element: hash.subarray(INTEGRITY_CODE_BYTES) };
    },

    headCode(publicKey: Uint8Array, state: KeyState): HeadCode {
      const nonce = isKeyed ? freshNonce() : NO_NONCE;
      const masks = masksOf(publicKey, nonce);
      const blockDigest = masked(state.blocks.digest, masks, 0);
      const attestationDigest = masked(state.attestations.digest, masks, DIGEST_BYTES);
      const fields: IntegrityField[] = headNumbers(state);
      fields.push(nonce, blockDigest, attestationDigest);
      const digests = Buffer.concat([blockDigest, attestationDigest, nonce]);
      return { digests, code: integrity.code(HEAD_DOMAIN, publicKey, fields) };
    },

    /** @param numbers as `headNumbers` has them; nothing of the row is believed yet @returns undefined: a wrong code */
    openHead(
      publicKey: Uint8Array,
      numbers: readonly (number | null)[],
      { digests, code }: HeadCode,
    ): KeyState | undefined {
      const nonce = digests.subarray(2 * DIGEST_BYTES);
      if (isKeyed && nonce.length !== NONCE_BYTES) return undefined;
      // Digests that are too short have parts that are too short, and fail the code.
      const blockDigest = digests.subarray(0, DIGEST_BYTES);
      const attestationDigest = digests.subarray(DIGEST_BYTES, 2 * DIGEST_BYTES);
      const fields = [...numbers, nonce, blockDigest, attestationDigest];
      for (const field of fields) if (!isPossible(field)) return undefined;
      if (!integrity.verify(code, HEAD_DOMAIN, publicKey, fields)) return undefined;
      const masks = masksOf(publicKey, nonce);
      const at = (place: number): number | null => numbers[place] ?? null;
      return {
        highest: { slot: at(0), sourceEpoch: at(1), targetEpoch: at(2) },
        lowWater: { slot: at(3), sourceEpoch: at(4), targetEpoch: at(5) },
        prunedBelow: { slot: at(6), targetEpoch: at(7) },
        tenure: at(8) ?? 0,
        blocks: { count: at(9) ?? 0, digest: masked(blockDigest, masks, 0) },
        attestations: { count: at(10) ?? 0, digest: masked(attestationDigest, masks, DIGEST_BYTES) },
      };
    },

    storeCode: (fields: readonly IntegrityField[]) => integrity.code('store v1', NO_PUBLIC_KEY, fields),
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
  /** Its first number, which has marks. */
  readonly markOf: (entry: Entry) => number;
  readonly entryOf: (signingRoot: Uint8Array | null, ...place: number[]) => Entry;
  /** What its code covers. */
  readonly fieldsOf: (entry: Entry) => readonly IntegrityField[];
  /** Its mark, and that of what was pruned. */
  readonly mark: 'slot' | 'targetEpoch';
}

export const BLOCKS: EntryKind<BlockEntry> = {
  noun: 'block',
  name: 'blocks',
  columns: ['slot'],
  placeOf: ({ slot }) => [slot],
  markOf: ({ slot }) => slot,
  entryOf: (signingRoot, slot: number) => ({ slot, signingRoot }),
  fieldsOf: ({ slot, signingRoot }) => [slot, signingRoot],
  mark: 'slot',
};

export const VOTES: EntryKind<VoteEntry> = {
  noun: 'attestation',
  name: 'attestations',
  columns: ['target_epoch', 'source_epoch'],
  placeOf: ({ targetEpoch, sourceEpoch }) => [targetEpoch, sourceEpoch],
  markOf: ({ targetEpoch }) => targetEpoch,
  entryOf: (signingRoot, targetEpoch: number, sourceEpoch: number) => ({ sourceEpoch, targetEpoch, signingRoot }),
  fieldsOf: ({ sourceEpoch, targetEpoch, signingRoot }) => [sourceEpoch, targetEpoch, signingRoot],
  mark: 'targetEpoch',
};

/** In the order of the code; stores keep them under names of their own. */
export function headNumbers(state: KeyState): (number | null)[] {
  const { highest, lowWater, prunedBelow, tenure, blocks, attestations } = state;
  return [
    highest.slot,
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
  const isBlock = message.kind === 'block';
  const entryCodes = isBlock ? codes.entry(BLOCKS, publicKey, message) : codes.entry(VOTES, publicKey, message);
  const set = isBlock ? 'blocks' : 'attestations';
  return {
    state: {
      ...state,
      highest: higherMarks(state.highest, own),
      lowWater: lowWaterWith(state.lowWater, own),
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

const HEAD_DOMAIN = 'head v1';
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
