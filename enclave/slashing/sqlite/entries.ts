// The entries of the signing histories: what each key signed, each row with its integrity code. Reading a single entry
// checks that row; saying that an entry is NOT there needs the whole history of the key, whose number of entries and
// digest must be those of the head. Changing entries changes the head in memory; the caller saves it.

import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite';
import type { RowIntegrity } from '../history/integrity.ts';
import { bytesOf, bytesOrNull, damaged, numberOf, type Validator } from './validators.ts';

export interface BlockEntry {
  readonly slot: number;
  readonly signingRoot: Uint8Array | null;
}

export interface VoteEntry {
  readonly sourceEpoch: number;
  readonly targetEpoch: number;
  readonly signingRoot: Uint8Array | null;
}

export type VotePlace = Omit<VoteEntry, 'signingRoot'>;

/** Every method that reads throws SignerError `slashing_integrity` for a row that fails its check. */
export interface EntryTables {
  blockAt(validator: Validator, slot: number): BlockEntry | undefined;
  /** All entries for one target: more than one only after an import that contradicts itself. */
  votesFor(validator: Validator, targetEpoch: number): VoteEntry[];
  /** Whether some vote has a larger source and a smaller target (EIP-3076 condition 3). Rests on one row, checked. */
  hasVoteInside(validator: Validator, place: VotePlace): boolean;
  /** Whether some vote has a smaller source and a larger target. */
  hasVoteAround(validator: Validator, place: VotePlace): boolean;
  /** The whole history, in ascending order, shown to be whole. */
  allBlocks(validator: Validator): BlockEntry[];
  allVotes(validator: Validator): VoteEntry[];
  /** Also takes the place of an entry at the same slot, or source and target. */
  putBlock(validator: Validator, entry: BlockEntry): void;
  putVote(validator: Validator, entry: VoteEntry): void;
  removeBlock(validator: Validator, slot: number): void;
  removeVote(validator: Validator, entry: VoteEntry): void;
}

