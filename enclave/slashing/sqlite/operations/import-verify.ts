// What happens to an import before it is decided: every key that it touches is shown to be whole, and the parts of a
// key are counted and, when there are very many, folded. It reads one state of the database, so that checks go on; it
// changes what is staged and nothing else.

import type { DatabaseSync } from 'node:sqlite';
import { historyReducer, type ReducedHistory } from '../../interchange/reduce.ts';
import { writeHistory } from '../history-text.ts';
import type { DatabaseOptions } from '../options.ts';
import { metered, type Steps, stepMeter } from '../steps.ts';
import { damaged } from '../tables/cells.ts';
import { entryTables } from '../tables/entries.ts';
import { headTable } from '../tables/heads.ts';
import { storeRecord } from '../tables/record.ts';
import { inTransaction, openSnapshot } from '../tables/schema.ts';
import type { StagedHistories } from '../tables/staged.ts';

/** Parts of one key's history that are applied as they came. */
const MAX_PARTS = 8;

export interface ImportParts {
  readonly connection: DatabaseSync;
  readonly options: DatabaseOptions;
  readonly staged: StagedHistories;
  readonly stepEntries: number;
}

/** That the import cannot be merged is found out here, while nothing of it is decided. */
export function* verifiedKeys(importId: number, parts: ImportParts): Steps<Uint8Array[]> {
  const { options, staged, stepEntries } = parts;
  const { integrity } = options;
  const snapshot = openSnapshot(options.path);
  try {
    const recordedHeads = headTable(snapshot, integrity);
    const recordedEntries = entryTables(snapshot, integrity);
    const meter = stepMeter(stepEntries);
    const keys: Uint8Array[] = [];
    let isAnyNew = false;
    for (const publicKey of staged.keys(importId)) {
      const head = recordedHeads.find(publicKey);
      isAnyNew ||= head === undefined;
      if (head !== undefined) yield* metered(recordedEntries.read(head, NOWHERE), meter);
      else yield* meter.done(1);
      yield* compact(importId, publicKey, parts);
      keys.push(publicKey);
    }
    const ownRecords = storeRecord(snapshot, options);
    if (isAnyNew && !ownRecords.isWhole(ownRecords.read())) throw damaged('a validator is missing');
    return keys;
  } finally {
    snapshot.close();
  }
}

/** A key in very many parts is folded to one before the decision, so that to apply it is a small step. */
function* compact(importId: number, publicKey: Uint8Array, { connection, staged }: ImportParts): Steps<void> {
  if (staged.partsOf(importId, publicKey) <= MAX_PARTS) return;
  const history = yield* foldedHistory(staged, importId, publicKey);
  yield* staged.removeParts(importId, publicKey);
  const key = `0x${Buffer.from(publicKey).toString('hex')}`;
  inTransaction(connection, () => staged.add(importId, [[key, writeHistory({ publicKey: key, ...history })]]));
}

/** What the parts of a key say together. */
export function* foldedHistory(
  staged: StagedHistories,
  importId: number,
  publicKey: Uint8Array,
): Steps<ReducedHistory> {
  const reducer = historyReducer();
  for (const { part, size } of staged.parts(importId, publicKey)) {
    reducer.add(part);
    yield size;
  }
  return reducer.result();
}

const NOWHERE = { block() {}, vote() {} };
