// The jump at boot (specification/slashing.md#boot-floor): the tables may have been restored around the restart.

import type { Log } from '../../../common/observe/log.ts';
import type { Config } from '../../config/options.ts';
import type { Network } from '../../signing/networks.ts';
import { floorFields, type JumpFloor, jumpFloor, jumpToPresent } from '../../slashing/jump.ts';
import type { OnJump, SlashingBackend, StoreFloor } from '../../slashing/types.ts';
import type { World } from '../world.ts';
import { openingFailure } from './store.ts';

type BootJumpConfig = Pick<Config, 'anti_slashing' | 'tee'>;

export interface BootJumpParts {
  readonly network: Network;
  readonly store: Pick<SlashingBackend, 'highestMarks'>;
  readonly now: () => number;
  readonly onJump: OnJump;
}

/** Null when it does not jump. @throws when the clock is behind what was signed */
export async function floorOfStart(
  config: BootJumpConfig,
  { network, store, now, onJump }: BootJumpParts,
  { enclave, logger }: SlashingWorld,
): Promise<StoreFloor | null> {
  const log = logger.module('slashing');
  if (config.anti_slashing.jump_at_boot ?? enclave !== undefined) {
    const chain = network.time;
    if (chain === undefined) throw new Error('custom_network.genesis_time is missing');
    const floor = jumpFloor(chain, now)(await store.highestMarks());
    onJump('boot');
    log.info({ ...floorFields(floor), by: enclave === undefined ? 'system clock' : 'security module' }, JUMPED);
    if (enclave !== undefined) log.warn({}, parentsRisk(config));
    return floor;
  }
  if (enclave !== undefined) log.warn({}, NOT_JUMPED);
  return null;
}

/** Without a state table. @throws Error when no clock can be believed: nothing was opened for signing */
export async function jumpWhenInDoubt(
  { anti_slashing }: Pick<Config, 'anti_slashing'>,
  { store, floorOf, onJump }: { readonly store: SlashingBackend; readonly floorOf: JumpFloor; readonly onJump: OnJump },
  log: Log,
): Promise<void> {
  if (store.isInDoubt !== true) return;
  if (!anti_slashing.jump_after_unclean_end) return log.warn({}, NOT_JUMPED_AFTER_END);
  const { floor } = await jumpToPresent(store, floorOf).catch((error: unknown) => {
    throw openingFailure(anti_slashing, error);
  });
  onJump('unclean_end');
  log.warn({ floor: floor && floorFields(floor) }, JUMPED_AFTER_END);
}

type SlashingWorld = Pick<World, 'enclave' | 'logger'>;

const JUMPED =
  'nothing is signed that an earlier start of this signer may have signed: everything up to the present is refused here, which ' +
  'costs a validator at most one vote';
const JUMPED_AFTER_END =
  'the slashing database is not the one that a signer closed in order last: a signer was killed, or an older file was put in its ' +
  'place. Everything up to the present is refused, which costs a validator at most one vote';
const NOT_JUMPED_AFTER_END =
  'the slashing database is not the one that a signer closed in order last, and anti_slashing.jump_after_unclean_end is off: when ' +
  'an older file was put in its place, what it lacks can be signed again, and slashed';
/** What no enclave can notice. It is in the log of each start and in the status. */
export function parentsRisk({ anti_slashing: { backend }, tee }: BootJumpConfig): string {
  const isSealed = backend === 'dynamodb' && tee.nitro.table_credentials.ciphertext !== undefined;
  return isSealed ? SEALED_CREDENTIALS : PARENT_HOLDS_RECORDS;
}

const PARENT_HOLDS_RECORDS =
  'whoever controls the parent instance holds the slashing records. They can start this image twice and show each enclave ' +
  'records of its own: then both sign, and the pair is slashable. One enclave is never alone by its own word (docs/security.md)';
const SEALED_CREDENTIALS =
  'the tables are called with sealed credentials. When other enclaves sign the same keys, that keeps whoever holds ' +
  'the parents of both from the tables only if IAM denies the roles of the parents, which this signer cannot see ' +
  '(docs/security.md)';
const NOT_JUMPED =
  'anti_slashing.jump_at_boot is off in an enclave: a parent that puts older tables back around a restart can get a slashable signature';
