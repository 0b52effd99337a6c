// Brings a database of version 1 up to date, inside the transaction that opens it: all of it or nothing. Every row is
// verified under the codes of version 1 first; one key that fails refuses the upgrade, because its new head would vouch
// for what nobody can vouch for. Entries keep their rows and codes; heads and the record are written anew. What version
// 1 pruned is not known: what lies below the lowest entry there is counts as pruned, for good.

import { randomFillSync } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { entrySum, historyCodes } from '../../history/codes.ts';
import type { KeyState } from '../../history/state.ts';
import { STORE_ID_BYTES } from '../../new-store.ts';
import type { DatabaseOptions } from '../options.ts';
import { bytesOf, bytesOrNull, cellsOf, damaged, isDamage, numberOf, numberOrNull } from './cells.ts';
import { type Head, headTable } from './heads.ts';
import { newRecord, storeRecord, withKeys } from './record.ts';
import { METADATA_TABLE, STAGED_TABLE, VALIDATORS_TABLE } from './tables.ts';

export type UpgradeOutcome =
  | { readonly kind: 'upgraded' }
  /** The metadata fails its code, or there are more or fewer keys than it says. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'damaged'; readonly publicKey: string };

type Options = Pick<DatabaseOptions, 'genesisValidatorsRoot' | 'integrity'>;

export function upgradeFromVersion1(connection: DatabaseSync, options: Options): UpgradeOutcome {
  const keys = verifiedCount(connection, options);
  if (keys === undefined) return { kind: 'refused' };
  connection.exec('ALTER TABLE validators RENAME TO validators_1; DROP TABLE metadata');
  connection.exec(METADATA_TABLE + VALIDATORS_TABLE + STAGED_TABLE);
  const heads = headTable(connection, options.integrity);
  const verified = headReader(connection, options);
  const next = connection.prepare('SELECT * FROM validators_1 WHERE id > ? ORDER BY id LIMIT 1');
  const added: Uint8Array[] = [];
  let after = 0;
  for (let count = 0; ; count++) {
    let publicKey = 'a key that cannot be read';
    try {
      const row = next.get(after);
      if (row === undefined) {
        if (count !== keys) return { kind: 'refused' };
        break;
      }
      publicKey = `0x${Buffer.from(bytesOf(row['public_key'])).toString('hex')}`;
      const head = verified(row);
      heads.insert(head);
      added.push(head.publicKey);
      after = numberOf(row['id']);
    } catch (error) {
      if (isDamage(error)) return { kind: 'damaged', publicKey };
      throw error;
    }
  }
  connection.exec('DROP TABLE validators_1');
  const id = randomFillSync(new Uint8Array(STORE_ID_BYTES));
  storeRecord(connection, options).insert(withKeys(newRecord(id), added));
  return { kind: 'upgraded' };
}

const NO_PUBLIC_KEY = new Uint8Array(48);

/** How many keys the metadata of version 1 says there are. */
function verifiedCount(connection: DatabaseSync, { genesisValidatorsRoot, integrity }: Options): number | undefined {
  const row = connection.prepare('SELECT validator_count, code FROM metadata WHERE id = 1').get();
  const { validator_count: count, code } = row ?? {};
  if (typeof count !== 'number' || !(code instanceof Uint8Array)) return undefined;
  const fields = [1, genesisValidatorsRoot, Buffer.from(integrity.kind), count];
  return integrity.verify(code, 'metadata', NO_PUBLIC_KEY, fields) ? count : undefined;
}

type Row = Readonly<Record<string, Parameters<typeof numberOf>[0]>>;

/** The columns of a head of version 1, in the order of its code. */
const COLUMNS_1 = [
  ...['low_slot', 'high_slot', 'low_source_epoch', 'low_target_epoch', 'high_source_epoch', 'high_target_epoch'],
  ...['block_count', 'block_digest', 'attestation_count', 'attestation_digest'],
];

/** Verifies a head of version 1 with all its entries; the function throws `slashing_integrity`. */
function headReader(connection: DatabaseSync, { integrity }: Options): (row: Row) => Head {
  const codes = historyCodes(integrity);
  const blocks = connection.prepare('SELECT slot, signing_root, code FROM blocks WHERE validator = ? ORDER BY slot');
  const votes = connection.prepare(
    `SELECT target_epoch, source_epoch, signing_root, code FROM attestations WHERE validator = ?
     ORDER BY target_epoch, source_epoch`,
  );
  for (const statement of [blocks, votes]) statement.setReturnArrays(true);

  function readBlocks(id: number, publicKey: Uint8Array) {
    const kind = entriesOfVersion1();
    for (const row of blocks.iterate(id)) {
      const cells = cellsOf(row);
      const entry = { slot: numberOf(cells[0]), signingRoot: bytesOrNull(cells[1]) };
      kind.add(entry.slot, codes.block(publicKey, entry), bytesOf(cells[2]));
    }
    return kind;
  }
  function readVotes(id: number, publicKey: Uint8Array) {
    const kind = entriesOfVersion1();
    for (const row of votes.iterate(id)) {
      const cells = cellsOf(row);
      const entry = {
        targetEpoch: numberOf(cells[0]),
        sourceEpoch: numberOf(cells[1]),
        signingRoot: bytesOrNull(cells[2]),
      };
      kind.add(entry.targetEpoch, codes.attestation(publicKey, entry), bytesOf(cells[3]));
    }
    return kind;
  }

  return (row) => {
    const id = numberOf(row['id']);
    const publicKey = bytesOf(row['public_key']);
    const fields = COLUMNS_1.map((column) => {
      const cell = row[column];
      return cell instanceof Uint8Array ? cell : numberOrNull(cell);
    });
    if (!integrity.verify(bytesOf(row['code']), 'validator', publicKey, [id, ...fields])) throw damaged('validator');
    const [readB, readV] = [readBlocks(id, publicKey), readVotes(id, publicKey)];
    const state: KeyState = {
      lowWater: {
        slot: numberOrNull(row['low_slot']),
        sourceEpoch: numberOrNull(row['low_source_epoch']),
        targetEpoch: numberOrNull(row['low_target_epoch']),
      },
      highest: {
        blockSlot: numberOrNull(row['high_slot']),
        sourceEpoch: numberOrNull(row['high_source_epoch']),
        targetEpoch: numberOrNull(row['high_target_epoch']),
      },
      prunedBelow: { slot: readB.lowest(), targetEpoch: readV.lowest() },
      blocks: readB.confirmed(numberOf(row['block_count']), bytesOf(row['block_digest']), row['high_slot']),
      attestations: readV.confirmed(
        numberOf(row['attestation_count']),
        bytesOf(row['attestation_digest']),
        row['high_target_epoch'],
      ),
      isRetired: false,
    };
    return { id, publicKey, state };
  };
}

/** The digest of version 1 was the XOR of the codes themselves. */
function entriesOfVersion1() {
  const oldSum = entrySum();
  const sum = entrySum();
  let [lowest, highest]: [number | null, number | null] = [null, null];
  return {
    add(place: number, { code, element }: { code: Uint8Array; element: Uint8Array }, stored: Uint8Array): void {
      if (Buffer.compare(code, stored) !== 0) throw damaged('entry');
      oldSum.add(code);
      sum.add(element);
      lowest ??= place;
      highest = place;
    },
    lowest: () => lowest,
    confirmed(count: number, digest: Uint8Array, mark: Row[string]) {
      if (!oldSum.isWhole({ count, digest })) throw damaged('entries are missing');
      if (highest !== null && highest > numberOf(mark)) throw damaged('an entry lies beyond the marks');
      return sum.set();
    },
  };
}
