// Deletes entries by the rule of history/prune.ts: oldest first, some at a time, one transaction a slice. A key whose
// rows fail their check is left alone: its requests are refused until it is repaired. So is one that an import is
// applied to.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { withoutEntry } from '../../history/codes.ts';
import {
  forgetBlocks,
  forgetVotes,
  horizonOf,
  RETAINED_EPOCHS,
  RETAINED_SLOTS,
  type VoteEpochs,
} from '../../history/prune.ts';
import type { EntrySet, KeyState } from '../../history/state.ts';
import type { DatabaseOptions } from '../options.ts';
import { damaged, isDamage, numberOf } from '../tables/cells.ts';
import { entryTables } from '../tables/entries.ts';
import { type Head, headTable } from '../tables/heads.ts';
import { inTransaction } from '../tables/schema.ts';

/** Heads looked at in one slice. */
const SLICE_VALIDATORS = 1000;
/** Votes of a key from which on its lowest source is not looked for, which needs all of them: a later step finds it. */
const MAX_VOTES_LOOKED_AT = 20_000;

export function pruner(
  connection: DatabaseSync,
  { integrity }: DatabaseOptions,
  isHeld: (publicKey: Uint8Array) => boolean,
) {
  const heads = headTable(connection, integrity);
  const entries = entryTables(connection, integrity);
  const lastId = connection.prepare('SELECT max(id) AS id FROM validators');
  const candidates = connection.prepare(
    `SELECT id FROM validators WHERE id > ? AND id <= ?
     AND (low_slot < high_slot - ${RETAINED_SLOTS} OR low_target_epoch < high_target_epoch - ${RETAINED_EPOCHS})`,
  );
  const lowestSlot = connection.prepare('SELECT min(slot) FROM blocks WHERE validator = ?');
  const lowestTarget = connection.prepare('SELECT min(target_epoch) FROM attestations WHERE validator = ?');
  const lowestSource = connection.prepare('SELECT min(source_epoch) FROM attestations WHERE validator = ?');
  for (const statement of [lowestSlot, lowestTarget, lowestSource]) statement.setReturnArrays(true);

  /** The highest entry always stays, so there is a lowest one. */
  const lowestOf = (statement: StatementSync, { id }: Head): number =>
    numberOf((statement.get(id) as unknown as [number | null])[0]);

  function pruneBlocks(head: Head, limit: number): [deleted: number, state: KeyState] {
    const old = entries.blocksBelow(head, horizonOf(head.state.highest).slot, limit);
    const last = old.at(-1);
    if (last === undefined) return [0, head.state];
    for (const block of old) entries.removeBlock(head.id, block);
    const marks = forgetBlocks(head.state, last.slot, lowestOf(lowestSlot, head));
    return [old.length, { ...head.state, ...marks, blocks: without(head.state.blocks, old) }];
  }

  function pruneVotes(head: Head, limit: number): [deleted: number, state: KeyState] {
    const old = entries.votesBelow(head, horizonOf(head.state.highest).targetEpoch, limit);
    const last = old.at(-1);
    if (last === undefined) return [0, head.state];
    for (const vote of old) entries.removeVote(head.id, vote);
    const sourceEpoch = old.reduce((highest, vote) => Math.max(highest, vote.sourceEpoch), 0);
    const forgotten: VoteEpochs = { sourceEpoch, targetEpoch: last.targetEpoch };
    const isLong = head.state.attestations.count > MAX_VOTES_LOOKED_AT;
    const marks = forgetVotes(head.state, forgotten, {
      sourceEpoch: isLong ? sourceEpoch : lowestOf(lowestSource, head),
      targetEpoch: lowestOf(lowestTarget, head),
    });
    return [old.length, { ...head.state, ...marks, attestations: without(head.state.attestations, old) }];
  }

  function pruneKey(id: number, limit: number): number {
    connection.exec('SAVEPOINT validator');
    try {
      const head = heads.findById(id);
      if (head === undefined || isHeld(head.publicKey)) return 0;
      const [blocks, state] = pruneBlocks(head, limit);
      const [votes, after] = pruneVotes({ ...head, state }, limit - blocks);
      if (blocks + votes > 0) heads.update({ ...head, state: after });
      return blocks + votes;
    } catch (error) {
      if (!isDamage(error)) throw error;
      connection.exec('ROLLBACK TO validator');
      return 0;
    } finally {
      connection.exec('RELEASE validator');
    }
  }

  return (afterId: number, maxEntries: number): { deleted: number; nextId: number | null } => {
    const upTo = afterId + SLICE_VALIDATORS;
    const ids = candidates.all(afterId, upTo).map((row) => numberOf(row['id']));
    if (ids.length > 0) {
      const deleted = inTransaction(connection, () => {
        let count = 0;
        for (const id of ids) if (count < maxEntries) count += pruneKey(id, maxEntries - count);
        return count;
      });
      if (deleted > 0) return { deleted, nextId: afterId };
    }
    return { deleted: 0, nextId: upTo >= Number(lastId.get()?.['id'] ?? 0) ? null : upTo };
  };
}

function without(set: EntrySet, old: Parameters<typeof withoutEntry>[1][]): EntrySet {
  if (old.length >= set.count) throw damaged('more entries than the head knows of');
  return old.reduce(withoutEntry, set);
}
