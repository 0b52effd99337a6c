// The state table as `server --check` and the `slashing` commands of a service read it. No enclave does.

import { refuseRecord } from '../../ceremony/key-record.ts';
import { autoUnseal, type BootChamberParts, type UnsealParts } from '../../signer/chamber/boot-chamber.ts';
import type { MasterKey } from '../../signer/chamber/master-key.ts';
import {
  CustodyFailure,
  masterKeyLost,
  patiently,
  recordIn,
  StateTableFailure,
} from '../../signer/chamber/startup-failures.ts';
import type { Latch } from '../../signer/chamber/state-rows.ts';

/**
 * For a command that runs while the signers do: the master key of a table that they have initialised; nothing is ever
 * written.
 * @throws StateTableFailure, also for a table that is fresh or sealed; CustodyFailure
 */
export async function unsealOnly(parts: UnsealParts): Promise<MasterKey> {
  const { table } = parts;
  const { latch, masterKey, rootToken } = await patiently(table, () => table.readBoot());
  if (latch !== undefined) {
    throw new StateTableFailure(table.tableName, 'SEAL_OVERRIDE is there: nothing is unsealed until it is deleted');
  }
  if (masterKey === undefined) {
    throw new StateTableFailure(
      table.tableName,
      'it has no MASTER_KEY row: start the server once, which initialises it',
    );
  }
  return (await autoUnseal({ masterKey, rootToken }, parts)).masterKey;
}

/**
 * Whether a start could go on with what the table holds, as far as that is known without opening a share and without
 * writing: `server --check`.
 * @returns its latch
 * @throws StateTableFailure, CustodyFailure
 */
export async function lookAtChamber({
  table,
  terms,
}: Pick<BootChamberParts, 'table' | 'terms'>): Promise<Latch | undefined> {
  const { latch, masterKey, rootToken, hasAuthHead } = await patiently(table, () => table.readBoot());
  if (latch !== undefined) return latch;
  if (masterKey === undefined && (rootToken !== undefined || hasAuthHead)) throw masterKeyLost(table);
  const refused = masterKey && refuseRecord(recordIn(masterKey), terms);
  if (refused !== undefined) throw new CustodyFailure(refused);
  return undefined;
}
