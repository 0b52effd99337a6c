// Reads histories out of the database, in small steps, from one state of it. What a file has to say is
// history/export.ts: never less than what the store refuses. Entries that pruning would forget next are not written:
// the marks say them.

import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../../../observe/clock.ts';
import { exportedHistory, historyOfFloor } from '../../history/export.ts';
import { higher } from '../../history/higher.ts';
import { forgetBlocks, forgetVotes, horizonOf } from '../../history/prune.ts';
import type { BlockEntry, KeyHistory, KeyState, VoteEntry } from '../../history/state.ts';
import { KEPT_ENTRIES } from '../../interchange/reduce.ts';
import type { PublicKeyHex, StoreFloor } from '../../types.ts';
import { writeHistory } from '../history-text.ts';
import type { DatabaseOptions } from '../options.ts';
import { STEP_ENTRIES, type Steps, stepMeter } from '../steps.ts';
import { bytesOf, damaged } from '../tables/cells.ts';
import { type EntryTables, entryTables } from '../tables/entries.ts';
import { type Head, headTable } from '../tables/heads.ts';
import { storeRecord } from '../tables/record.ts';
import { openSnapshot } from '../tables/schema.ts';

/** Histories in one answer, at most. */
const ANSWER_VALIDATORS = 200;
/** Exports under way at once; one more is refused. */
const MAX_EXPORTS = 8;
/**
 * How long an export waits for its reader. While one is open the write-ahead log keeps all that is written after it.
 */
export const EXPORT_STALL_MS = 60_000;

interface HistoryExport {
  /** The next histories as JSON text; none at the end. */
  next(): Steps<string[]>;
  close(): void;
}

interface HeldExport {
  readonly histories: HistoryExport;
  askedAt: number;
  isReading: boolean;
}

/** The exports under way, by their numbers. One whose reader is gone ends with the next call of anybody. */
export function heldExports(options: DatabaseOptions, clock: Clock) {
  const held = new Map<number, HeldExport>();

  function end(exportId: number): void {
    held.get(exportId)?.histories.close();
    held.delete(exportId);
  }

  return {
    begin(exportId: number, publicKeys: readonly PublicKeyHex[] | undefined): void {
      if (held.size >= MAX_EXPORTS) throw new Error('too many exports are under way');
      const histories = openExport(options, publicKeys);
      held.set(exportId, { histories, askedAt: clock.monotonic(), isReading: false });
    },
    *next(exportId: number): Steps<string[]> {
      const one = held.get(exportId);
      if (one === undefined) throw new Error('the export is over');
      one.isReading = true;
      try {
        return yield* one.histories.next();
      } finally {
        one.isReading = false;
        one.askedAt = clock.monotonic();
      }
    },
    end,
    endStalled(): void {
      for (const [exportId, { askedAt, isReading }] of held) {
        if (!isReading && clock.monotonic() - askedAt > EXPORT_STALL_MS) end(exportId);
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
  try {
    const records = storeRecord(connection, options);
    const store = records.read();
    if (!records.isWhole(store)) throw damaged('a validator is missing');
    return exportFrom(connection, options, store.floor, publicKeys);
  } catch (error) {
    connection.close();
    throw error;
  }
}

function exportFrom(
  connection: DatabaseSync,
  { integrity }: DatabaseOptions,
  floor: StoreFloor | null,
  publicKeys: readonly PublicKeyHex[] | undefined,
): HistoryExport {
  const heads = headTable(connection, integrity);
  const entries = entryTables(connection, integrity);
  const keys = publicKeys === undefined ? allKeys(connection) : sortedKeys(publicKeys);

  /** Undefined: there is nothing to say of the key. */
  function* historyOf(publicKey: Uint8Array): Steps<KeyHistory | undefined> {
    const head = heads.find(publicKey);
    if (head === undefined) return floor === null ? undefined : historyOfFloor(floor);
    const { state, history } = yield* keptHistory(entries, head);
    const said = exportedHistory(state, floor, history);
    return said.blocks.length + said.attestations.length === 0 ? undefined : said;
  }

  return {
    *next() {
      const meter = stepMeter(STEP_ENTRIES);
      const histories: string[] = [];
      let written = 0;
      while (histories.length < ANSWER_VALIDATORS && written < STEP_ENTRIES) {
        const { value: key, done } = keys.next();
        if (done === true) break;
        const history = yield* historyOf(key);
        const size = history === undefined ? 1 : 1 + history.blocks.length + history.attestations.length;
        if (history !== undefined) {
          histories.push(writeHistory({ publicKey: `0x${Buffer.from(key).toString('hex')}`, ...history }));
          written += size;
        }
        yield* meter.done(size);
      }
      return histories;
    },
    close: () => connection.close(),
  };
}

/** What pruning would leave of the key, read whole, and the marks that it would have then. */
function* keptHistory(entries: EntryTables, head: Head): Steps<{ state: KeyState; history: KeyHistory }> {
  const horizon = horizonOf(head.state.highest);
  const blocks: BlockEntry[] = [];
  const attestations: VoteEntry[] = [];
  let forgottenSlot: number | null = null;
  let forgottenVote: { sourceEpoch: number; targetEpoch: number } | null = null;
  yield* entries.read(head, {
    block(entry) {
      if (entry.slot >= horizon.slot) blocks.push(entry);
      else forgottenSlot = higher(forgottenSlot, entry.slot);
    },
    vote(entry) {
      if (entry.targetEpoch >= horizon.targetEpoch) attestations.push(entry);
      else
        forgottenVote = {
          sourceEpoch: Math.max(forgottenVote?.sourceEpoch ?? 0, entry.sourceEpoch),
          targetEpoch: Math.max(forgottenVote?.targetEpoch ?? 0, entry.targetEpoch),
        };
    },
  });
  const lowest = (numbers: readonly number[]) => numbers.reduce((one, other) => Math.min(one, other), Infinity);
  const state = {
    ...head.state,
    ...forgetVotes(forgetBlocks(head.state, forgottenSlot, lowest(blocks.map(({ slot }) => slot))), forgottenVote, {
      sourceEpoch: lowest(attestations.map(({ sourceEpoch }) => sourceEpoch)),
      targetEpoch: lowest(attestations.map(({ targetEpoch }) => targetEpoch)),
    }),
  };
  // Votes that contradict each other in such numbers say no more than the marks; without them one vote says the marks.
  const isLong = attestations.length > 4 * KEPT_ENTRIES;
  return { state, history: { blocks, attestations: isLong ? [] : attestations } };
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
