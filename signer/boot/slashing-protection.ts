// Step "slashing protection": the configured store, with the grouping of checks in front of it, and pruning beside it.

import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import type { SignerTime } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import type { AwsAccess } from '../aws/access.ts';
import { StoreBinding } from '../chamber/store-binding.ts';
import { stalenessBoundSeconds } from '../chamber/watcher.ts';
import type { Config } from '../config/options.ts';
import type { Network } from '../signing/networks.ts';
import { floorAt, floorFields, type JumpFloor, jumpFloor, jumpToPresent } from '../slashing/jump.ts';
import { startPruning } from '../slashing/operations/pruning.ts';
import { SlashingProtection } from '../slashing/protection.ts';
import { type RestrainedStore, restrainStore, type StoreKeeper, sealedStore } from '../slashing/restraints.ts';
import { tracedStore } from '../slashing/traced-store.ts';
import type { OnJump, SlashingBackend, StoreFloor } from '../slashing/types.ts';
import type { Custody } from './custody.ts';
import type { Ending } from './ending.ts';
import { floorOfStart, jumpWhenInDoubt } from './slashing-protection/boot-jump.ts';
import { openSlashingBackend, type SlashingStores } from './slashing-protection/store.ts';
import type { Telemetry } from './telemetry.ts';
import type { World } from './world.ts';

/** The slashing store's share of the time that is left; the rest is for what is still open then. */
const STORE_SHARE = 0.8;
const LEAVE_WAIT_MS = 10_000;

export interface SlashingProtectionParts {
  readonly aws: AwsAccess;
  readonly custody: Custody | undefined;
  readonly ending: Pick<Ending, 'leftMs'>;
  readonly network: Network;
  readonly stores: SlashingStores;
  readonly telemetry: Pick<Telemetry, 'slashing' | 'dynamodbCalled' | 'storeJumped'>;
  readonly time: SignerTime;
}

export interface OpenSlashing {
  readonly slashing: SlashingProtection;
  readonly store: RestrainedStore;
  /** Undefined without a state table: nothing is bound, and nothing can notice a second signer. */
  readonly binding: StoreBinding | undefined;
  /** For what names the store; undefined while sealed. */
  readonly keeper: Pick<StoreKeeper, 'name' | 'identity'> | undefined;
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
  const { aws, custody, ending, network, stores, telemetry, time } = parts;
  if (custody?.chamber.state === 'Sealed') {
    const store = sealedStore(config.anti_slashing.backend);
    const options = { ...telemetry.slashing, unopened: true };
    const slashing = new SlashingProtection(store, options, { clock: world.clock, log });
    return { slashing, store, keeper: undefined, binding: undefined, floor: null };
  }
  const integrityKey = custody?.chamber.masterKey.subKey('slashingRowHmac'); // rows carry checksums without one
  const { now } = time;
  const { storeJumped: onJump } = telemetry;
  const floorOf = jumpFloor(network.time, now);
  const opening = await openSlashingBackend(
    config.anti_slashing,
    { stores, aws, onCall: telemetry.dynamodbCalled, onJump, network, integrityKey, floorOf },
    world,
  ).finally(() => integrityKey?.fill(0));
  const bare = traced(opening, world);
  // Boot alone holds the bare store: it binds, jumps and looks. Everything else gets the restrained one.
  const keeper: StoreKeeper = bare;
  if (custody === undefined) await jumpWhenInDoubt(config, { store: bare, floorOf, onJump }, log);
  const floor = await floorOfStart(config, { network, store: bare, now, onJump }, world);
  const isFleet = isBindable(custody, bare);
  const bound: { binding?: StoreBinding | undefined } = {};
  const chain = network.time;
  if (isFleet && chain === undefined) throw new Error(NO_CLOCK);
  const isTimed = chain !== undefined && (isFleet || floor !== null);
  const store = restrainStore(bare, {
    floor,
    latest: isTimed ? () => floorAt(now(), chain) : undefined,
    // Before the first look at the table, no store of a fleet is in force.
    hindrance: isFleet ? () => (bound.binding === undefined ? 'slashing_unbound' : bound.binding.hindrance) : undefined,
    close: (waitMs) => leaveAndClose(bound, bare, waitMs),
  });
  const options = { ...telemetry.slashing, onRollback: raisedOnce(keeper, { floorOf, onJump }, log) };
  const slashing = new SlashingProtection(store, options, { clock: world.clock, log });
  opened.defer(() => slashing.close(ending.leftMs() * STORE_SHARE));
  if (custody !== undefined) {
    const parts = { custody, backend: keeper, jumpFloor: floorOf, onJump, time };
    bound.binding = await bindStore(config, parts, world, opened);
  }
  const isBusy = () => slashing.load.queued + slashing.load.inFlight > 0;
  const pruning = startPruning({ backend: store, isBusy, log, clock: world.clock });
  // A step that hangs in its store ends with it: nobody waits for it before.
  opened.defer(() => Promise.race([pruning.stop(), pause(ending.leftMs() / 4, undefined, { ref: false })]));
  if (store.name === 'noop') log.warn({}, 'NO SLASHING PROTECTION: every message is signed, slashable or not');
  log.info({ backend: store.name }, 'slashing protection is open');
  return { slashing, store, keeper, binding: bound.binding, floor };
}

