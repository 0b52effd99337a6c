// Forgets what lies behind the horizon of pruning.ts, one key a transaction and at most so many entries. A key whose
// record fails its codes, or is not whole, is left as it is.

import type { LowWaterMarks } from '../history/carried-entries.ts';
import { RETAINED_EPOCHS, RETAINED_SLOTS } from '../history/prune.ts';
import { type Connection, commit } from './connections.ts';
import { execute, updateValidators } from './record.ts';
import {
  type AttestationEntry,
  type AttestationRow,
  type BlockEntry,
  type BlockRow,
  highest,
  type RowCodes,
  VALIDATOR_COLUMNS,
  type ValidatorRow,
  type ValidatorState,
} from './rows.ts';

const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = on';

const NEXT_VALIDATOR = `
  SELECT v.id FROM strongroom.validators v
  WHERE v.id > $1 AND (
    EXISTS (SELECT FROM strongroom.blocks b WHERE b.validator_id = v.id AND b.slot < v.highest_slot - ${RETAINED_SLOTS})
    OR EXISTS (SELECT FROM strongroom.attestations a
               WHERE a.validator_id = v.id AND a.target_epoch < v.highest_target_epoch - ${RETAINED_EPOCHS}))
  ORDER BY v.id LIMIT 1`;

const LOCK_VALIDATOR = `SELECT ${VALIDATOR_COLUMNS} FROM strongroom.validators WHERE id = $1 FOR UPDATE`;

const OLDEST_BLOCKS = `
  SELECT slot, signing_root, code FROM strongroom.blocks
  WHERE validator_id = $1 AND slot < $2 ORDER BY slot LIMIT $3`;

const OLDEST_ATTESTATIONS = `
  SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
  WHERE validator_id = $1 AND target_epoch < $2 ORDER BY target_epoch, source_epoch LIMIT $3`;

const DELETE_BLOCKS = 'DELETE FROM strongroom.blocks WHERE validator_id = $1 AND slot = ANY ($2::bigint[])';

const DELETE_ATTESTATIONS = `
  DELETE FROM strongroom.attestations a USING unnest($2::bigint[], $3::bigint[]) AS old (source_epoch, target_epoch)
  WHERE a.validator_id = $1 AND a.target_epoch = old.target_epoch AND a.source_epoch = old.source_epoch`;

const FIRST_KEPT_BLOCK = `
  SELECT slot, signing_root, code FROM strongroom.blocks WHERE validator_id = $1 ORDER BY slot LIMIT 1`;

const FIRST_KEPT_ATTESTATIONS = `
  (SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
   WHERE validator_id = $1 ORDER BY target_epoch LIMIT 1)
  UNION ALL
  (SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
   WHERE validator_id = $1 ORDER BY source_epoch LIMIT 1)`;

export interface PruneOutcome {
  readonly deleted: number;
  /** Of the key that was looked at; undefined when no later key has anything to prune. */
  readonly validatorId: number | undefined;
}

/** Prune the first key after `afterId` that has something to prune. On rejection the connection must be closed. */
export async function pruneNextKey(
  connection: Connection,
  codes: RowCodes,
  afterId: number,
  maxEntries: number,
): Promise<PruneOutcome> {
  const next = await connection.query<{ id: number }>(NEXT_VALIDATOR, [afterId]);
  const validatorId = next.rows[0]?.id;
  if (validatorId === undefined) return { deleted: 0, validatorId };
  await connection.query(BEGIN);
  const locked = await connection.query<ValidatorRow>(LOCK_VALIDATOR, [validatorId]);
  const validator = locked.rows[0];
  const state = validator === undefined ? undefined : codes.readValidator(validator);
  const deleted =
    validator === undefined || state === undefined
      ? 0
      : await pruneKey(connection, codes, validator, state, maxEntries);
  // Of a key whose record fails nothing is deleted, whatever was tried; the next key's turn comes.
  if (deleted === 0) await connection.query('ROLLBACK');
  else await commit(connection);
  return { deleted, validatorId };
}

