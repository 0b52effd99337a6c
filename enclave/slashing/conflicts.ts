// Lists the slashable entries of an import, up to a limit, for the report to the operator.

import type { ConflictingEntry, ImportConflict, PublicKeyHex } from './types.ts';

/** An import with more of them is nothing that somebody goes through by hand. */
export const MAX_LISTED_CONFLICTS = 100;

/** Those of a key after those that are listed, as far as they go in. */
export function listConflicts(
  listed: readonly ImportConflict[],
  publicKey: PublicKeyHex,
  entries: readonly ConflictingEntry[],
): readonly ImportConflict[] {
  if (entries.length === 0) return listed;
  return [...listed, ...entries.map((entry) => ({ publicKey, ...entry }))].slice(0, MAX_LISTED_CONFLICTS);
}
