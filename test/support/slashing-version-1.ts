// Writes SQLite slashing databases as version 1 of the schema was, with its SQL and its codes.

import { DatabaseSync } from 'node:sqlite';
import { type IntegrityField, type RowIntegrity, rowIntegrity } from '../../enclave/slashing/history/integrity.ts';
import type { ValidatorHistory } from '../../enclave/slashing/types.ts';
import { MAIN_ROOT } from './slashing.ts';

const SCHEMA = `
CREATE TABLE metadata (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  schema_version INTEGER NOT NULL,
  genesis_validators_root BLOB NOT NULL,
  integrity_kind TEXT NOT NULL,
  validator_count INTEGER NOT NULL,
  code BLOB NOT NULL
) STRICT;

CREATE TABLE validators (
  id INTEGER PRIMARY KEY,
  public_key BLOB NOT NULL UNIQUE,
  low_slot INTEGER,
  high_slot INTEGER,
  low_source_epoch INTEGER,
  low_target_epoch INTEGER,
  high_source_epoch INTEGER,
  high_target_epoch INTEGER,
  block_count INTEGER NOT NULL,
  block_digest BLOB NOT NULL,
  attestation_count INTEGER NOT NULL,
  attestation_digest BLOB NOT NULL,
  code BLOB NOT NULL
) STRICT;

CREATE TABLE blocks (
  validator INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  signing_root BLOB,
  code BLOB NOT NULL,
  PRIMARY KEY (validator, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE attestations (
  validator INTEGER NOT NULL,
  target_epoch INTEGER NOT NULL,
  source_epoch INTEGER NOT NULL,
  signing_root BLOB,
  code BLOB NOT NULL,
  PRIMARY KEY (validator, target_epoch, source_epoch)
) STRICT, WITHOUT ROWID;
`;

export interface Version1Key {
  readonly history: ValidatorHistory;
  /** Marks above the lowest entries, as pruning and minimal merging left them. */
  readonly lowWater?: { readonly slot: number; readonly sourceEpoch: number; readonly targetEpoch: number };
}

/** A database of these keys, none of whose entries contradict each other. */
export function writeVersion1(path: string, keys: readonly Version1Key[], integrityKey?: Uint8Array): void {
  const genesisValidatorsRoot = Buffer.from(MAIN_ROOT.slice(2), 'hex');
  const integrity = rowIntegrity({ genesisValidatorsRoot, key: integrityKey });
  const connection = new DatabaseSync(path);
  connection.exec('PRAGMA journal_mode = WAL');
  connection.exec('BEGIN');
  connection.exec(SCHEMA);
  const fields = [1, genesisValidatorsRoot, Buffer.from(integrity.kind), keys.length];
  connection
    .prepare('INSERT INTO metadata VALUES (1, 1, ?, ?, ?, ?)')
    .run(genesisValidatorsRoot, integrity.kind, keys.length, integrity.code('metadata', new Uint8Array(48), fields));
  for (const [index, key] of keys.entries()) writeKey(connection, integrity, index + 1, key);
  connection.exec('COMMIT');
  connection.close();
}

function writeKey(connection: DatabaseSync, integrity: RowIntegrity, id: number, key: Version1Key): void {
  const { blocks, attestations, publicKey } = key.history;
  const bytes = Buffer.from(publicKey.slice(2), 'hex');
  const insertBlock = connection.prepare('INSERT INTO blocks VALUES (?, ?, ?, ?)');
  const blockCodes = blocks.map(({ slot, signingRoot }) => {
    const code = integrity.code('block', bytes, [slot, signingRoot]);
    insertBlock.run(id, slot, signingRoot, code);
    return code;
  });
  const insertVote = connection.prepare('INSERT INTO attestations VALUES (?, ?, ?, ?, ?)');
  const voteCodes = attestations.map(({ sourceEpoch, targetEpoch, signingRoot }) => {
    const code = integrity.code('attestation', bytes, [sourceEpoch, targetEpoch, signingRoot]);
    insertVote.run(id, targetEpoch, sourceEpoch, signingRoot, code);
    return code;
  });
  const slots = blocks.map(({ slot }) => slot);
  const sources = attestations.map(({ sourceEpoch }) => sourceEpoch);
  const targets = attestations.map(({ targetEpoch }) => targetEpoch);
  const cells: IntegrityField[] = [
    ...[key.lowWater?.slot ?? least(slots), most(slots)],
    ...[key.lowWater?.sourceEpoch ?? least(sources), key.lowWater?.targetEpoch ?? least(targets)],
    ...[most(sources), most(targets)],
    ...[blocks.length, xorOf(blockCodes), attestations.length, xorOf(voteCodes)],
  ];
  const code = integrity.code('validator', bytes, [id, ...cells]);
  connection
    .prepare('INSERT INTO validators VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
    .run(id, bytes, ...cells, code);
}

const least = (numbers: readonly number[]): number | null =>
  numbers.reduce<number | null>((low, number) => Math.min(low ?? number, number), null);
const most = (numbers: readonly number[]): number | null =>
  numbers.reduce<number | null>((high, number) => Math.max(high ?? number, number), null);

function xorOf(codes: readonly Uint8Array[]): Uint8Array {
  const digest = new Uint8Array(16);
  for (const code of codes) for (let at = 0; at < 16; at++) digest[at] = (digest[at] ?? 0) ^ (code[at] ?? 0);
  return digest;
}