async function pruneKey(
  connection: Connection,
  codes: RowCodes,
  validator: ValidatorRow,
  state: ValidatorState,
  maxEntries: number,
): Promise<number> {
  const { id, public_key: publicKey } = validator;
  const slotHorizon = (state.highest.blockSlot ?? 0) - RETAINED_SLOTS;
  const blocks = await readBlocks(connection, codes, publicKey, OLDEST_BLOCKS, [id, slotHorizon, maxEntries]);
  if (blocks === undefined) return 0;
  const epochHorizon = (state.highest.targetEpoch ?? 0) - RETAINED_EPOCHS;
  const voteValues = [id, epochHorizon, maxEntries - blocks.length];
  const votes = await readVotes(connection, codes, publicKey, OLDEST_ATTESTATIONS, voteValues);
  if (votes === undefined) return 0;

  const sources = votes.map(({ sourceEpoch }) => sourceEpoch);
  const targets = votes.map(({ targetEpoch }) => targetEpoch);
  await connection.query(DELETE_BLOCKS, [id, blocks.map(({ slot }) => slot)]);
  await connection.query(DELETE_ATTESTATIONS, [id, sources, targets]);
  const keptBlocks = await readBlocks(connection, codes, publicKey, FIRST_KEPT_BLOCK, [id]);
  const keptVotes = await readVotes(connection, codes, publicKey, FIRST_KEPT_ATTESTATIONS, [id]);
  if (!isKept(keptBlocks, state.highest.blockSlot) || !isKept(keptVotes, state.highest.targetEpoch)) return 0;
  const after: ValidatorState = {
    highest: state.highest,
    lowWater: risenMarks(state.lowWater, { blocks, votes }, { blocks: keptBlocks, votes: keptVotes }),
    blocks: state.blocks - blocks.length,
    attestations: state.attestations - votes.length,
  };
  await execute(connection, updateValidators(codes, [{ validator, state: after }]));
  return blocks.length + votes.length;
}

/** The entry at the highest mark always stays, so a key with a mark has an entry. */
function isKept<Entry>(kept: readonly Entry[] | undefined, highestMark: number | null): kept is readonly Entry[] {
  return kept !== undefined && (kept.length > 0 || highestMark === null);
}

async function readBlocks(
  connection: Connection,
  codes: RowCodes,
  publicKey: Uint8Array,
  text: string,
  values: unknown[],
): Promise<BlockEntry[] | undefined> {
  return codes.readBlocks(publicKey, (await connection.query<BlockRow>(text, values)).rows);
}

async function readVotes(
  connection: Connection,
  codes: RowCodes,
  publicKey: Uint8Array,
  text: string,
  values: unknown[],
): Promise<AttestationEntry[] | undefined> {
  return codes.readAttestations(publicKey, (await connection.query<AttestationRow>(text, values)).rows);
}

interface Entries {
  readonly blocks: readonly BlockEntry[];
  readonly votes: readonly AttestationEntry[];
}

/** The rule of pruning.ts; `kept` holds the entries with the lowest slot, source and target. */
function risenMarks(marks: LowWaterMarks, deleted: Entries, kept: Entries): LowWaterMarks {
  const lowestSlot = Math.min(...kept.blocks.map(({ slot }) => slot));
  const lowestTarget = Math.min(...kept.votes.map(({ targetEpoch }) => targetEpoch));
  const lowestSource = Math.min(...kept.votes.map(({ sourceEpoch }) => sourceEpoch));
  const deletedSources = deleted.votes.map(({ sourceEpoch }) => sourceEpoch);
  return {
    slot: deleted.blocks.length === 0 ? marks.slot : highest([marks.slot, lowestSlot]),
    ...(deleted.votes.length === 0
      ? { sourceEpoch: marks.sourceEpoch, targetEpoch: marks.targetEpoch }
      : {
          sourceEpoch: highest([marks.sourceEpoch, ...deletedSources, lowestSource]),
          targetEpoch: highest([marks.targetEpoch, lowestTarget]),
        }),
  };
}
