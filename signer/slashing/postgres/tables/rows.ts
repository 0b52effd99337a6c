// The rows of a key: read as values, where a head or an entry that fails its code is `undefined`, and written with
// their codes. The caller of what writes holds the locks and commits.

import { timingSafeEqual } from 'node:crypto';
import type { Turns } from '../../../parallel.ts';
import {
  DIGEST_BYTES,
  type EntryCodes,
  entrySum,
  type HeadSeal,
  type HistoryCodes,
  headNumbers,
  isPossible,
} from '../../history/codes.ts';
import type { Coded } from '../../history/merge.ts';
import { holdsForgotten } from '../../history/prune.ts';
import type { EntrySet, KeyState } from '../../history/rules.ts';
import type { Head } from '../../operations/store.ts';
import type { BlockEntry, VoteEntry } from '../../types.ts';
import type { Connection } from '../connection/connections.ts';

/** In the order of `headNumbers`. */
const HEAD_NUMBERS = [
  'highest_slot',
  'highest_source_epoch',
  'highest_target_epoch',
  'low_water_slot',
  'low_water_source_epoch',
  'low_water_target_epoch',
  'pruned_below_slot',
  'pruned_below_target_epoch',
  'tenure',
  'blocks',
  'attestations',
] as const;
type HeadNumber = (typeof HEAD_NUMBERS)[number];

export interface HeadRow extends Readonly<Record<HeadNumber, number | null>> {
  readonly id: number;
  readonly public_key: Buffer;
  readonly digests: Buffer;
  readonly code: Buffer;
}

export interface BlockRow {
  readonly slot: number;
  readonly signing_root: Buffer | null;
  readonly code: Buffer;
}

export interface VoteRow {
  readonly source_epoch: number;
  readonly target_epoch: number;
  readonly signing_root: Buffer | null;
  readonly code: Buffer;
}

export const SELECT_HEADS = `
  SELECT id, public_key, ${HEAD_NUMBERS.join(', ')}, digests, code
  FROM strongroom.validators WHERE public_key = ANY ($1::bytea[]) ORDER BY public_key`;

export function openHeadRow(codes: HistoryCodes, row: HeadRow): KeyState | undefined {
  const seal = sealOf(row);
  const numbers = HEAD_NUMBERS.map((name) => row[name]);
  return seal && codes.openHead(row.public_key, numbers, seal);
}

function sealOf({ digests, code }: HeadRow): HeadSeal | undefined {
  const nonceBytes = digests.length - 2 * DIGEST_BYTES;
  if (nonceBytes < 0) return undefined;
  const attestationsAt = nonceBytes + DIGEST_BYTES;
  return {
    nonce: digests.subarray(0, nonceBytes),
    blockDigest: digests.subarray(nonceBytes, attestationsAt),
    attestationDigest: digests.subarray(attestationsAt),
    code,
  };
}

export function digestsOf({ nonce, blockDigest, attestationDigest }: HeadSeal): Buffer {
  return Buffer.concat([nonce, blockDigest, attestationDigest]);
}

/** Undefined when any fails its code, or is of an entry that was forgotten. */
export function readBlockRows(
  codes: HistoryCodes,
  { publicKey, state }: Pick<Head, 'publicKey' | 'state'>,
  rows: readonly BlockRow[],
): Coded<BlockEntry>[] | undefined {
  const entries = rows.map((row) => ({ slot: row.slot, signingRoot: row.signing_root }));
  if (!entries.every(({ slot }) => isPossible(slot))) return undefined;
  const read = entries.map((entry) => ({ ...entry, ...codes.block(publicKey, entry) }));
  return haveCodes(rows, read) && !holdsForgotten(state, { blocks: entries, attestations: [] }) ? read : undefined;
}

export function readVoteRows(
  codes: HistoryCodes,
  { publicKey, state }: Pick<Head, 'publicKey' | 'state'>,
  rows: readonly VoteRow[],
): Coded<VoteEntry>[] | undefined {
  const entries = rows.map((row) => ({
    sourceEpoch: row.source_epoch,
    targetEpoch: row.target_epoch,
    signingRoot: row.signing_root,
  }));
  if (!entries.every((vote) => isPossible(vote.sourceEpoch) && isPossible(vote.targetEpoch))) return undefined;
  const read = entries.map((entry) => ({ ...entry, ...codes.attestation(publicKey, entry) }));
  return haveCodes(rows, read) && !holdsForgotten(state, { blocks: [], attestations: entries }) ? read : undefined;
}

function haveCodes(rows: readonly Pick<BlockRow, 'code'>[], read: readonly EntryCodes[]): boolean {
  return read.every(({ code }, index) => {
    const stored = rows[index]?.code;
    return stored?.length === code.length && timingSafeEqual(stored, code);
  });
}

// All entries of one kind, shown to be all: together they have the digest of the head.

/** Verifying so many rows takes a few milliseconds. */
const PAGE_ROWS = 1_000;

const PAGE_OF_BLOCKS = `
  SELECT slot, signing_root, code FROM strongroom.blocks
  WHERE validator_id = $1 AND slot > $2 ORDER BY slot LIMIT ${PAGE_ROWS}`;

