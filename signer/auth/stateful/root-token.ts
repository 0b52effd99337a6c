// The root token's rows, as the chamber writes them in its own transactions
// (specification/authorization.md#root-token). A head that does not verify is replaced by one that knows the new root
// token and nothing else.

import { createAccessor, tokenDigest } from '../tokens.ts';
import { type Manifest, makeHead, makeRow, newCommit, openHead, pkOf, rowCode, tokenFields } from './rows.ts';
import type { AuthHead, AuthKeys, AuthWrite } from './state.ts';

export interface RootTokenWrite extends AuthWrite {
  /** There was no head that is to be believed: whatever policies and tokens there were are gone with it. */
  readonly dropsEverything: boolean;
}

/**
 * The new token takes the place of the earlier one in the transaction whose condition is the revision of the head given
 * here.
 * @param rootToken the caller encrypts and wipes it @param now milliseconds since the Unix epoch
 * @throws Error when the head's revision cannot be followed by another: somebody altered it
 */
export function replaceRootToken(
  keys: AuthKeys,
  head: AuthHead | undefined,
  rootToken: Uint8Array,
  now: number,
): RootTokenWrite {
  const revision = (head?.revision ?? 0) + 1;
  if (!Number.isSafeInteger(revision)) {
    throw new Error('the revision in the row AUTH_REVISION was altered: delete the row and start again');
  }
  const believed = head && openHead(keys.rows, head);
  const before = believed ?? NO_ROWS;
  const pk = pkOf('token', createAccessor());
  const fields = tokenFields({
    kind: 'management',
    digest: tokenDigest(keys.tokens, rootToken),
    policies: [],
    boundCidrs: [],
    description: 'root token',
    createdAt: new Date(now).toISOString(),
    expiresAt: null,
    ttlSeconds: null,
  });
  const rows = new Map(before.rows);
  if (before.root !== null) rows.delete(before.root);
  const commit = newCommit(revision);
  const row = makeRow(keys.rows, pk, commit, fields);
  rows.set(pk, rowCode(row));
  return {
    dropsEverything: believed === undefined,
    changes: [...(before.root === null ? [] : [{ delete: before.root }]), { put: row }],
    head: makeHead(keys.rows, commit, { root: pk, rows }),
  };
}

const NO_ROWS: Manifest = Object.freeze({ root: null, rows: new Map() });
