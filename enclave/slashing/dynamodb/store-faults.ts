// What is wrong with the record of a slashing table, or with the table, and what to do about it.

import { SignerError } from '../../api/errors.ts';
import { awsFault } from '../../aws/errors.ts';
import { NETWORK_PARTITION } from './tables/items.ts';
import { unusable } from './tables/record.ts';
import { unavailable } from './tables/table.ts';

const MAKE_ANEW = 'stop all signers that use it and raise it to the present (strongroom slashing jump)';
const OTHER_STORE =
  'the slashing table was replaced by another store under the running signer: find out by whom, then start it again';
const OTHER_REGION =
  'the slashing table is bound to another region: use the table there; or, when that region is lost, stop all signers ' +
  'there for good and move it here with a jump (strongroom slashing jump)';

export function recordLost(table: string): SignerError {
  const hint = `the slashing table has lost its item ${NETWORK_PARTITION}: ${MAKE_ANEW}`;
  return unusable(hint, { detail: { table } });
}

export function recordRolledBack(table: string): SignerError {
  const hint = `the item ${NETWORK_PARTITION} of the slashing table is an older one again: ${MAKE_ANEW}`;
  return new SignerError('slashing_rollback', { hint, detail: { table } });
}

export function storeReplaced(table: string): SignerError {
  return unusable(OTHER_STORE, { detail: { table } });
}

export function contended(): SignerError {
  return new SignerError('slashing_unavailable', { detail: { contended: NETWORK_PARTITION } });
}

export function refuseRegion(found: {
  readonly tableName: string;
  readonly region: string;
  readonly bound: string;
}): SignerError {
  const { tableName: table, region: configured, bound: bound_to } = found;
  return unusable(OTHER_REGION, { detail: { table, bound_to, configured } });
}

/** For `catch`: what a call of the start failed of, with what to do. */
export function startFault(error: unknown, tableName: string): never {
  const facts = { cause: error, detail: { table: tableName } };
  if (awsFault(error) === 'not_found') {
    throw unusable('the slashing table does not exist: create it with `strongroom setup tables`', facts);
  }
  if (error instanceof Error && error.name === 'ValidationException') {
    throw unusable('the slashing table is of another shape: its one key must be the string `pk`', facts);
  }
  return unavailable(error);
}
