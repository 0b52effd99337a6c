// The rows of heads: what is known of each key beside its entries (history/state.ts), one row a key. A head is believed
// only when its integrity code is right; a head that is missing is believed only while the database holds as many heads
// as its record says.

import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { historyCodes, type UncheckedHead } from '../history/codes.ts';
import type { RowIntegrity } from '../history/integrity.ts';
import type { KeyState } from '../history/state.ts';
import { bytesOf, damaged, numberOf, numberOrNull } from './cells.ts';

export interface Head {
  /** The row's; entries name it. */
  readonly id: number;
  /** 48 bytes. */
  readonly publicKey: Uint8Array;
  readonly state: KeyState;
}

/** What finds and reads throws SignerError `slashing_integrity` when the row fails its check. */
export interface HeadTable {
  find(publicKey: Uint8Array): Head | undefined;
  findById(id: number): Head | undefined;
  /** The id of the next new head. */
  nextId(): number;
  insert(head: Head): void;
  update(head: Head): void;
}

export function headTable(connection: DatabaseSync, integrity: RowIntegrity): HeadTable {
  const codes = historyCodes(integrity);
  const selected = `SELECT id, public_key, ${COLUMNS.join(', ')} FROM validators`;
  const byKey = connection.prepare(`${selected} WHERE public_key = ?`);
  const byId = connection.prepare(`${selected} WHERE id = ?`);
  const insert = connection.prepare(
    `INSERT INTO validators (id, public_key, ${COLUMNS.join(', ')}) VALUES (?, ?, ${COLUMNS.map(() => '?').join(', ')})`,
  );
  const update = connection.prepare(
    `UPDATE validators SET ${COLUMNS.map((column) => `${column} = ?`).join(', ')} WHERE id = ?`,
  );
  const lastId = connection.prepare('SELECT max(id) FROM validators');
  for (const statement of [byKey, byId, lastId]) statement.setReturnArrays(true);

  function read(row: unknown): Head | undefined {
    if (!Array.isArray(row)) return undefined;
    const publicKey = bytesOf(row[1]);
    const state = codes.openHead(publicKey, uncheckedHead(row));
    if (state === undefined) throw damaged('validator');
    return { id: numberOf(row[0]), publicKey, state };
  }
  function cellsOf({ publicKey, state }: Head) {
    const { highest, lowWater, prunedBelow, blocks, attestations, isRetired } = state;
    const seal = codes.sealHead(publicKey, state);
    return [
      ...[lowWater.slot, lowWater.sourceEpoch, lowWater.targetEpoch],
      ...[highest.blockSlot, highest.sourceEpoch, highest.targetEpoch],
      ...[prunedBelow.slot, prunedBelow.targetEpoch, isRetired ? 1 : 0, blocks.count, attestations.count],
      ...[seal.nonce, seal.blockDigest, seal.attestationDigest, seal.code],
    ];
  }

  return {
    find: (publicKey) => read(byKey.get(publicKey)),
    findById: (id) => read(byId.get(id)),
    nextId: () => ((lastId.get() as unknown as [number | null])[0] ?? 0) + 1,
    insert: (head) => {
      insert.run(head.id, head.publicKey, ...cellsOf(head));
    },
    update: (head) => {
      update.run(...cellsOf(head), head.id);
    },
  };
}

const COLUMNS = [
  ...['low_slot', 'low_source_epoch', 'low_target_epoch'],
  ...['high_slot', 'high_source_epoch', 'high_target_epoch'],
  ...['pruned_slot', 'pruned_target_epoch', 'is_retired', 'block_count', 'attestation_count'],
  ...['nonce', 'block_digest', 'attestation_digest', 'code'],
];

/** The id, the public key, and then COLUMNS. */
function uncheckedHead(row: readonly SQLOutputValue[]): UncheckedHead {
  return {
    state: {
      lowWater: {
        slot: numberOrNull(row[2]),
        sourceEpoch: numberOrNull(row[3]),
        targetEpoch: numberOrNull(row[4]),
      },
      highest: {
        blockSlot: numberOrNull(row[5]),
        sourceEpoch: numberOrNull(row[6]),
        targetEpoch: numberOrNull(row[7]),
      },
      prunedBelow: { slot: numberOrNull(row[8]), targetEpoch: numberOrNull(row[9]) },
      isRetired: flagOf(row[10]),
    },
    blockCount: numberOf(row[11]),
    attestationCount: numberOf(row[12]),
    seal: {
      nonce: bytesOf(row[13]),
      blockDigest: bytesOf(row[14]),
      attestationDigest: bytesOf(row[15]),
      code: bytesOf(row[16]),
    },
  };
}

function flagOf(cell: SQLOutputValue | undefined): boolean {
  if (cell !== 0 && cell !== 1) throw damaged('a flag is neither set nor unset');
  return cell === 1;
}
