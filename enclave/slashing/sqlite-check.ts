// One batch of checks against the database, inside one transaction. The usual message lies beyond everything its key
// has signed, and then the head alone decides: one row read, two written. Any other message needs its entry, or the
// whole history of the key, read and shown to be whole.

import type { DatabaseSync } from 'node:sqlite';
import { SignerError } from '../api/errors.ts';
import {
  type AttestationFacts,
  type BlockFacts,
  decideAttestation,
  decideBlock,
  isBeyondHistory,
  isRolledBack,
  NO_MARKS,
} from './rules.ts';
import { type EntryTables, entryTables } from './sqlite-entries.ts';
import { type DatabaseOptions, inTransaction, validatorCounter } from './sqlite-schema.ts';
import { damaged, marksOf, newValidator, type Validator, validatorTable } from './sqlite-validators.ts';
import type { PackedCheck } from './sqlite-wire.ts';
import type { AttestationVote, BlockProposal, Verdict } from './types.ts';

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
      message.kind === 'block'
        ? decideBlock(message, blockFacts(entries, validator, message))
        : decideAttestation(message, attestationFacts(entries, validator, message));
    if (decision.kind === 'refused' || decision.repeat) return [decision, false];

    if (known === undefined) validators.save(validator);
    if (message.kind === 'block') entries.putBlock(validator, message);
    else entries.putVote(validator, message);
    validators.save(validator);
    return [decision, known === undefined];
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

/** A row that fails its check, or holds a number that this program never writes. Thrown before anything is written. */
export function isDamage(error: unknown): boolean {
  if (error instanceof SignerError) return error.reason === 'slashing_integrity';
  return error instanceof Error && 'code' in error && error.code === 'ERR_OUT_OF_RANGE';
}

function blockFacts(entries: EntryTables, validator: Validator, message: BlockProposal): BlockFacts {
  const lowWaterSlot = validator.lowSlot;
  if (isBeyondHistory(message, marksOf(validator))) return { entry: null, lowWaterSlot };
  const entry = entries.blockAt(validator, message.slot);
  if (entry !== undefined) return { entry, lowWaterSlot };
  entries.allBlocks(validator);
  return { entry: null, lowWaterSlot };
}

function attestationFacts(entries: EntryTables, validator: Validator, message: AttestationVote): AttestationFacts {
  const facts = {
    entry: null,
    surroundsAnEntry: false,
    isSurroundedByAnEntry: false,
    lowWaterSourceEpoch: validator.lowSourceEpoch,
    lowWaterTargetEpoch: validator.lowTargetEpoch,
  };
  if (isBeyondHistory(message, marksOf(validator))) return facts;
  const [entry, another] = entries.votesFor(validator, message.targetEpoch);
  if (entry !== undefined) return { ...facts, entry: another === undefined ? entry : { ...entry, signingRoot: null } };

  const { sourceEpoch, targetEpoch } = message;
  const all = entries.allVotes(validator);
  return {
    ...facts,
    surroundsAnEntry: all.some((one) => sourceEpoch < one.sourceEpoch && one.targetEpoch < targetEpoch),
    isSurroundedByAnEntry: all.some((one) => one.sourceEpoch < sourceEpoch && targetEpoch < one.targetEpoch),
  };
}
