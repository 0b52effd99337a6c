// The reasons why there is no master key: custody keys that do not work, a record that cannot be read, or a lost
// record.

import { strict as assert } from 'node:assert';
import { describeKeyResult, type KeyResult } from '../../ceremony/custody-keys.ts';
import { type MasterKeyRecord, parseRecord } from '../../ceremony/record.ts';
import { type CustodyRefusal, malformedRecord } from '../../ceremony/refusals.ts';
import type { Log } from '../../observe/log.ts';
import { StateTableFailure } from './startup-failures.ts';
import type { MasterKeyRow } from './state-rows.ts';
import type { StateTable } from './state-table.ts';

/** specification/operating.md#startup-failures, 8 and 9: no master key, and why. */
export class CustodyFailure extends Error {
  readonly startupFailure: 8 | 9;

  constructor({ message, startupFailure }: Pick<CustodyRefusal, 'message' | 'startupFailure'>) {
    super(message);
    this.name = 'CustodyFailure';
    this.startupFailure = startupFailure;
  }
}

/** @throws CustodyFailure */
export function recordIn(row: MasterKeyRow): MasterKeyRecord {
  const record = parseRecord(row.record);
  // The copy beside the record is for the watcher; whoever changed one alone has altered the row.
  if (record === undefined || record.generation !== row.generation) throw new CustodyFailure(malformedRecord());
  return record;
}

/**
 * Policies, tokens or a root token without the key they were written under: something was lost
 * (specification/custody.md#states).
 */
export function masterKeyLost({ tableName }: StateTable): StateTableFailure {
  return new StateTableFailure(
    tableName,
    'it has rows of an earlier master key and no MASTER_KEY row. Restore that row from a point-in-time recovery: a new master key ' +
      'could open nothing that is encrypted under the earlier one. To begin anew on purpose, use a new table',
  );
}

/** @throws CustodyFailure; a custody key that did not serve is logged when the others suffice */
export function servedOrThrow<Served extends { readonly ok: true; readonly keys: readonly KeyResult[] }>(
  result: Served | CustodyRefusal,
  log: Log,
): Served {
  if (!result.ok) throw new CustodyFailure(result);
  for (const key of result.keys) {
    if (!key.ok) log.warn({ custody_key: describeKeyResult(key) }, 'a custody key did not serve; the others suffice');
  }
  assert(result.keys.some((key) => key.ok));
  return result;
}
