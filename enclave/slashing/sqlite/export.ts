// Reads histories out of the database, in small steps, from one state of it. What comes out is never weaker than what
// is in (carried-entries.ts).

import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../observe/clock.ts';
import { exportedBlocks, exportedVotes } from '../history/carried-entries.ts';
import type { PublicKeyHex, ValidatorHistory } from '../types.ts';
import { writeHistory } from './calls.ts';
import { type EntryTables, entryTables } from './entries.ts';
import { type DatabaseOptions, openSnapshot } from './schema.ts';
import { bytesOf, lowWaterOf, marksOf, type Validator, validatorTable } from './validators.ts';

/** Entries after which a step ends, so that checks go on in between. */
const STEP_ENTRIES = 1000;
const STEP_VALIDATORS = 200;
/** Exports under way at once; one more is refused. */
const MAX_EXPORTS = 8;
/** How long an export waits for its reader. While one is open the write-ahead log keeps all that is written after it. */
export const EXPORT_STALL_MS = 60_000;

interface HistoryExport {
  /** The next histories as JSON text; none at the end. */
  next(): string[];
  close(): void;
}

/** The exports under way, by their numbers. One whose reader is gone ends with the next call of anybody. */
export function heldExports(options: DatabaseOptions, clock: Clock) {
  const held = new Map<number, { readonly histories: HistoryExport; askedAt: number }>();

  function end(exportId: number): void {
    held.get(exportId)?.histories.close();
    held.delete(exportId);
  }

  return {
    begin(exportId: number, publicKeys: readonly PublicKeyHex[] | undefined): void {
      if (held.size >= MAX_EXPORTS) throw new Error('too many exports are under way');
      held.set(exportId, { histories: openExport(options, publicKeys), askedAt: clock.monotonic() });
    },
    next(exportId: number): string[] {
      const one = held.get(exportId);
      if (one === undefined) throw new Error('the export is over');
      one.askedAt = clock.monotonic();
      return one.histories.next();
    },
    end,
    endStalled(): void {
      for (const [exportId, { askedAt }] of held) {
        if (clock.monotonic() - askedAt > EXPORT_STALL_MS) end(exportId);
      }
    },
    endAll(): void {
      for (const exportId of held.keys()) end(exportId);
    },
  };
}

/** @param publicKeys undefined for all */
function openExport(options: DatabaseOptions, publicKeys: readonly PublicKeyHex[] | undefined): HistoryExport {
  const connection = openSnapshot(options.path);
  const validators = validatorTable(connection, options.integrity);
  const entries = entryTables(connection, options.integrity);
  const keys = publicKeys === undefined ? allKeys(connection) : sortedKeys(publicKeys);

  return {
    next() {
      const histories: string[] = [];
      let read = 0;
      let count = 0;
      while (count < STEP_VALIDATORS && read < STEP_ENTRIES) {
        const { value: key, done } = keys.next();
        if (done === true) return histories;
        count += 1;
        const validator = validators.find(key);
        if (validator === undefined) continue;
        histories.push(writeHistory(exportOf(entries, validator)));
        read += validator.blockCount + validator.attestationCount;
      }
      return histories.length > 0 ? histories : this.next();
    },
    close: () => connection.close(),
  };
}

function exportOf(entries: EntryTables, validator: Validator): ValidatorHistory {
  const lowWater = lowWaterOf(validator);
  return {
    publicKey: `0x${Buffer.from(validator.publicKey).toString('hex')}`,
    blocks: exportedBlocks(entries.allBlocks(validator), lowWater),
    attestations: exportedVotes(entries.allVotes(validator), lowWater, marksOf(validator)),
  };
}

/** One key after the other; a cursor of SQLite would do, and would be one more thing to close. */
function* allKeys(connection: DatabaseSync): Generator<Uint8Array> {
  const first = connection.prepare('SELECT public_key FROM validators ORDER BY public_key LIMIT 1');
  const after = connection.prepare(
    'SELECT public_key FROM validators WHERE public_key > ? ORDER BY public_key LIMIT 1',
  );
  for (let row = first.get(); row !== undefined; ) {
    const key = bytesOf(row['public_key']);
    yield key;
    row = after.get(key);
  }
}

function* sortedKeys(publicKeys: readonly PublicKeyHex[]): Generator<Uint8Array> {
  for (const key of [...new Set(publicKeys)].sort()) yield Buffer.from(key.slice(2), 'hex');
}
