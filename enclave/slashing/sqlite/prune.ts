// Deletes entries behind the low-water mark by the rule of pruning.ts: oldest first, some at a time, one transaction
// a slice. A key whose rows fail their check is left alone: its requests are refused until it is repaired.

import type { DatabaseSync } from 'node:sqlite';
import { RETAINED_EPOCHS, RETAINED_SLOTS } from '../history/prune.ts';
import { isDamage } from './check.ts';
import { entryTables } from './entries.ts';
import { type DatabaseOptions, inTransaction } from './schema.ts';
import { numberOf, type Validator, validatorTable } from './validators.ts';

/** Heads looked at in one slice. */
const SLICE_VALIDATORS = 1000;

export function pruner(connection: DatabaseSync, { integrity }: DatabaseOptions) {
  const validators = validatorTable(connection, integrity);
  const entries = entryTables(connection, integrity);
  const lastId = connection.prepare('SELECT max(id) AS id FROM validators');
  const candidates = connection.prepare(
    `SELECT id FROM validators WHERE id > ? AND id <= ?
     AND (low_slot < high_slot - ${RETAINED_SLOTS} OR low_target_epoch < high_target_epoch - ${RETAINED_EPOCHS})`,
  );
  const oldBlocks = connection.prepare(
    'SELECT slot FROM blocks WHERE validator = ? AND slot < ? ORDER BY slot LIMIT ?',
  );
  const oldVotes = connection.prepare(
    `SELECT target_epoch, source_epoch FROM attestations WHERE validator = ? AND target_epoch < ?
     ORDER BY target_epoch, source_epoch LIMIT ?`,
  );
  const lowestSlot = connection.prepare('SELECT min(slot) AS slot FROM blocks WHERE validator = ?');
  const lowestEpochs = connection.prepare(
    'SELECT min(source_epoch) AS source, min(target_epoch) AS target FROM attestations WHERE validator = ?',
  );

  function pruneBlocks(validator: Validator, limit: number): number {
    if (validator.highSlot === null || validator.lowSlot === null) return 0;
    const old = oldBlocks.all(validator.id, validator.highSlot - RETAINED_SLOTS, limit);
    for (const row of old) entries.removeBlock(validator, numberOf(row['slot']));
    validator.lowSlot = Math.max(validator.lowSlot, numberOf(lowestSlot.get(validator.id)?.['slot']));
    return old.length;
  }

  function pruneVotes(validator: Validator, limit: number): number {
    if (validator.highTargetEpoch === null || validator.lowSourceEpoch === null) return 0;
    const old = oldVotes.all(validator.id, validator.highTargetEpoch - RETAINED_EPOCHS, limit).map((row) => ({
      sourceEpoch: numberOf(row['source_epoch']),
      targetEpoch: numberOf(row['target_epoch']),
      signingRoot: null,
    }));
    for (const vote of old) entries.removeVote(validator, vote);
    const kept = lowestEpochs.get(validator.id);
    const deleted = old.map(({ sourceEpoch }) => sourceEpoch);
    validator.lowSourceEpoch = Math.max(validator.lowSourceEpoch, numberOf(kept?.['source']), ...deleted);
    validator.lowTargetEpoch = Math.max(validator.lowTargetEpoch ?? 0, numberOf(kept?.['target']));
    return old.length;
  }

  function pruneValidator(id: number, limit: number): number {
    connection.exec('SAVEPOINT validator');
    try {
      const validator = validators.findById(id);
      if (validator === undefined) return 0;
      const blocks = pruneBlocks(validator, limit);
      const votes = pruneVotes(validator, limit - blocks);
      validators.save(validator);
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
        for (const id of ids) if (count < maxEntries) count += pruneValidator(id, maxEntries - count);
        return count;
      });
      if (deleted > 0) return { deleted, nextId: afterId };
    }
    return { deleted: 0, nextId: upTo >= Number(lastId.get()?.['id'] ?? 0) ? null : upTo };
  };
}
