// Merges what was read of a Web3Signer into a store. Keys that were disabled there are retired first, once the whole
// database was read and is known to be unused, and before anything of it is merged: whenever this ends, no key signs
// here that was refused there.

import type { ImportOptions, ImportSummary, SlashingBackend, ValidatorHistory } from '../types.ts';
import type { Web3SignerReading } from './database.ts';

/**
 * The import is all or nothing, as that of a file. After a fault disabled keys may be retired already; to repeat it
 * does the rest.
 * @throws Web3SignerDatabaseError, before anything is changed; SignerError
 */
export function mergeWeb3Signer(
  backend: Pick<SlashingBackend, 'importHistories' | 'retire'>,
  reading: Web3SignerReading,
  options: ImportOptions,
): Promise<ImportSummary> {
  return backend.importHistories(retiringLast(backend, reading), options);
}

/** A store reads all histories before it merges the first, so the end of the stream comes before the merge. */
async function* retiringLast(
  backend: Pick<SlashingBackend, 'retire'>,
  { histories, findings }: Web3SignerReading,
): AsyncGenerator<ValidatorHistory> {
  yield* histories;
  const { disabled } = findings();
  if (disabled.length > 0) await backend.retire(disabled);
}
