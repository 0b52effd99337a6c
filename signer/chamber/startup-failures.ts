// Why a start has no master key (specification/operating.md#startup-failures, 8 and 9), and what to do about it.

import { strict as assert } from 'node:assert';
import { setTimeout as pause } from 'node:timers/promises';
import { type CustodyKeyResult, describeKeyResult } from '../../ceremony/custody-keys.ts';
import { type MasterKeyRecord, parseRecord } from '../../ceremony/record.ts';
import { type CustodyRefusal, malformedRecord } from '../../ceremony/refusals.ts';
import { jittered } from '../../common/flow/backoff.ts';
import type { Log } from '../../common/observe/log.ts';
import { SignerError } from '../api/errors.ts';
import { type AwsFault, lackingSetting } from '../aws/errors.ts';
import { MalformedRow, type MasterKeyRow } from './state-rows.ts';
import type { StateTable } from './state-table.ts';

const MAX_TRIES = 5;
const FIRST_PAUSE_MS = 100;

const REMEDIES: Readonly<Record<AwsFault, string>> = {
  condition_failed: 'its answers contradict each other',
  conflict: 'other transactions hold its rows; start again',
  throttled: 'it throttles: give it on-demand capacity, and start again',
  not_found:
    'it does not exist: create it with `strongroom setup tables -c CONFIG`, or correct signer_state.table and the region',
  denied:
    'access is denied: give the signer credentials of a role with the policy that `strongroom setup iam --for signer` prints ' +
    '(with --phase first-boot while the table is empty; a table that has lost its rows is to be restored)',
  unreachable: 'no answer in time: check the network, the region (AWS_REGION) and the endpoint',
  failed: 'the service refuses the call',
};

const MALFORMED = 'a row is not one that this version writes: restore it from a point-in-time recovery';

export class StateTableFailure extends Error {
  readonly startupFailure = 8;
  readonly problem: string;

  constructor(tableName: string, problem: string, cause?: unknown) {
    super(`the state table "${tableName}" cannot be used: ${problem}`, { cause });
    this.name = 'StateTableFailure';
    this.problem = problem;
  }
}

/** @throws StateTableFailure when the fault stays, or is not one that passes */
export async function patiently<T>({ tableName }: { readonly tableName: string }, call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof SignerError) || error.reason !== 'state_stale') throw error;
      const { fault = 'conflict', problem } = error.detail as { readonly fault?: AwsFault; readonly problem: string };
      const passing = fault === 'conflict' || fault === 'throttled' || fault === 'unreachable';
      if (!passing || tries === MAX_TRIES) {
        const lacking = lackingSetting(error);
        if (lacking) throw new StateTableFailure(tableName, `${lacking.problem}: ${lacking.remedy}`, error);
        const remedy = error.cause instanceof MalformedRow ? MALFORMED : REMEDIES[fault];
        throw new StateTableFailure(tableName, `${remedy} (${problem})`, error);
      }
    }
    await pause(jittered(FIRST_PAUSE_MS * 2 ** (tries - 1)));
  }
}

export class CustodyFailure extends Error {
  readonly startupFailure: 8 | 9;

  constructor({ message, startupFailure }: Pick<CustodyRefusal, 'message' | 'startupFailure'>) {
    super(message);
    this.name = 'CustodyFailure';
    this.startupFailure = startupFailure;
  }
}

export function recordIn(row: MasterKeyRow): MasterKeyRecord {
  const record = parseRecord(row.record);
  // The copy outside the record is for the watcher; where the two differ the row was altered.
  if (record === undefined || record.generation !== row.generation) throw new CustodyFailure(malformedRecord());
  return record;
}

/** Policies, tokens or a root token without the key they were written under (specification/custody.md#states). */
export function masterKeyLost({ tableName }: StateTable): StateTableFailure {
  return new StateTableFailure(
    tableName,
    'it has rows of an earlier master key and no MASTER_KEY row. Restore that row from a point-in-time recovery: a new master key ' +
      'could open nothing that is encrypted under the earlier one. To begin anew on purpose, use a new table',
  );
}

/** @throws CustodyFailure; a custody key that did not serve is logged when the others suffice */
export function servedOrThrow<Served extends { readonly ok: true; readonly keys: readonly CustodyKeyResult[] }>(
  result: Served | CustodyRefusal,
  log: Log,
): Served {
  if (!result.ok) throw new CustodyFailure(result);
  for (const key of result.keys) {
    if (!key.ok) log.warn({ custody_key: describeKeyResult(key) }, 'a custody key did not serve; the others suffice');
  }
  assert(result.keys.some((key) => key.ok));
  return result;
}

export const LOST =
  'this signer lost the right to sign: the state table binds its fleet to another slashing store, to a copy of this one, or to this ' +
  'one again after a wait. All signers of a fleet need one store: anti_slashing.backend postgres or dynamodb';
export const LAPSED =
  'this signer could not renew its right to sign for longer than another signer waits before it takes over: it signs nothing until ' +
  'a signer over the same store confirms it, or until it has waited and raised the store to the present itself';
export const OTHER_STORE =
  'NOTHING IS SIGNED: the fleet signs over another slashing store, or over another copy of this one, and a replica that uses it may ' +
  'be alive. All signers of a fleet need one store: anti_slashing.backend postgres or dynamodb. ' +
  'When that replica is gone for good, this one takes over by itself after the seconds named here';
export const NOT_CONFIRMED =
  'nothing is signed yet: no signer of the fleet has confirmed that this slashing store is the one that it signs over. The last ' +
  'ones ended longer ago than the seconds named here, or not in order, or this store is a copy. When none shows itself for so long, ' +
  'this one raises its store to the present and goes on, which costs a validator one vote, two at most, and the next blocks';
export const UNKNOWN_STORE =
  'nothing is signed yet: the state table does not say over which slashing store the fleet signs. ' +
  'This signer waits until any that signs would have shown itself, then raises its store to the present and goes on';
export const BEHIND =
  'NOTHING IS SIGNED: the clock of this signer is behind that of the state table, or of the last signer, by the seconds named here. ' +
  'A jump by this clock would be too low. Set the clock: this signer goes on by itself then';
export const RAISED_BY_HAND =
  'the slashing store cannot be raised to the present by itself: this signer goes on with the last jump by hand, made since it was used';
export const TAKEN =
  'this signer binds the fleet to its own slashing store: no signer has shown itself for longer than one may go on without. ' +
  'The store was raised to the present, which costs a validator one vote, two at most, and blocks of the next two minutes';