export function entryTables(connection: DatabaseSync, integrity: RowIntegrity): EntryTables {
  const blocks = table(connection, 'blocks', ['slot']);
  const votes = table(connection, 'attestations', ['target_epoch', 'source_epoch']);
  const votesOfTarget = connection.prepare(
    'SELECT target_epoch, source_epoch, signing_root, code FROM attestations WHERE validator = ? AND target_epoch = ?',
  );
  const voteInside = connection.prepare(
    `SELECT target_epoch, source_epoch, signing_root, code FROM attestations
     WHERE validator = ? AND source_epoch > ? AND target_epoch < ? ORDER BY target_epoch DESC LIMIT 1`,
  );
  const voteAround = connection.prepare(
    `SELECT target_epoch, source_epoch, signing_root, code FROM attestations
     WHERE validator = ? AND source_epoch < ? AND target_epoch > ? ORDER BY target_epoch LIMIT 1`,
  );
  for (const statement of [votesOfTarget, voteInside, voteAround]) statement.setReturnArrays(true);

  const blockCode = ({ publicKey }: Validator, { slot, signingRoot }: BlockEntry) =>
    integrity.code('block', publicKey, [slot, signingRoot]);
  const voteCode = ({ publicKey }: Validator, { sourceEpoch, targetEpoch, signingRoot }: VoteEntry) =>
    integrity.code('attestation', publicKey, [sourceEpoch, targetEpoch, signingRoot]);

  function readBlock(validator: Validator, row: readonly SQLOutputValue[]): BlockEntry {
    const entry = { slot: numberOf(row[0]), signingRoot: bytesOrNull(row[1]) };
    if (Buffer.compare(bytesOf(row[2]), blockCode(validator, entry)) !== 0) throw damaged('block');
    return entry;
  }
  function readVote(validator: Validator, row: readonly SQLOutputValue[]): VoteEntry {
    const entry = { targetEpoch: numberOf(row[0]), sourceEpoch: numberOf(row[1]), signingRoot: bytesOrNull(row[2]) };
    if (Buffer.compare(bytesOf(row[3]), voteCode(validator, entry)) !== 0) throw damaged('attestation');
    return entry;
  }
  function blockAt(validator: Validator, slot: number): BlockEntry | undefined {
    const row = blocks.one.get(validator.id, slot);
    return row === undefined ? undefined : readBlock(validator, asArray(row));
  }
  function voteAt(validator: Validator, { sourceEpoch, targetEpoch }: VoteEntry): VoteEntry | undefined {
    const row = votes.one.get(validator.id, targetEpoch, sourceEpoch);
    return row === undefined ? undefined : readVote(validator, asArray(row));
  }
  function hasVote(statement: StatementSync, validator: Validator, { sourceEpoch, targetEpoch }: VotePlace): boolean {
    const row = statement.get(validator.id, sourceEpoch, targetEpoch);
    return row !== undefined && readVote(validator, asArray(row)) !== undefined;
  }
  /** Rows that the head does not know of are of another time than the head. */
  function confirmNoneBeyond(statement: StatementSync, validator: Validator, mark: number | null): void {
    if (statement.get(validator.id, mark ?? -1) !== undefined) throw damaged('an entry lies beyond the marks');
  }
  function removeBlock(validator: Validator, slot: number): void {
    const entry = blockAt(validator, slot);
    if (entry === undefined) return;
    blocks.remove.run(validator.id, slot);
    validator.blockCount -= 1;
    validator.blockDigest = xor(validator.blockDigest, blockCode(validator, entry));
  }
  function removeVote(validator: Validator, place: VoteEntry): void {
    const entry = voteAt(validator, place);
    if (entry === undefined) return;
    votes.remove.run(validator.id, place.targetEpoch, place.sourceEpoch);
    validator.attestationCount -= 1;
    validator.attestationDigest = xor(validator.attestationDigest, voteCode(validator, entry));
  }

  return {
    blockAt,
    votesFor: (validator, targetEpoch) =>
      votesOfTarget.all(validator.id, targetEpoch).map((row) => readVote(validator, asArray(row))),
    hasVoteInside: (validator, place) => hasVote(voteInside, validator, place),
    hasVoteAround: (validator, place) => hasVote(voteAround, validator, place),
    allBlocks(validator) {
      const entries: BlockEntry[] = [];
      let digest: Uint8Array = new Uint8Array(16);
      for (const row of blocks.all.iterate(validator.id)) {
        const cells = asArray(row);
        entries.push(readBlock(validator, cells));
        digest = xor(digest, bytesOf(cells[2]));
      }
      const isWhole = entries.length === validator.blockCount && Buffer.compare(digest, validator.blockDigest) === 0;
      if (!isWhole) throw damaged('blocks are missing');
      return entries;
    },
    allVotes(validator) {
      const entries: VoteEntry[] = [];
      let digest: Uint8Array = new Uint8Array(16);
      for (const row of votes.all.iterate(validator.id)) {
        const cells = asArray(row);
        entries.push(readVote(validator, cells));
        digest = xor(digest, bytesOf(cells[3]));
      }
      const { attestationCount, attestationDigest } = validator;
      const isWhole = entries.length === attestationCount && Buffer.compare(digest, attestationDigest) === 0;
      if (!isWhole) throw damaged('attestations are missing');
      return entries;
    },
    putBlock(validator, entry) {
      if (validator.highSlot !== null && entry.slot <= validator.highSlot) removeBlock(validator, entry.slot);
      else confirmNoneBeyond(blocks.beyond, validator, validator.highSlot);
      const code = blockCode(validator, entry);
      blocks.insert.run(validator.id, entry.slot, entry.signingRoot, code);
      validator.blockCount += 1;
      validator.blockDigest = xor(validator.blockDigest, code);
      validator.lowSlot ??= entry.slot;
      validator.highSlot = Math.max(validator.highSlot ?? 0, entry.slot);
    },
    putVote(validator, entry) {
      if (validator.highTargetEpoch !== null && entry.targetEpoch <= validator.highTargetEpoch) {
        removeVote(validator, entry);
      } else {
        confirmNoneBeyond(votes.beyond, validator, validator.highTargetEpoch);
      }
      const code = voteCode(validator, entry);
      votes.insert.run(validator.id, entry.targetEpoch, entry.sourceEpoch, entry.signingRoot, code);
      validator.attestationCount += 1;
      validator.attestationDigest = xor(validator.attestationDigest, code);
      validator.lowSourceEpoch ??= entry.sourceEpoch;
      validator.lowTargetEpoch ??= entry.targetEpoch;
      validator.highSourceEpoch = Math.max(validator.highSourceEpoch ?? 0, entry.sourceEpoch);
      validator.highTargetEpoch = Math.max(validator.highTargetEpoch ?? 0, entry.targetEpoch);
    },
    removeBlock,
    removeVote,
  };
}

function table(connection: DatabaseSync, name: 'blocks' | 'attestations', place: readonly string[]) {
  const columns = [...place, 'signing_root', 'code'];
  const here = ['validator', ...place].map((column) => `${column} = ?`).join(' AND ');
  const values = columns.map(() => '?').join(', ');
  const statements = {
    one: connection.prepare(`SELECT ${columns.join(', ')} FROM ${name} WHERE ${here}`),
    all: connection.prepare(
      `SELECT ${columns.join(', ')} FROM ${name} WHERE validator = ? ORDER BY ${place.join(', ')}`,
    ),
    beyond: connection.prepare(`SELECT 1 FROM ${name} WHERE validator = ? AND ${place[0]} > ? LIMIT 1`),
    insert: connection.prepare(`INSERT INTO ${name} (validator, ${columns.join(', ')}) VALUES (?, ${values})`),
    remove: connection.prepare(`DELETE FROM ${name} WHERE ${here}`),
  };
  statements.one.setReturnArrays(true);
  statements.all.setReturnArrays(true);
  return statements;
}

function asArray(row: unknown): readonly SQLOutputValue[] {
  if (!Array.isArray(row)) throw new TypeError('the statement returns arrays');
  return row;
}

/** A loop: `map` calls a function for each byte, once for every entry there is when a history is read. */
function xor(one: Uint8Array, other: Uint8Array): Uint8Array {
  const result = new Uint8Array(one.length);
  for (let index = 0; index < one.length; index++) result[index] = (one[index] ?? 0) ^ (other[index] ?? 0);
  return result;
}
