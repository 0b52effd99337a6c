// Part of the step "slashing protection": the jump at boot. The signer refuses everything that an earlier process of it
// may have signed, whatever the store says, because whoever holds the tables may have restored older ones around the
// restart. In an enclave, whose parent holds the tables, the jump is on by default and uses the time of the security
// module. Elsewhere it is off by default and uses the system's clock.

import type { Config } from '../../config/options.ts';
import type { Network } from '../../signing/networks.ts';
import { floorAt, floorFields, jumpFloor } from '../../slashing/jump.ts';
import { behindLocalFloor } from '../../slashing/local-floor.ts';
import type { OnJump, SlashingBackend, StoreFloor } from '../../slashing/types.ts';
import type { World } from '../world.ts';

type BootJumpConfig = Pick<Config, 'anti_slashing' | 'tee'>;

export interface BootJumpParts {
  readonly network: Network;
  readonly store: SlashingBackend;
  /** Milliseconds since the Unix epoch: openTime(). */
  readonly now: () => number;
  readonly onJump: OnJump;
}

export interface JumpedStore {
  readonly store: SlashingBackend;
  /** What this start refuses whatever the store says; null when it did not jump. */
  readonly floor: StoreFloor | null;
}

/** The store, behind the floor of this start where there is one. @throws when the clock is behind what was signed */
export async function afterBootJump(
  config: BootJumpConfig,
  { network, store, now, onJump }: BootJumpParts,
  { enclave, logger }: SlashingWorld,
): Promise<JumpedStore> {
  const log = logger.module('slashing');
  if (config.anti_slashing.jump_at_boot ?? enclave !== undefined) {
    const chain = network.time;
    if (chain === undefined) throw new Error('custom_network.genesis_time is missing');
    const floor = jumpFloor(chain, now)(await store.highestMarks());
    onJump('boot');
    log.info({ ...floorFields(floor), by: enclave === undefined ? 'system clock' : 'security module' }, JUMPED);
    if (enclave !== undefined) log.warn({}, parentsRisk(config));
    return { store: behindLocalFloor(store, { floor, latest: () => floorAt(now(), chain) }), floor };
  }
  if (enclave !== undefined) log.warn({}, NOT_JUMPED);
  return { store, floor: null };
}

type SlashingWorld = Pick<World, 'enclave' | 'logger'>;

const JUMPED =
  'nothing is signed that an earlier start of this signer may have signed: everything up to the present is refused here, which ' +
  'costs a validator at most one vote';
/** For an enclave: what no enclave can notice. It is in the log of each start and in the status. */
export function parentsRisk({ anti_slashing: { backend }, tee }: BootJumpConfig): string {
  const isSealed = backend === 'dynamodb' && tee.nitro.table_credentials.ciphertext !== undefined;
  return isSealed ? SEALED_CREDENTIALS : ONE_PARENT_OF_TWO;
}

const ONE_PARENT_OF_TWO =
  'the parent holds the tables. When other enclaves sign the same keys over the same tables, whoever holds the parents of both ' +
  'can show each of them tables of its own: then both may sign (docs/security.md)';
const SEALED_CREDENTIALS =
  'the tables are called with sealed credentials. When other enclaves sign the same keys, that keeps whoever holds ' +
  'the parents of both from the tables only if IAM denies the roles of the parents, which this signer cannot see ' +
  '(docs/security.md)';
const NOT_JUMPED =
  'anti_slashing.jump_at_boot is off in an enclave: a parent that puts older tables back around a restart can get a slashable signature';
