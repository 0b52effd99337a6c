// One batch of checks against the database, inside one transaction. The usual message lies beyond everything its key
// has signed, and then the head alone decides: one row read, two written. Any other message is refused by the head or by
// one row, and is safe only when the whole history of the key was read and shown to be whole.

import type { DatabaseSync } from 'node:sqlite';
import { SignerError } from '../../api/errors.ts';
import {
  type Decision,
  decideAttestation,
  decideBlock,
  isBeyondHistory,
  isRolledBack,
  NO_MARKS,
} from '../history/rules.ts';
import type { AttestationVote, BlockProposal, SlashableMessage, Verdict } from '../types.ts';
import { type EntryTables, entryTables } from './entries.ts';
import { type DatabaseOptions, inTransaction, validatorCounter } from './schema.ts';
import { damaged, marksOf, newValidator, type Validator, validatorTable } from './validators.ts';
import type { PackedCheck } from './wire.ts';

/** Prepares the statements once; the function checks and records a batch, or throws and has recorded nothing. */
export function batchChecker(connection: DatabaseSync, options: DatabaseOptions) {
  const validators = validatorTable(connection, options.integrity);
  const entries = entryTables(connection, options.integrity);
  const counter = validatorCounter(connection, options);

  function checkOne(
    { publicKey, message, floors }: PackedCheck,
    isWholeTable: () => boolean,
  ): [Verdict, added: boolean] {
    const known = validators.find(publicKey);
    if (known === undefined && !isWholeTable()) throw damaged('a validator is missing');
    if (isRolledBack(known === undefined ? NO_MARKS : marksOf(known), floors)) {
      return [{ kind: 'unavailable', reason: 'slashing_rollback' }, false];
    }
    const validator = known ?? newValidator(publicKey);
    const decision =
      message.kind === 'block' ? judgeBlock(entries, validator, message) : judgeVote(entries, validator, message);
    if (decision.kind === 'refused' || decision.repeat) return [decision, false];

    if (known === undefined) recordFirst(validator, message);
    else record(validator, message);
    return [decision, known === undefined];
  }

  /** The head is written last, so an entry that does not fit has changed nothing. */
  function record(validator: Validator, message: SlashableMessage): void {
    if (message.kind === 'block') entries.putBlock(validator, message);
    else entries.putVote(validator, message);
    validators.save(validator);
  }

  /** An entry names its head, so the head of a new key is there before its first entry: and is taken back with it. */
  function recordFirst(validator: Validator, message: SlashableMessage): void {
    connection.exec('SAVEPOINT first');
    try {
      validators.save(validator);
      record(validator, message);
    } catch (error) {
      connection.exec('ROLLBACK TO first');
      throw error;
    } finally {
      connection.exec('RELEASE first');
    }
  }

  return (batch: Iterable<PackedCheck>): Verdict[] =>
    inTransaction(connection, () => {
      let counted: number | undefined | 'not yet' = 'not yet';
      const isWholeTable = () => {
        if (counted === 'not yet') counted = counter.verified();
        return counted !== undefined;
      };
      const verdicts: Verdict[] = [];
      let added = 0;
      for (const check of batch) {
        try {
          const [verdict, isNew] = checkOne(check, isWholeTable);
          verdicts.push(verdict);
          if (isNew) added += 1;
        } catch (error) {
          if (!isDamage(error)) throw error;
          verdicts.push({ kind: 'unavailable', reason: 'slashing_integrity' });
        }
      }
      if (added > 0 && typeof counted === 'number') counter.set(counted + added);
      return verdicts;
    });
}

// Extended result codes of SQLite (sqlite.org/rescode.html): a row is there that by its head is not.
const SQLITE_CONSTRAINT_PRIMARYKEY = 1555;
const SQLITE_CONSTRAINT_UNIQUE = 2067;

/** A row that fails its check, is in the way of another, or holds a number that this program never writes. */
export function isDamage(error: unknown): boolean {
  if (error instanceof SignerError) return error.reason === 'slashing_integrity';
  if (!(error instanceof Error)) return false;
  if ('code' in error && error.code === 'ERR_OUT_OF_RANGE') return true;
  return (
    'errcode' in error && (error.errcode === SQLITE_CONSTRAINT_PRIMARYKEY || error.errcode === SQLITE_CONSTRAINT_UNIQUE)
  );
}

function judgeBlock(entries: EntryTables, validator: Validator, message: BlockProposal): Decision {
  const isBeyond = isBeyondHistory(message, marksOf(validator));
  const entry = (isBeyond ? undefined : entries.blockAt(validator, message.slot)) ?? null;
  const decision = decideBlock(message, { entry, lowWaterSlot: validator.lowSlot });
  // Safe because the slot is free, says the absence of a row: that is believed of a history that is whole.
  if (decision.kind === 'safe' && entry === null && !isBeyond) entries.allBlocks(validator);
  return decision;
}

function judgeVote(entries: EntryTables, validator: Validator, message: AttestationVote): Decision {
  const isBeyond = isBeyondHistory(message, marksOf(validator));
  const [entry = null, another] = isBeyond ? [] : entries.votesFor(validator, message.targetEpoch);
  const isOlder = !isBeyond && entry === null;
  const decision = decideAttestation(message, {
    entry: another === undefined ? entry : { ...another, signingRoot: null },
    surroundsAnEntry: isOlder && entries.hasVoteInside(validator, message),
    isSurroundedByAnEntry: isOlder && entries.hasVoteAround(validator, message),
    lowWaterSourceEpoch: validator.lowSourceEpoch,
    lowWaterTargetEpoch: validator.lowTargetEpoch,
  });
  // A refusal rests on the head or on one row. That no row stands against the vote is known of a whole history only.
  if (decision.kind === 'safe' && isOlder) entries.allVotes(validator);
  return decision;
}
