// What the row of an operation says of one request, whichever operation it is of.

import type { ForkName } from '../../signer/api/forks.ts';
import type { LoadedKey } from '../../signer/keys/loaded-key.ts';
import type { OperationRow } from '../../signer/operations/row.ts';
import { ROWS } from '../../signer/operations/rows.ts';
import type { SignRequest } from '../../signer/operations/sign-request.ts';
import type { SlashableMessage } from '../../signer/slashing/types.ts';

export function objectRoot({ operation, message }: SignRequest, fork: ForkName | undefined): Uint8Array {
  const row: OperationRow = ROWS[operation];
  return Uint8Array.from(row.root(message, fork));
}

export function slashableMessage(
  { operation, message }: SignRequest,
  key: Pick<LoadedKey, 'publicKey' | 'tenure'>,
  signingRoot: Uint8Array,
): SlashableMessage | null {
  const row: OperationRow = ROWS[operation];
  return row.slashable?.(message, key, signingRoot) ?? null;
}
