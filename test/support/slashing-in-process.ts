// The SQLite store as the database worker puts it together, in this thread: each turn that long work waits for is told
// to the test, which may do something in between, and goes on at once.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { exportHistories } from '../../signer/slashing/operations/export.ts';
import { mergeStaged } from '../../signer/slashing/operations/import.ts';
import { writePart } from '../../signer/slashing/operations/import-text.ts';
import { storeOperations } from '../../signer/slashing/operations/operations.ts';
import { batchChecker } from '../../signer/slashing/sqlite/check.ts';
import { stagedHistories } from '../../signer/slashing/sqlite/staged-histories.ts';
import { databaseStore } from '../../signer/slashing/sqlite/store.ts';
import { keyList } from '../../signer/slashing/sqlite/tables/key-list.ts';
import { storeRecord } from '../../signer/slashing/sqlite/tables/record.ts';
import { type DatabaseOptions, openDatabase } from '../../signer/slashing/sqlite/tables/schema.ts';
import { packBatch, unpackBatch } from '../../signer/slashing/sqlite/wire.ts';
import type { MergeStrategy, PublicKeyHex, SlashableMessage, ValidatorHistory } from '../../signer/slashing/types.ts';

/** `entries`: how many were handled since the work said so last; undefined where it wants a turn. */
export type OnTurn = (entries: number | undefined) => unknown;

export function storeInProcess(options: DatabaseOptions, onTurn: OnTurn) {
  const connection = openDatabase(options);
  const records = storeRecord(connection, options);
  const keys = keyList(connection, records);
  const turns = {
    async turn(entries?: number) {
      await onTurn(entries);
      await nextTurn();
    },
    close() {},
  };
  const store = databaseStore({ connection, options, files: { confirm() {} }, keys, turns });
  const staged = stagedHistories(connection, options);
  const check = batchChecker(connection, options, keys);
  return {
    connection,
    options,
    records,
    store,
    operations: storeOperations(store),
    check: (messages: readonly SlashableMessage[]) => check(unpackBatch(packBatch(messages, []))),
    stage: (importId: number, ...histories: readonly ValidatorHistory[]) =>
      staged.add(
        importId,
        histories.map(({ publicKey, ...history }) => [publicKey, writePart(history)]),
      ),
    merge: (importId: number, strategy: MergeStrategy = 'by_key') => mergeStaged(store, staged.of(importId), strategy),
    export: (publicKeys?: readonly PublicKeyHex[]) => exportHistories(store, publicKeys),
    close() {
      store.close();
      connection.close();
    },
  };
}
