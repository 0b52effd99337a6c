// Step "slashing protection": the configured store, bound to the network, with the grouping of checks in front of it
// and pruning in the background.

import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../observe/log.ts';
import type { StoreBinding } from '../chamber/store-binding.ts';
import type { Config } from '../config/options.ts';
import type { Network } from '../signing/networks.ts';
import { floorFields, type JumpFloor, jumpFloor, jumpToPresent } from '../slashing/jump.ts';
import { SlashingProtection } from '../slashing/protection.ts';
import { startPruning } from '../slashing/pruning.ts';
import { sealedBackend } from '../slashing/sealed.ts';
import type { OnJump, SlashingBackend, StoreFloor } from '../slashing/types.ts';
import type { AwsAccess } from './credentials.ts';
import { type Custody, slashingIntegrityKey } from './custody.ts';
import type { Ending } from './ending.ts';
import { afterBootJump } from './slashing-protection/boot-jump.ts';
import { openSlashingBackend } from './slashing-protection/store.ts';
import { bindStore } from './slashing-protection/store-binding.ts';
import type { Telemetry } from './telemetry.ts';
import type { SignerTime } from './time.ts';
import type { World } from './world.ts';

/** The slashing store's share of the time that is left; the rest is for what is still open then. */
const STORE_SHARE = 0.8;

export interface SlashingProtectionParts {
  readonly aws: AwsAccess;
  /** Undefined without a signer state. */
  readonly custody: Custody | undefined;
  readonly ending: Pick<Ending, 'leftMs'>;
  readonly network: Network;
  readonly telemetry: Pick<Telemetry, 'slashing' | 'dynamodbCalled' | 'storeJumped'>;
  readonly time: SignerTime;
}

export interface OpenSlashing {
  readonly slashing: SlashingProtection;
  /** Undefined without a state table: nothing is bound, and nothing can notice a second signer. */
  readonly binding: StoreBinding | undefined;
  /** Everything up to it is refused by this start, whatever the store says; null when it did not jump. */
  readonly floor: StoreFloor | null;
}

export async function openSlashingProtection(
  config: Pick<Config, 'anti_slashing' | 'signer_state' | 'tee'>,
  parts: SlashingProtectionParts,
  world: World,
  opened: AsyncDisposableStack,
): Promise<OpenSlashing> {
  const log = world.logger.module('slashing');
  const { aws, custody, ending, network, telemetry, time } = parts;
  if (custody?.chamber.state === 'Sealed') {
    return { slashing: sealedProtection(config.anti_slashing, telemetry, world), binding: undefined, floor: null };
  }
  const integrityKey = slashingIntegrityKey(custody);
  const { now } = time;
  const { storeJumped: onJump } = telemetry;
  const floorOf = jumpFloor(network.time, now);
  const store = await openSlashingBackend(
    config.anti_slashing,
    { aws, onCall: telemetry.dynamodbCalled, onJump, network, integrityKey, floorOf },
    world,
  ).finally(() => integrityKey?.fill(0));
  const { store: backend, floor } = await afterBootJump(config, { network, store, now, onJump }, world);
  const bound: { binding?: StoreBinding | undefined } = {};
  const options = {
    ...telemetry.slashing,
    hindrance: () => bound.binding?.hindrance,
    onRollback: raisedOnce(backend, { floorOf, onJump }, log),
  };
  const slashing = new SlashingProtection(backend, options, { clock: world.clock, log });
  opened.defer(() => slashing.close(ending.leftMs() * STORE_SHARE));
  if (custody !== undefined) {
    bound.binding = await bindStore(config, { custody, backend, jumpFloor: floorOf, onJump }, world, opened);
  }
  const pruning = startPruning({}, { backend, log });
  // A step that hangs in its store ends with it: nobody waits for it before.
  opened.defer(() => Promise.race([pruning.stop(), pause(ending.leftMs() / 4, undefined, { ref: false })]));
  if (backend.name === 'noop') log.warn({}, 'NO SLASHING PROTECTION: every message is signed, slashable or not');
  log.info({ backend: backend.name }, 'slashing protection is open');
  return { slashing, binding: bound.binding, floor };
}

/** What follows when a store holds less than this process knows: it is raised to the present, one raise at a time. */
function raisedOnce(
  backend: SlashingBackend,
  { floorOf, onJump }: { readonly floorOf: JumpFloor; readonly onJump: OnJump },
  log: Log,
): () => void {
  let raising = false;
  return () => {
    if (raising) return;
    raising = true;
    jumpToPresent(backend, floorOf)
      .then(({ floor }) => {
        onJump('lost_records');
        log.warn({ backend: backend.name, floor: floor && floorFields(floor) }, RAISED);
      })
      .catch((error: unknown) => log.error({ backend: backend.name, err: error }, NOT_RAISED))
      .finally(() => {
        raising = false;
      });
  };
}

const RAISED =
  'the slashing store had lost records that this signer knows of: it was raised to the present, which costs a validator at most ' +
  'one vote. Find out what happened to the store';
const NOT_RAISED =
  'the slashing store has lost records that this signer knows of, and could not be raised to the present: those keys sign nothing';

/** Without a master key no row could be verified, and nothing may be signed: the store is left alone. */
function sealedProtection(
  { backend }: Config['anti_slashing'],
  { slashing }: Pick<Telemetry, 'slashing'>,
  { clock, logger }: World,
): SlashingProtection {
  const options = { ...slashing, unopened: true };
  return new SlashingProtection(sealedBackend(backend), options, { clock, log: logger.module('slashing') });
}
