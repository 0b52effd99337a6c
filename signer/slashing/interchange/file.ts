// The slashing protection interchange format of EIP-3076, version 5, as a stream: one validator in memory at a time.
// The reader refuses a file as a whole; the metadata may stand anywhere, so nothing is merged before it is through.

import { canonicalPublicKey, decodeHex, encodeHex } from '../../../common/formats/hex.ts';
import { ofOtherNetwork } from '../../api/network-table.ts';
import type { HistoryPart, ValidatorHistory } from '../types.ts';
import { InterchangeError, type JsonEntry, type JsonValue, readJsonPieces } from './piece-parser.ts';
import { historyReducer } from './reduce.ts';

const FORMAT_VERSION = '5';
/** A vote an epoch for twelve years. */
export const MAX_ENTRIES_OF_A_KEY = 1_000_000;

/** @param genesisValidatorsRoot `0x` and 64 hex digits @throws InterchangeError while it is iterated */
export async function* readInterchange(
  source: AsyncIterable<Uint8Array>,
  genesisValidatorsRoot: string,
): AsyncGenerator<ValidatorHistory> {
  const missing = new Set(['metadata', 'data']);
  let entries = new Entries();
  const onEntry = (entry: JsonEntry): void => entries.add(entry);
  const pieces = readJsonPieces(source, { streamedMember: 'data', lists: LISTS, onEntry });
  for await (const { member, index, value } of pieces) {
    if (index === undefined) missing.delete(member);
    if (member === 'metadata') checkMetadata(value, genesisValidatorsRoot);
    else if (member === 'data' && index === undefined) listOf(value, 'data');
    else if (member === 'data') {
      yield validatorOf(value, `data[${index}]`, entries);
      entries = new Entries();
    }
  }
  for (const member of missing) throw new InterchangeError(member, 'is missing');
}

export async function* writeInterchange(
  histories: AsyncIterable<ValidatorHistory>,
  genesisValidatorsRoot: string,
): AsyncGenerator<string> {
  const metadata = { interchange_format_version: FORMAT_VERSION, genesis_validators_root: genesisValidatorsRoot };
  yield `{"metadata":${JSON.stringify(metadata)},"data":[`;
  let separator = '\n';
  for await (const { publicKey, blocks, attestations } of histories) {
    const validator = {
      pubkey: publicKey,
      signed_blocks: blocks.map(({ slot, signingRoot }) => ({ slot: String(slot), ...rootMember(signingRoot) })),
      signed_attestations: attestations.map(({ sourceEpoch, targetEpoch, signingRoot }) => ({
        source_epoch: String(sourceEpoch),
        target_epoch: String(targetEpoch),
        ...rootMember(signingRoot),
      })),
    };
    yield separator + JSON.stringify(validator);
    separator = ',\n';
  }
  yield '\n]}\n';
}

function rootMember(signingRoot: Uint8Array | null): { signing_root?: string } {
  return signingRoot === null ? {} : { signing_root: encodeHex(signingRoot) };
}

function checkMetadata(value: JsonValue, genesisValidatorsRoot: string): void {
  const metadata = objectOf(value, 'metadata');
  if (String(metadata['interchange_format_version']) !== FORMAT_VERSION) {
    throw new InterchangeError('metadata.interchange_format_version', 'is not 5, the only version this program reads');
  }
  const root = rootOf(metadata['genesis_validators_root'], 'metadata.genesis_validators_root');
  if (encodeHex(root) !== genesisValidatorsRoot.toLowerCase()) {
    throw new InterchangeError(
      'metadata.genesis_validators_root',
      `the file is ${ofOtherNetwork(root, genesisValidatorsRoot)}`,
    );
  }
}

const BLOCKS = 'signed_blocks';
const ATTESTATIONS = 'signed_attestations';
const LISTS = [BLOCKS, ATTESTATIONS];

/** Of one key, which may be named after them: a fault waits for its name. */
class Entries {
  readonly #reducer = historyReducer();
  #fault: InterchangeError | undefined;
  /** `[{}]`: Teku wrote that for no entry (teku 4421). */
  #empty: { readonly list: string; readonly at: string } | undefined;

