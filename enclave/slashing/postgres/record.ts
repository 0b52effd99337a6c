// Writes entries and heads whose codes are made. The caller holds the locks and commits.

import type { HistoryCodes } from '../history/codes.ts';
import type { Coded } from '../history/merge.ts';
import type { BlockEntry, KeyState, VoteEntry } from '../history/state.ts';
import type { Connection } from './connections.ts';
import { digestsOf, type HeadRow } from './rows.ts';

const INSERT_BLOCKS = `
  INSERT INTO strongroom.blocks (validator_id, slot, signing_root, code)
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[])`;

const INSERT_VOTES = `
  INSERT INTO strongroom.attestations (validator_id, source_epoch, target_epoch, signing_root, code)
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[])`;

const UPDATE_HEADS = `
  UPDATE strongroom.validators AS v SET
    highest_slot = new.highest_slot, highest_source_epoch = new.highest_source_epoch,
    highest_target_epoch = new.highest_target_epoch, low_water_slot = new.low_water_slot,
    low_water_source_epoch = new.low_water_source_epoch, low_water_target_epoch = new.low_water_target_epoch,
    pruned_below_slot = new.pruned_below_slot, pruned_below_target_epoch = new.pruned_below_target_epoch,
    retired = new.retired, blocks = new.blocks, attestations = new.attestations, digests = new.digests, code = new.code
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
              $8::bigint[], $9::bigint[], $10::boolean[], $11::bigint[], $12::bigint[], $13::bytea[], $14::bytea[])
    AS new (id, highest_slot, highest_source_epoch, highest_target_epoch, low_water_slot, low_water_source_epoch,
            low_water_target_epoch, pruned_below_slot, pruned_below_target_epoch, retired, blocks, attestations,
            digests, code)
  WHERE v.id = new.id`;

/** With all its values: whatever is wrong with them is thrown before anything is sent. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
  /** Rows that it must change. */
  readonly rowCount: number;
}

export async function execute(connection: Connection, { rowCount, values, ...statement }: Statement): Promise<void> {
  const result = await connection.query({ ...statement, values: [...values] });
  if (result.rowCount !== rowCount) throw new Error(`${statement.name} did not change the rows that it should`);
}

/** The same, and how far the write-ahead log had come after it: the commit that follows lies beyond. */
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
  const values = [
    blocks.map(({ id }) => id),
    blocks.map(({ entry }) => entry.slot),
    blocks.map(({ entry }) => entry.signingRoot),
    blocks.map(({ entry }) => entry.code),
  ];
  return { name: 'insert_blocks', text: INSERT_BLOCKS, values, rowCount: blocks.length };
}

export function insertVotes(votes: readonly NewEntry<VoteEntry>[]): Statement {
  const values = [
    votes.map(({ id }) => id),
    votes.map(({ entry }) => entry.sourceEpoch),
    votes.map(({ entry }) => entry.targetEpoch),
    votes.map(({ entry }) => entry.signingRoot),
    votes.map(({ entry }) => entry.code),
  ];
  return { name: 'insert_attestations', text: INSERT_VOTES, values, rowCount: votes.length };
}

export interface ChangedHead {
  readonly head: Pick<HeadRow, 'id' | 'public_key'>;
  readonly state: KeyState;
}

/** Write the states of keys whose heads are locked. */
export function updateHeads(codes: HistoryCodes, changes: readonly ChangedHead[]): Statement {
  const seals = changes.map(({ head, state }) => codes.sealHead(head.public_key, state));
  const column = <Value>(of: (state: KeyState) => Value) => changes.map(({ state }) => of(state));
  const values = [
    changes.map(({ head }) => head.id),
    column(({ highest }) => highest.blockSlot),
    column(({ highest }) => highest.sourceEpoch),
    column(({ highest }) => highest.targetEpoch),
    column(({ lowWater }) => lowWater.slot),
    column(({ lowWater }) => lowWater.sourceEpoch),
    column(({ lowWater }) => lowWater.targetEpoch),
    column(({ prunedBelow }) => prunedBelow.slot),
    column(({ prunedBelow }) => prunedBelow.targetEpoch),
    column(({ isRetired }) => isRetired),
    column(({ blocks }) => blocks.count),
    column(({ attestations }) => attestations.count),
    seals.map(digestsOf),
    seals.map(({ code }) => code),
  ];
  return { name: 'update_heads', text: UPDATE_HEADS, values, rowCount: changes.length };
}
