// What a start settles before it signs (specification/slashing.md#jump): the tables may have been restored around the
// restart (#boot-floor), the file may not be the one that was closed in order (#closed-mark), or an earlier process may
// have ended before it could jump.

import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import type { Config } from '../../config/options.ts';
import type { Doubts } from '../../slashing/doubt/doubts.ts';
import { readIncarnations } from '../../slashing/incarnation.ts';
import type { Doubt, SlashingBackend } from '../../slashing/types.ts';
import { openingFailure } from './store.ts';

interface StartDoubtsParts {
  readonly doubts: Pick<Doubts, 'settle'>;
  readonly store: Pick<SlashingBackend, 'doubt' | 'identity'>;
  readonly isEnclave: boolean;
  readonly hasStateTable: boolean;
}

/** Of the file, for which a start jumps; the binding of a fleet notices what a file cannot say. */
export function doubtOfFile({ doubt }: Pick<SlashingBackend, 'doubt'>, hasStateTable: boolean): Doubt | undefined {
  return hasStateTable ? undefined : doubt;
}

/** What an earlier process found, and could not settle. */
export async function notedDoubt(store: Pick<SlashingBackend, 'identity'>): Promise<Doubt | undefined> {
  const { doubt: cause } = readIncarnations((await store.identity()).incarnation);
  return cause && { cause };
}

/**
 * While no clock is confirmed the start goes on, and nothing is signed.
 * @throws Error when the store cannot be raised
 */
export async function settleAtStart(
  config: Pick<Config, 'anti_slashing' | 'tee'>,
  { doubts, store, isEnclave, hasStateTable }: StartDoubtsParts,
  log: Log,
): Promise<void> {
  const { jump_at_boot = isEnclave, jump_after_unclean_end } = config.anti_slashing;
  const ofStart: Doubt[] = jump_at_boot ? [{ cause: 'boot' }] : [];
  const ofFile = doubtOfFile(store, hasStateTable);
  if (ofFile !== undefined && !jump_after_unclean_end) log.warn({}, NOT_JUMPED_AFTER_END);
  if (isEnclave) log.warn({}, jump_at_boot ? parentsRisk(config) : NOT_JUMPED);
  const ofStore = ofFile !== undefined && jump_after_unclean_end ? ofFile : await notedDoubt(store);
  const settled = ofStore === undefined ? ofStart : [...ofStart, ofStore];
  for (const doubt of settled) {
    await doubts.settle(doubt).catch((error: unknown) => {
      if (!(error instanceof SignerError && error.reason === 'clock_unconfirmed'))
        throw openingFailure(config.anti_slashing, error);
    });
  }
}

const NOT_JUMPED_AFTER_END =
  'the slashing database is not the one that a signer closed in order last, and anti_slashing.jump_after_unclean_end is off: when ' +
  'an older file was put in its place, what it lacks can be signed again, and slashed';
/** What no enclave can notice. It is in the log of each start and in the status. */
export function parentsRisk({ tee }: Pick<Config, 'tee'>): string {
  return tee.nitro.table_credentials.ciphertext === undefined ? PARENT_HOLDS_RECORDS : SEALED_CREDENTIALS;
}

const PARENT_HOLDS_RECORDS =
  'whoever controls the parent instance holds the slashing records. They can start this image twice and show each enclave ' +
  'records of its own: then both sign, and the pair is slashable. One enclave is never alone by its own word (docs/security.md)';
const SEALED_CREDENTIALS =
  'the tables are called with sealed credentials. When other enclaves sign the same keys, that keeps whoever holds ' +
  'the parents of both from the tables only if IAM, or the database, lets the parents in by no other way, which this ' +
  'signer cannot see (docs/security.md)';
const NOT_JUMPED =
  'anti_slashing.jump_at_boot is off in an enclave: a parent that puts older tables back around a restart can get a slashable signature';
