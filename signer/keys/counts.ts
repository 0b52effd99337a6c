// How many keys there are. Keys of the table count by the status of their row; a key that another source loaded there.

import type { KeySource } from './loaded-key.ts';
import type { KeyStore } from './store.ts';
import type { KeyStatus } from './table/types.ts';

interface KeyCount {
  readonly source: KeySource;
  readonly status: KeyStatus;
  readonly count: number;
}

export function countKeys(
  store: Pick<KeyStore, 'countBySource'>,
  table: { readonly rows: Readonly<Record<KeyStatus, number>> } | undefined,
): readonly KeyCount[] {
  const { filesystem, dynamodb, memory } = store.countBySource();
  const ofTable: KeyCount[] =
    table === undefined
      ? [{ source: 'dynamodb', status: 'active', count: dynamodb }]
      : (['active', 'inactive'] as const).map((status) => ({ source: 'dynamodb', status, count: table.rows[status] }));
  return [
    { source: 'filesystem', status: 'active', count: filesystem },
    ...ofTable,
    { source: 'memory', status: 'active', count: memory },
  ];
}