  add({ element, list, index, value }: JsonEntry): void {
    const at = `data[${element}].${list}[${index}]`;
    if (index >= MAX_ENTRIES_OF_A_KEY) throw new InterchangeError(at, `more than ${MAX_ENTRIES_OF_A_KEY} entries`);
    if (this.#fault !== undefined) return;
    try {
      const entry = objectOf(value, at);
      const isFirst = index === 0;
      if (!isFirst && this.#empty?.list === list) throw new InterchangeError(this.#empty.at, 'is an empty entry');
      if (isFirst && Object.keys(entry).length === 0) this.#empty = { list, at };
      else this.#addEntry(list, entry, at);
    } catch (error) {
      if (!(error instanceof InterchangeError)) throw error;
      this.#fault = error;
    }
  }

  /** @throws InterchangeError */
  ofKey(publicKey: string): HistoryPart {
    if (this.#fault === undefined) return this.#reducer.result();
    const { place, message } = this.#fault;
    throw new InterchangeError(place, `${message.slice(place.length + 2)} (of the key ${publicKey})`);
  }

  #addEntry(list: string, entry: Members, at: string): void {
    const signingRoot = optionalRoot(entry, at);
    if (list === BLOCKS) {
      this.#reducer.addBlock({ slot: numberOf(entry['slot'], `${at}.slot`), signingRoot });
      return;
    }
    this.#reducer.addVote({
      sourceEpoch: numberOf(entry['source_epoch'], `${at}.source_epoch`),
      targetEpoch: numberOf(entry['target_epoch'], `${at}.target_epoch`),
      signingRoot,
    });
  }
}

function validatorOf(value: JsonValue, place: string, entries: Entries): ValidatorHistory {
  const validator = objectOf(value, place);
  const key = validator['pubkey'];
  const publicKey = typeof key === 'string' ? canonicalPublicKey(key) : undefined;
  if (publicKey === undefined && 'status' in validator) throw new InterchangeError(place, WHOLE_ANSWER);
  if (publicKey === undefined) throw new InterchangeError(`${place}.pubkey`, 'is not 48 bytes of hex');
  const history = entries.ofKey(publicKey);
  for (const list of LISTS) {
    // Go and others write null, or leave out, a list without entries. Under another name there might be one.
    const other = Object.keys(validator).find((name) => name !== 'pubkey' && !LISTS.includes(name));
    const isNone = validator[list] === null || (validator[list] === undefined && other === undefined);
    if (!isNone) listOf(validator[list], `${place}.${list}`);
  }
  return { publicKey, ...history };
}

const WHOLE_ANSWER =
  'is of the answer to a DELETE of keys, whose record is a text in it: `jq -r .slashing_protection FILE` writes the record';

type Members = { readonly [member: string]: JsonValue };

/** An entry without a root refuses everything at its place. Go writes an empty text for none, Prysm zeros. */
function optionalRoot(entry: Members, place: string): Uint8Array | null {
  const value = entry['signing_root'];
  if (value === undefined || value === null || value === '') return null;
  const root = rootOf(value, `${place}.signing_root`);
  return root.every((byte) => byte === 0) ? null : root;
}

function rootOf(value: JsonValue | undefined, place: string): Uint8Array {
  const root = typeof value === 'string' ? decodeHex(value, 32) : undefined;
  if (root === undefined) throw new InterchangeError(place, 'is not 32 bytes of hex');
  return root;
}

/** The format says a decimal string, some programs write a number. */
function numberOf(value: JsonValue | undefined, place: string): number {
  const isDecimal = typeof value === 'string' && /^[0-9]{1,20}$/.test(value);
  const number = isDecimal || typeof value === 'number' ? Number(value) : Number.NaN;
  if (number > Number.MAX_SAFE_INTEGER) throw new InterchangeError(place, 'is larger than 2^53 - 1');
  if (!Number.isSafeInteger(number) || number < 0 || Object.is(number, -0)) {
    throw new InterchangeError(place, 'is not a decimal number');
  }
  return number;
}

function objectOf(value: JsonValue | undefined, place: string): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InterchangeError(place, 'is not an object');
  }
  return value;
}

function listOf(value: JsonValue | undefined, place: string): readonly JsonValue[] {
  if (!Array.isArray(value)) throw new InterchangeError(place, 'is not a list');
  return value;
}