/** With the log module `slashing_trace` at debug, what the store is asked and answers is logged. */
function traced(store: SlashingBackend, { logger }: World): SlashingBackend {
  if (logger.isDebug?.('slashing_trace') !== true) return store;
  const log = logger.module('slashing_trace');
  return tracedStore(store, (line) => log.debug(line, 'slashing store'));
}

/** Once all batches have ended: the last signer of a fleet closes the store before the store itself is closed. */
async function leaveAndClose(
  { binding }: { readonly binding?: StoreBinding | undefined },
  store: Pick<SlashingBackend, 'close'>,
  waitMs = LEAVE_WAIT_MS,
): Promise<void> {
  const late = new AbortController();
  const limit = pause(Math.min(waitMs, LEAVE_WAIT_MS) / 2, undefined, { ref: false, signal: late.signal });
  await Promise.race([binding?.end(), limit.catch(() => undefined)]);
  late.abort();
  await store.close(waitMs);
}

function raisedOnce(
  backend: StoreKeeper,
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

const NO_CLOCK =
  'custom_network.genesis_time is missing: the signers of a state table refuse what lies ahead of the clock, and could not';

export interface BindStoreParts {
  readonly custody: Custody;
  readonly backend: StoreKeeper;
  readonly jumpFloor: JumpFloor;
  readonly onJump: OnJump;
  readonly time: SignerTime;
}

export function isBindable<Given extends Pick<Custody, 'binding'>>(
  custody: Given | undefined,
  { name }: Pick<StoreKeeper, 'name'>,
): custody is Given & { readonly binding: NonNullable<Given['binding']> } {
  return custody?.binding !== undefined && name !== 'noop';
}

export async function bindStore(
  config: Pick<Config, 'signer_state'>,
  { custody, backend, jumpFloor, onJump, time }: BindStoreParts,
  { clock, logger }: Pick<World, 'clock' | 'logger'>,
  opened: AsyncDisposableStack,
): Promise<StoreBinding | undefined> {
  if (!isBindable(custody, backend)) return undefined;
  const binding = new StoreBinding(
    {
      boundMs: stalenessBoundSeconds(config.signer_state.refresh_interval_seconds) * 1000,
      isFreshTable: custody.isNewTable,
      replica: `${hostname()}-${randomBytes(4).toString('hex')}`,
    },
    {
      table: custody.binding,
      backend,
      jump: async () => {
        await jumpToPresent(backend, jumpFloor);
        onJump('other_store');
      },
      clock,
      jumpTime: time,
      log: logger.module('slashing'),
    },
  );
  custody.chamber.onSealed(() => binding.stop());
  opened.defer(() => binding.stop());
  await binding.start();
  return binding;
}
