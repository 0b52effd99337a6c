// A change of policies and tokens as one transaction: the rows, and the head at the next revision. It starts from the
// manifest of the verified head, never from rows that happen to be in the table.

import assert from 'node:assert/strict';
import { makeHead, makeRow, newCommit, type RowFields, rowCode } from './rows.ts';
import { type AuthSnapshot, snapshotOf, verifyRow } from './snapshot.ts';
import type { AuthWrite } from './state.ts';

export interface AuthChange<Answer> {
  readonly kind: 'change';
  readonly puts: readonly { readonly pk: string; readonly fields: RowFields }[];
  readonly deletes: readonly string[];
  readonly answer: (next: AuthSnapshot) => Answer;
}

interface Prepared {
  readonly write: AuthWrite;
  readonly next: AuthSnapshot;
}

export function prepare(
  rowKey: Uint8Array,
  snapshot: AuthSnapshot,
  { puts, deletes }: Pick<AuthChange<unknown>, 'puts' | 'deletes'>,
): Prepared {
  assert(puts.length + deletes.length > 0, 'a change changes something');
  const commit = newCommit(snapshot.revision + 1);
  const named = new Map(snapshot.manifest.rows);
  const rows = new Map(snapshot.rows);
  for (const pk of deletes) named.delete(pk);
  const written = puts.map(({ pk, fields }) => makeRow(rowKey, pk, commit, fields));
  for (const row of written) {
    const readBack = verifyRow(rowKey, row);
    assert(readBack !== undefined, 'what is written can be read');
    named.set(row.pk, rowCode(row));
    rows.set(row.pk, readBack);
  }
  const { root } = snapshot.manifest;
  const manifest = { root: root !== null && named.has(root) ? root : null, rows: named };
  const head = makeHead(rowKey, commit, manifest);
  const changes = [...deletes.map((pk) => ({ delete: pk })), ...written.map((row) => ({ put: row }))];
  return { write: { changes, head }, next: snapshotOf(head, manifest, rows) };
}

/** Its rows are the ones that count, and what it deleted is not there. */
export function isApplied({ manifest }: AuthSnapshot, { changes }: AuthWrite): boolean {
  return changes.every((change) =>
    'put' in change ? manifest.rows.get(change.put.pk) === rowCode(change.put) : !manifest.rows.has(change.delete),
  );
}
