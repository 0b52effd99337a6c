// Forgets what the rule of history/prune.ts lets go, one key a transaction and at most so many entries. A key whose
// record fails its codes, or is not whole, is left as it is.

import { type HistoryCodes, withoutEntry } from '../../history/codes.ts';
import { higher } from '../../history/higher.ts';
import {
  forgetBlocks,
  forgetVotes,
  holdsForgotten,
  horizonOf,
  RETAINED_EPOCHS,
  RETAINED_SLOTS,
  type VoteEpochs,
} from '../../history/prune.ts';
import type { BlockEntry, KeyState, VoteEntry } from '../../history/state.ts';
import { type Connection, commit } from '../connection/connections.ts';
import { BEGIN } from '../connection/transactions.ts';
import { execute, updateHeads } from '../tables/record.ts';
import {
  type BlockRow,
  HEAD_COLUMNS,
  type HeadRow,
  openHeadRow,
  type ReadEntries,
  readBlockRows,
  readVoteRows,
  type VoteRow,
} from '../tables/rows.ts';

const NEXT_KEY = `
  SELECT v.id FROM strongroom.validators v
  WHERE v.id > $1 AND (
    EXISTS (SELECT FROM strongroom.blocks b WHERE b.validator_id = v.id AND b.slot < v.highest_slot - ${RETAINED_SLOTS})
    OR EXISTS (SELECT FROM strongroom.attestations a
               WHERE a.validator_id = v.id AND a.target_epoch < v.highest_target_epoch - ${RETAINED_EPOCHS}))
  ORDER BY v.id LIMIT 1`;

const LOCK_HEAD = `SELECT ${HEAD_COLUMNS} FROM strongroom.validators WHERE id = $1 FOR UPDATE`;

const OLDEST_BLOCKS = `
  SELECT slot, signing_root, code FROM strongroom.blocks
  WHERE validator_id = $1 AND slot < $2 ORDER BY slot LIMIT $3`;

const OLDEST_VOTES = `
  SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
  WHERE validator_id = $1 AND target_epoch < $2 ORDER BY target_epoch, source_epoch LIMIT $3`;

const DELETE_BLOCKS = 'DELETE FROM strongroom.blocks WHERE validator_id = $1 AND slot = ANY ($2::bigint[])';

const DELETE_VOTES = `
  DELETE FROM strongroom.attestations a USING unnest($2::bigint[], $3::bigint[]) AS old (source_epoch, target_epoch)
  WHERE a.validator_id = $1 AND a.target_epoch = old.target_epoch AND a.source_epoch = old.source_epoch`;

const FIRST_KEPT_BLOCK = `
  SELECT slot, signing_root, code FROM strongroom.blocks WHERE validator_id = $1 ORDER BY slot LIMIT 1`;

const FIRST_KEPT_VOTES = `
  (SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
   WHERE validator_id = $1 ORDER BY target_epoch LIMIT 1)
  UNION ALL
  (SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
   WHERE validator_id = $1 ORDER BY source_epoch LIMIT 1)`;

export interface PruneOutcome {
  readonly deleted: number;
  /** The key that was looked at; undefined when no later key has anything to prune. */
  readonly validatorId: number | undefined;
}

/** Prune the first key after `afterId` that has something to prune. On rejection the connection must be closed. */
export async function pruneNextKey(
  connection: Connection,
  codes: HistoryCodes,
  afterId: number,
  maxEntries: number,
): Promise<PruneOutcome> {
  const next = await connection.query<{ id: number }>(NEXT_KEY, [afterId]);
  const validatorId = next.rows[0]?.id;
  if (validatorId === undefined) return { deleted: 0, validatorId };
  await connection.query(BEGIN);
  const [head] = (await connection.query<HeadRow>(LOCK_HEAD, [validatorId])).rows;
  const state = head === undefined ? undefined : openHeadRow(codes, head);
  const deleted =
    head === undefined || state === undefined ? 0 : await pruneKey(connection, codes, { head, state }, maxEntries);
  // Nothing of a key is deleted whose record fails, whatever was tried; the next key's turn comes.
  if (deleted === 0) await connection.query('ROLLBACK');
  else await commit(connection);
  return { deleted, validatorId };
}