const PAGE_OF_VOTES = `
  SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
  WHERE validator_id = $1 AND (target_epoch, source_epoch) > ($2, $3)
  ORDER BY target_epoch, source_epoch LIMIT ${PAGE_ROWS}`;

/** What came before that was known must not be used otherwise. */
export function readAllBlocks(
  connection: Connection,
  codes: HistoryCodes,
  head: Head,
  onEntry: (entry: BlockEntry) => void,
  turn: Turns['turn'],
): Promise<boolean> {
  const take = ({ slot, signingRoot }: BlockEntry) => onEntry({ slot, signingRoot });
  return readPages<BlockEntry>(head.state.blocks, take, turn, async (last) => {
    const values = [head.id, last?.slot ?? -1];
    const { rows } = await connection.query<BlockRow>({ name: 'page_of_blocks', text: PAGE_OF_BLOCKS, values });
    return readBlockRows(codes, head, rows);
  });
}

export function readAllVotes(
  connection: Connection,
  codes: HistoryCodes,
  head: Head,
  onEntry: (entry: VoteEntry) => void,
  turn: Turns['turn'],
): Promise<boolean> {
  const take = ({ sourceEpoch, targetEpoch, signingRoot }: VoteEntry) =>
    onEntry({ sourceEpoch, targetEpoch, signingRoot });
  return readPages<VoteEntry>(head.state.attestations, take, turn, async (last) => {
    const values = [head.id, last?.targetEpoch ?? -1, last?.sourceEpoch ?? -1];
    const { rows } = await connection.query<VoteRow>({ name: 'page_of_votes', text: PAGE_OF_VOTES, values });
    return readVoteRows(codes, head, rows);
  });
}

async function readPages<Entry>(
  set: EntrySet,
  onEntry: (entry: Entry) => void,
  turn: Turns['turn'],
  readPage: (last: Entry | undefined) => Promise<Coded<Entry>[] | undefined>,
): Promise<boolean> {
  const sum = entrySum();
  let last: Entry | undefined;
  for (let read = 0; ; ) {
    const page = await readPage(last);
    read += page?.length ?? 0;
    if (page === undefined || read > set.count) return false;
    for (const { element } of page) sum.add(element);
    for (const entry of page) onEntry(entry);
    await turn(page.length);
    last = page.at(-1);
    if (page.length < PAGE_ROWS) return sum.isWhole(set);
  }
}

const INSERT_BLOCKS = `
  INSERT INTO strongroom.blocks (validator_id, slot, signing_root, code)
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[])`;

const INSERT_VOTES = `
  INSERT INTO strongroom.attestations (validator_id, source_epoch, target_epoch, signing_root, code)
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[])`;

const REPLACE_BLOCKS = `
  UPDATE strongroom.blocks b SET signing_root = new.signing_root, code = new.code
  FROM unnest($2::bigint[], $3::bytea[], $4::bytea[]) AS new (slot, signing_root, code)
  WHERE b.validator_id = $1 AND b.slot = new.slot`;

const REPLACE_VOTES = `
  UPDATE strongroom.attestations a SET signing_root = new.signing_root, code = new.code
  FROM unnest($2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[])
    AS new (source_epoch, target_epoch, signing_root, code)
  WHERE a.validator_id = $1 AND a.target_epoch = new.target_epoch AND a.source_epoch = new.source_epoch`;

const DELETE_BLOCKS = 'DELETE FROM strongroom.blocks WHERE validator_id = $1 AND slot = ANY ($2::bigint[])';

const DELETE_VOTES = `
  DELETE FROM strongroom.attestations a USING unnest($2::bigint[], $3::bigint[]) AS old (source_epoch, target_epoch)
  WHERE a.validator_id = $1 AND a.target_epoch = old.target_epoch AND a.source_epoch = old.source_epoch`;

const OTHER_NUMBERS: readonly HeadNumber[] = ['pruned_below_slot', 'pruned_below_target_epoch', 'tenure'];
const SIGNED_NUMBERS = HEAD_NUMBERS.filter((name) => !OTHER_NUMBERS.includes(name));

/** $1 are the numbers of the heads, $2 and $3 their seals, then come the columns. */
function updateText(names: readonly HeadNumber[]): string {
  return `
    UPDATE strongroom.validators AS v
    SET digests = new.digests, code = new.code, ${names.map((name) => `${name} = new.${name}`).join(', ')}
    FROM unnest($1::bigint[], $2::bytea[], $3::bytea[],
                ${names.map((_, index) => `$${index + 4}::bigint[]`).join(', ')})
      AS new (id, digests, code, ${names.join(', ')})
    WHERE v.id = new.id`;
}

const UPDATE_HEADS = updateText(HEAD_NUMBERS);
const SIGN_HEADS = updateText(SIGNED_NUMBERS);

