// The slashing protection interchange format of EIP-3076, version 5, as a stream: one validator in memory at a time.
// The reader refuses a file as a whole; the metadata may stand anywhere, so nothing is merged before it is through.

import { canonicalPublicKey, decodeHex, encodeHex } from '../../../common/formats/hex.ts';
import { SignerError } from '../../api/errors.ts';
import type { HistoryPart, SlashingBackend, ValidatorHistory } from '../types.ts';
import { InterchangeError, type JsonEntry, type JsonValue, readJsonPieces } from './piece-parser.ts';
import { type HistoryReducer, historyReducer } from './reduce.ts';

const FORMAT_VERSION = '5';
/** A vote an epoch for twelve years. */
export const MAX_ENTRIES_OF_A_KEY = 1_000_000;

/** @param genesisValidatorsRoot `0x` and 64 hex digits @throws InterchangeError while it is iterated */
export async function* readInterchange(
  source: AsyncIterable<Uint8Array>,
  genesisValidatorsRoot: string,
): AsyncGenerator<ValidatorHistory> {
  const missing = new Set(['metadata', 'data']);
  let reducer = historyReducer();
  const onEntry = (entry: JsonEntry): void => addEntry(reducer, entry);
  const pieces = readJsonPieces(source, { streamedMember: 'data', lists: [BLOCKS, ATTESTATIONS], onEntry });
  for await (const { member, index, value } of pieces) {
    if (index === undefined) missing.delete(member);
    if (member === 'metadata') checkMetadata(value, genesisValidatorsRoot);
    else if (member === 'data' && index === undefined) listOf(value, 'data');
    else if (member === 'data') {
      yield validatorOf(value, `data[${index}]`, reducer.result());
      reducer = historyReducer();
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
    throw new InterchangeError('metadata.genesis_validators_root', 'the file is of another network');
  }
}

const BLOCKS = 'signed_blocks';
const ATTESTATIONS = 'signed_attestations';

function addEntry(reducer: HistoryReducer, { element, list, index, value }: JsonEntry): void {
  const at = `data[${element}].${list}[${index}]`;
  if (index >= MAX_ENTRIES_OF_A_KEY) throw new InterchangeError(at, `more than ${MAX_ENTRIES_OF_A_KEY} entries`);
  const entry = objectOf(value, at);
  if (list === BLOCKS) {
    reducer.addBlock({ slot: numberOf(entry['slot'], `${at}.slot`), signingRoot: optionalRoot(entry, at) });
    return;
  }
  reducer.addVote({
    sourceEpoch: numberOf(entry['source_epoch'], `${at}.source_epoch`),
    targetEpoch: numberOf(entry['target_epoch'], `${at}.target_epoch`),
    signingRoot: optionalRoot(entry, at),
  });
}

function validatorOf(value: JsonValue, place: string, history: HistoryPart): ValidatorHistory {
  const validator = objectOf(value, place);
  const key = validator['pubkey'];
  const publicKey = typeof key === 'string' ? canonicalPublicKey(key) : undefined;
  if (publicKey === undefined) throw new InterchangeError(`${place}.pubkey`, 'is not 48 bytes of hex');
  for (const list of [BLOCKS, ATTESTATIONS]) listOf(validator[list], `${place}.${list}`);
  return { publicKey, ...history };
}

/** An entry without a root, or with null for one, refuses everything at its place. */
function optionalRoot(entry: { readonly [member: string]: JsonValue }, place: string): Uint8Array | null {
  const value = entry['signing_root'];
  return value === undefined || value === null ? null : rootOf(value, `${place}.signing_root`);
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

function objectOf(value: JsonValue | undefined, place: string): { readonly [member: string]: JsonValue } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InterchangeError(place, 'is not an object');
  }
  return value;
}

function listOf(value: JsonValue | undefined, place: string): readonly JsonValue[] {
  if (!Array.isArray(value)) throw new InterchangeError(place, 'is not a list');
  return value;
}

// Files inside the JSON of a request (the Key Manager API): in memory as a whole.

export interface InterchangeParts {
  readonly backend: Pick<SlashingBackend, 'importHistories' | 'exportHistories'>;
  /** `0x` and 64 hex digits. */
  readonly genesisValidatorsRoot: string;
}

/** @throws SignerError `malformed_body`, also for another network; `denied`; slashing_*. Nothing is merged */
export async function mergeInterchangeText(
  text: string,
  allows: (publicKey: string) => boolean,
  { backend, genesisValidatorsRoot }: InterchangeParts,
): Promise<void> {
  const source = (async function* () {
    yield Buffer.from(text);
  })();
  async function* allowed(): AsyncGenerator<ValidatorHistory> {
    for await (const history of readInterchange(source, genesisValidatorsRoot)) {
      if (!allows(history.publicKey)) throw new SignerError('denied');
      yield history;
    }
  }
  try {
    await backend.importHistories(allowed());
  } catch (error) {
    if (!(error instanceof InterchangeError)) throw error;
    const hint = `slashing_protection: ${error.message}; nothing was imported`;
    throw new SignerError('malformed_body', { hint, cause: error });
  }
}

export async function exportInterchangeText(
  publicKeys: readonly string[],
  { backend, genesisValidatorsRoot }: InterchangeParts,
): Promise<{ readonly file: string; readonly recorded: ReadonlySet<string> }> {
  const recorded = new Set<string>();
  async function* seen(): AsyncGenerator<ValidatorHistory> {
    for await (const history of backend.exportHistories(publicKeys)) {
      recorded.add(history.publicKey);
      yield history;
    }
  }
  const pieces: string[] = [];
  for await (const piece of writeInterchange(seen(), genesisValidatorsRoot)) pieces.push(piece);
  return { file: pieces.join(''), recorded };
}
