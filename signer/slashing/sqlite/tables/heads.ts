// The rows of heads (history/state.ts), one row a key. A head is believed only when its integrity code is right; a head
// that is missing is believed only while the database holds as many heads as its record says.

import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { DIGEST_BYTES, type HeadSeal, historyCodes, type UncheckedHead } from '../../history/codes.ts';
import { INTEGRITY_CODE_BYTES, type RowIntegrity } from '../../history/integrity.ts';
import type { Head } from '../../operations/store.ts';
import { bytesOf, damaged, numberOf, numberOrNull } from './cells.ts';

/** What finds and reads throws SignerError `slashing_integrity` when the row fails its check. */
export interface HeadTable {
  find(publicKey: Uint8Array): Head | undefined;
  findById(id: number): Head | undefined;
  nextId(): number;
  insert(head: Head): void;
  update(head: Head): void;
}

export function headTable(connection: DatabaseSync, integrity: RowIntegrity): HeadTable {
  const codes = historyCodes(integrity);
  const columns = COLUMNS.join(', ');
  const byKey = connection.prepare(`SELECT ${columns}, id FROM validators WHERE public_key = ?`);
  const byId = connection.prepare(`SELECT ${columns}, id, public_key FROM validators WHERE id = ?`);
  const insert = connection.prepare(
    `INSERT INTO validators (id, public_key, ${COLUMNS.join(', ')}) VALUES (?, ?, ${COLUMNS.map(() => '?').join(', ')})`,
  );
  const update = connection.prepare(
    `UPDATE validators SET ${COLUMNS.map((column) => `${column} = ?`).join(', ')} WHERE id = ?`,
  );
  const lastId = connection.prepare('SELECT max(id) FROM validators');
  for (const statement of [byKey, byId, lastId]) statement.setReturnArrays(true);

  function read(row: readonly SQLOutputValue[], publicKey: Uint8Array): Head {
    const state = codes.openHead(publicKey, uncheckedHead(row));
    if (state === undefined) throw damaged('validator');
    return { id: numberOf(row[COLUMNS.length]), publicKey, state };
  }
  function cellsOf({ publicKey, state }: Head) {
    const { highest, lowWater, prunedBelow, blocks, attestations, tenure } = state;
    return [
      lowWater.slot,
      lowWater.sourceEpoch,
      lowWater.targetEpoch,
      highest.blockSlot,
      highest.sourceEpoch,
      highest.targetEpoch,
      prunedBelow.slot,
      prunedBelow.targetEpoch,
      tenure,
      blocks.count,
      attestations.count,
      packedSeal(codes.sealHead(publicKey, state)),
    ];
  }

  return {
    find(publicKey) {
      const row: unknown = byKey.get(publicKey);
      return Array.isArray(row) ? read(row, publicKey) : undefined;
    },
    findById(id) {
      const row: unknown = byId.get(id);
      return Array.isArray(row) ? read(row, bytesOf(row[COLUMNS.length + 1])) : undefined;
    },
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
  ...['pruned_slot', 'pruned_target_epoch', 'tenure', 'block_count', 'attestation_count', 'seal'],
];

function uncheckedHead(row: readonly SQLOutputValue[]): UncheckedHead {
  return {
    state: {
      lowWater: { slot: numberOrNull(row[0]), sourceEpoch: numberOrNull(row[1]), targetEpoch: numberOrNull(row[2]) },
      highest: {
        blockSlot: numberOrNull(row[3]),
        sourceEpoch: numberOrNull(row[4]),
        targetEpoch: numberOrNull(row[5]),
      },
      prunedBelow: { slot: numberOrNull(row[6]), targetEpoch: numberOrNull(row[7]) },
      tenure: numberOf(row[8]),
    },
    blockCount: numberOf(row[9]),
    attestationCount: numberOf(row[10]),
    seal: unpackedSeal(bytesOf(row[11])),
  };
}

// One cell for all of it: code, digests, nonce. Each cell of bytes costs an object a read.
const BLOCK_DIGEST = INTEGRITY_CODE_BYTES;
const ATTESTATION_DIGEST = BLOCK_DIGEST + DIGEST_BYTES;
const NONCE = ATTESTATION_DIGEST + DIGEST_BYTES;

function packedSeal({ code, blockDigest, attestationDigest, nonce }: HeadSeal): Uint8Array {
  const seal = new Uint8Array(NONCE + nonce.length);
  seal.set(code);
  seal.set(blockDigest, BLOCK_DIGEST);
  seal.set(attestationDigest, ATTESTATION_DIGEST);
  seal.set(nonce, NONCE);
  return seal;
}

/** A seal that is too short has parts that are too short, and fails its code. */
function unpackedSeal(seal: Uint8Array): HeadSeal {
  return {
    code: seal.subarray(0, BLOCK_DIGEST),
    blockDigest: seal.subarray(BLOCK_DIGEST, ATTESTATION_DIGEST),
    attestationDigest: seal.subarray(ATTESTATION_DIGEST, NONCE),
    nonce: seal.subarray(NONCE),
  };
}