/** What is wrong with its values is thrown before anything is sent. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
  readonly rowCount: number;
}

export async function execute(connection: Connection, { rowCount, values, ...statement }: Statement): Promise<void> {
  const result = await connection.query({ ...statement, values: [...values] });
  if (result.rowCount !== rowCount) throw new Error(`${statement.name} did not change the rows that it should`);
}

export async function executeAndLocate(
  connection: Connection,
  { name, text, values, rowCount }: Statement,
  walPosition: string,
): Promise<number | null> {
  const { rows } = await connection.query<{ changed: number; position: number | null }>({
    name: `${name}_located`,
    text: `WITH changed AS (${text} RETURNING 1)
           SELECT count(*) AS changed, (${walPosition})::bigint AS position FROM changed`,
    values: [...values],
  });
  if (rows[0]?.changed !== rowCount) throw new Error(`${name} did not change the rows that it should`);
  return rows[0].position;
}

export interface NewEntry<Entry> {
  readonly id: HeadRow['id'];
  readonly entry: Pick<Coded<Entry>, keyof Entry | 'code'>;
}

export function insertBlocks(blocks: readonly NewEntry<BlockEntry>[]): Statement {
  const entries = blocks.map(({ entry }) => entry);
  const ids = blocks.map(({ id }) => id);
  const values = [plainArray(ids), plainArray(entries.map(slotOf)), entries.map(rootOf), entries.map(codeOf)];
  return { name: 'insert_blocks', text: INSERT_BLOCKS, values, rowCount: blocks.length };
}

export function insertVotes(votes: readonly NewEntry<VoteEntry>[]): Statement {
  const entries = votes.map(({ entry }) => entry);
  const epochs = [plainArray(entries.map(sourceOf)), plainArray(entries.map(targetOf))];
  const values = [plainArray(votes.map(({ id }) => id)), ...epochs, entries.map(rootOf), entries.map(codeOf)];
  return { name: 'insert_attestations', text: INSERT_VOTES, values, rowCount: votes.length };
}

export function replaceBlocks(id: HeadRow['id'], blocks: readonly Coded<BlockEntry>[]): Statement {
  const [slots, roots, codes] = [blocks.map(slotOf), blocks.map(rootOf), blocks.map(codeOf)];
  const values = [id, plainArray(slots), roots, codes];
  return { name: 'replace_blocks', text: REPLACE_BLOCKS, values, rowCount: blocks.length };
}

export function replaceVotes(id: HeadRow['id'], votes: readonly Coded<VoteEntry>[]): Statement {
  const epochs = [plainArray(votes.map(sourceOf)), plainArray(votes.map(targetOf))];
  const values = [id, ...epochs, votes.map(rootOf), votes.map(codeOf)];
  return { name: 'replace_votes', text: REPLACE_VOTES, values, rowCount: votes.length };
}

export function deleteBlocks(id: HeadRow['id'], blocks: readonly BlockEntry[]): Statement {
  const values = [id, plainArray(blocks.map(slotOf))];
  return { name: 'delete_blocks', text: DELETE_BLOCKS, values, rowCount: blocks.length };
}

export function deleteVotes(id: HeadRow['id'], votes: readonly VoteEntry[]): Statement {
  const values = [id, plainArray(votes.map(sourceOf)), plainArray(votes.map(targetOf))];
  return { name: 'delete_votes', text: DELETE_VOTES, values, rowCount: votes.length };
}

const slotOf = ({ slot }: BlockEntry): number => slot;
const sourceOf = ({ sourceEpoch }: VoteEntry): number => sourceEpoch;
const targetOf = ({ targetEpoch }: VoteEntry): number => targetEpoch;
const rootOf = ({ signingRoot }: BlockEntry | VoteEntry): Uint8Array | null => signingRoot;
const codeOf = ({ code }: Pick<Coded<object>, 'code'>): Uint8Array => code;

export interface ChangedHead {
  readonly head: Pick<Head, 'id' | 'publicKey'>;
  readonly state: KeyState;
}

export function updateHeads(codes: HistoryCodes, changes: readonly ChangedHead[]): Statement {
  const values = headValues(codes, changes, HEAD_NUMBERS);
  return { name: 'update_heads', text: UPDATE_HEADS, values, rowCount: changes.length };
}

export function signHeads(codes: HistoryCodes, changes: readonly ChangedHead[]): Statement {
  const values = headValues(codes, changes, SIGNED_NUMBERS);
  return { name: 'sign_heads', text: SIGN_HEADS, values, rowCount: changes.length };
}

function headValues(codes: HistoryCodes, changes: readonly ChangedHead[], names: readonly HeadNumber[]): unknown[] {
  const rows = changes.map(({ state }) => headNumbers(state));
  const seals = changes.map(({ head, state }) => codes.sealHead(head.publicKey, state));
  return [
    plainArray(changes.map(({ head }) => head.id)),
    seals.map(digestsOf),
    seals.map(({ code }) => code),
    ...names.map((name) => plainArray(rows.map((numbers) => numbers[HEAD_NUMBERS.indexOf(name)] ?? null))),
  ];
}

/** `pg` would quote and escape each, at a price that batches feel. */
export function plainArray(values: readonly (number | null)[]): string {
  let text = '';
  for (const value of values) text += `${text === '' ? '' : ','}${value ?? 'NULL'}`;
  return `{${text}}`;
}
