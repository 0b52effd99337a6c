// Writes entries and heads whose codes are made. The caller holds the locks and commits.

import type { HistoryCodes } from '../../history/codes.ts';
import type { Coded } from '../../history/merge.ts';
import type { BlockEntry, KeyState, VoteEntry } from '../../history/state.ts';
import type { Head } from '../../operations/store.ts';
import type { Connection } from '../connection/connections.ts';
import { digestsOf, type HeadRow } from './rows.ts';

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

interface HeadColumn {
  readonly name: string;
  readonly of: (state: KeyState) => number | null;
}

/** What a safe message changes of a head. */
const SIGNED_COLUMNS: readonly HeadColumn[] = [
  { name: 'highest_slot', of: ({ highest }) => highest.blockSlot },
  { name: 'highest_source_epoch', of: ({ highest }) => highest.sourceEpoch },
  { name: 'highest_target_epoch', of: ({ highest }) => highest.targetEpoch },
  { name: 'low_water_slot', of: ({ lowWater }) => lowWater.slot },
  { name: 'low_water_source_epoch', of: ({ lowWater }) => lowWater.sourceEpoch },
  { name: 'low_water_target_epoch', of: ({ lowWater }) => lowWater.targetEpoch },
  { name: 'blocks', of: ({ blocks }) => blocks.count },
  { name: 'attestations', of: ({ attestations }) => attestations.count },
];
const OTHER_COLUMNS: readonly HeadColumn[] = [
  { name: 'pruned_below_slot', of: ({ prunedBelow }) => prunedBelow.slot },
  { name: 'pruned_below_target_epoch', of: ({ prunedBelow }) => prunedBelow.targetEpoch },
  { name: 'tenure', of: ({ tenure }) => tenure },
];
const ALL_COLUMNS = [...SIGNED_COLUMNS, ...OTHER_COLUMNS];

/** $1 are the numbers of the heads, $2 and $3 their seals, then come the columns. */
function updateText(columns: readonly HeadColumn[]): string {
  const names = columns.map(({ name }) => name);
  return `
    UPDATE strongroom.validators AS v
    SET digests = new.digests, code = new.code, ${names.map((name) => `${name} = new.${name}`).join(', ')}
    FROM unnest($1::bigint[], $2::bytea[], $3::bytea[],
                ${columns.map((_, index) => `$${index + 4}::bigint[]`).join(', ')})
      AS new (id, digests, code, ${names.join(', ')})
    WHERE v.id = new.id`;
}

const UPDATE_HEADS = updateText(ALL_COLUMNS);
const SIGN_HEADS = updateText(SIGNED_COLUMNS);

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

/** Also how far the write-ahead log had come: the commit that follows lies beyond. */
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
  const values = headValues(codes, changes, ALL_COLUMNS);
  return { name: 'update_heads', text: UPDATE_HEADS, values, rowCount: changes.length };
}

/** When nothing but safe messages changed them. */
export function signHeads(codes: HistoryCodes, changes: readonly ChangedHead[]): Statement {
  const values = headValues(codes, changes, SIGNED_COLUMNS);
  return { name: 'sign_heads', text: SIGN_HEADS, values, rowCount: changes.length };
}

function headValues(codes: HistoryCodes, changes: readonly ChangedHead[], columns: readonly HeadColumn[]): unknown[] {
  const seals = changes.map(({ head, state }) => codes.sealHead(head.publicKey, state));
  return [
    plainArray(changes.map(({ head }) => head.id)),
    seals.map(digestsOf),
    seals.map(({ code }) => code),
    ...columns.map(({ of }) => plainArray(changes.map(({ state }) => of(state)))),
  ];
}

/** `pg` would quote and escape each, at a price that batches feel. */
export function plainArray(values: readonly (number | null)[]): string {
  let text = '';
  for (const value of values) text += `${text === '' ? '' : ','}${value ?? 'NULL'}`;
  return `{${text}}`;
}
