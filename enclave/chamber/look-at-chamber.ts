// For `server --check`: whether a start could go on with what the state table holds. It opens no share and writes
// nothing.

import { refuseRecord } from '../../ceremony/envelope.ts';
import type { BootChamberParts } from './boot-chamber.ts';
import { CustodyFailure, masterKeyLost, recordIn } from './custody-failure.ts';
import { patiently } from './startup-failures.ts';
import type { Latch } from './state-rows.ts';

/**
 * Whether a start could go on with what the table holds, as far as that is known without opening a share and without
 * writing: `server --check`.
 * @throws StateTableFailure, CustodyFailure
 */
export async function lookAtChamber({
  table,
  terms,
}: Pick<BootChamberParts, 'table' | 'terms'>): Promise<{ readonly latch: Latch | undefined }> {
  const rows = await patiently(table, () => table.readBoot());
  if (rows.latch !== undefined) return { latch: rows.latch };
  if (rows.masterKey === undefined) {
    if (rows.hasRootToken || rows.hasAuthHead) throw masterKeyLost(table);
    return { latch: undefined };
  }
  const refused = refuseRecord(recordIn(rows.masterKey), terms);
  if (refused !== undefined) throw new CustodyFailure(refused);
  return { latch: undefined };
}