async function pruneKey(
  connection: Connection,
  codes: HistoryCodes,
  { head, state }: { readonly head: HeadRow; readonly state: KeyState },
  maxEntries: number,
): Promise<number> {
  const { id, public_key: publicKey } = head;
  const horizon = horizonOf(state.highest);
  const readBlocks = async (text: string, values: unknown[]) =>
    readBlockRows(codes, publicKey, (await connection.query<BlockRow>(text, values)).rows);
  const readVotes = async (text: string, values: unknown[]) =>
    readVoteRows(codes, publicKey, (await connection.query<VoteRow>(text, values)).rows);

  const blocks = await readBlocks(OLDEST_BLOCKS, [id, horizon.slot, maxEntries]);
  if (blocks === undefined) return 0;
  const votes = await readVotes(OLDEST_VOTES, [id, horizon.targetEpoch, maxEntries - blocks.entries.length]);
  if (votes === undefined) return 0;
  if (holdsForgotten(state, { blocks: blocks.entries, attestations: votes.entries })) return 0;
  if (blocks.entries.length > state.blocks.count || votes.entries.length > state.attestations.count) return 0;

  const sources = votes.entries.map(({ sourceEpoch }) => sourceEpoch);
  const targets = votes.entries.map(({ targetEpoch }) => targetEpoch);
  await connection.query(DELETE_BLOCKS, [id, blocks.entries.map(({ slot }) => slot)]);
  await connection.query(DELETE_VOTES, [id, sources, targets]);
  const keptBlocks = await readBlocks(FIRST_KEPT_BLOCK, [id]);
  const keptVotes = await readVotes(FIRST_KEPT_VOTES, [id]);
  if (!isKept(keptBlocks, state.highest.blockSlot) || !isKept(keptVotes, state.highest.targetEpoch)) return 0;
  const after: KeyState = {
    ...state,
    ...marksAfter(state, [blocks.entries, votes.entries], [keptBlocks.entries, keptVotes.entries]),
    blocks: blocks.codes.reduce(withoutEntry, state.blocks),
    attestations: votes.codes.reduce(withoutEntry, state.attestations),
  };
  await execute(connection, updateHeads(codes, [{ head, state: after }]));
  return blocks.entries.length + votes.entries.length;
}

/** The entry at the highest mark always stays, so a key with a mark has an entry. */
function isKept<Entry>(kept: ReadEntries<Entry> | undefined, highestMark: number | null): kept is ReadEntries<Entry> {
  return kept !== undefined && (kept.entries.length > 0 || highestMark === null);
}

type Entries = readonly [blocks: readonly BlockEntry[], votes: readonly VoteEntry[]];

/** `kept` holds the entries with the lowest slot, source and target that stay. */
function marksAfter(
  state: KeyState,
  [blocks, votes]: Entries,
  [keptBlocks, keptVotes]: Entries,
): Pick<KeyState, 'lowWater' | 'prunedBelow'> {
  const slots = blocks.map(({ slot }) => slot);
  const lowestSlot = Math.min(...keptBlocks.map(({ slot }) => slot));
  const marks = forgetBlocks(state, slots.reduce<number | null>(higher, null), lowestSlot);
  if (votes.length === 0) return marks;
  return forgetVotes(marks, epochsOf(votes, Math.max), epochsOf(keptVotes, Math.min));
}

function epochsOf(votes: readonly VoteEntry[], choose: (...epochs: number[]) => number): VoteEpochs {
  return {
    sourceEpoch: choose(...votes.map(({ sourceEpoch }) => sourceEpoch)),
    targetEpoch: choose(...votes.map(({ targetEpoch }) => targetEpoch)),
  };
}
