// Step "slashing protection": the configured store, with the grouping of checks in front of it, and its pruning.

import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { inTime } from '../../common/flow/in-time.ts';
import type { SignerTime, Witness } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import type { AwsAccess } from '../aws/access.ts';
import type { BindingTable } from '../chamber/binding-table.ts';
import { StoreBinding } from '../chamber/store-binding.ts';
import { stalenessBoundSeconds } from '../chamber/watcher.ts';
import type { Config } from '../config/options.ts';
import type { Network } from '../sign/networks.ts';
import { hindranceOf, type RightToSign } from '../sign/right.ts';
import { confirmedPresent } from '../slashing/doubt/clock.ts';
import { type Doubts, openDoubts } from '../slashing/doubt/doubts.ts';
import { floorWatch } from '../slashing/doubt/floor.ts';
import { RENEWAL_MS, renewIncarnations } from '../slashing/doubt/renewal.ts';
import { latestBy } from '../slashing/future.ts';
import { type FutureFloor, futureFloor, futureText } from '../slashing/jump.ts';
import { startPruning } from '../slashing/operations/prune-loop.ts';
import { SlashingProtection } from '../slashing/protection.ts';
import { type BareStore, type RestrainedStore, restrainStore, sealedStore } from '../slashing/restraints.ts';
import { tracedStore } from '../slashing/traced-store.ts';
import type { SlashingBackend } from '../slashing/types.ts';
import type { Custody } from './custody.ts';
import type { Ending } from './ending.ts';
import { every } from './every.ts';
import { settleAtStart } from './slashing-protection/start-doubts.ts';
import { openSlashingBackend, type SlashingStores } from './slashing-protection/store.ts';
import type { Telemetry } from './telemetry.ts';
import type { World } from './world.ts';

/** The slashing store's share of the time that is left; the rest is for what is still open then. */
const STORE_SHARE = 0.8;
const LEAVE_WAIT_MS = 10_000;

interface SlashingProtectionParts {
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
  readonly right: RightToSign;
  /** Undefined without a state table: nothing is bound, and nothing can notice a second signer. */
  readonly binding: StoreBinding | undefined;
  /** For what names the store; undefined while sealed. */
  readonly bareStore: Pick<BareStore, 'name' | 'identity'> | undefined;
  /** What stops all signing over the store; undefined while sealed. */
  readonly trouble: StoreTrouble | undefined;
}

interface StoreTrouble {
  readonly doubts: Pick<Doubts, 'unsettled' | 'hindrance' | 'floorOfStart'>;
  readonly future: () => FutureFloor | undefined;
}

/** What is wrong with the clock, in words for the operator; undefined: nothing. */
export function clockTrouble(trouble: StoreTrouble | undefined): string | undefined {
  if (trouble?.doubts.hindrance() === 'clock_unconfirmed') return trouble.doubts.unsettled?.problem;
  const future = trouble?.future();
  return future && futureText(future);
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
    return { slashing, store, right: { custody, store }, bareStore: undefined, binding: undefined, trouble: undefined };
  }
  const integrityKey = custody?.chamber.masterKey.subKey('slashingRowHmac'); // rows carry checksums without one
  const opening = await openSlashingBackend(
    config.anti_slashing,
    { stores, aws, onCall: telemetry.dynamodbCalled, network, integrityKey },
    world,
  ).finally(() => integrityKey?.fill(0));
  // Only boot holds the bare store, to bind, jump and look. Everything else gets the restrained one.
  const watch = floorWatch(traced(opening, world));
  const bare: SlashingBackend = watch.store;
  await bare.identity();
  const { now } = time;
  const chain = network.time;
  const table = bare.name === 'noop' ? undefined : custody?.bindingTable;
  if (table !== undefined && chain === undefined) throw new Error(NO_CLOCK);
  const witnesses = world.enclave === undefined ? witnessesOf(time, bare, custody) : undefined;
  const clock = { now, witnesses, needsNoWitness: config.anti_slashing.unsafe_unconfirmed_clock };
  const present = confirmedPresent(chain, clock);
  const doubts = openDoubts({ store: bare, present, onJump: telemetry.storeJumped, log });
  opened.defer(() => doubts.close());
  const hasStateTable = custody !== undefined;
  await settleAtStart(config, { doubts, store: bare, isEnclave: world.enclave !== undefined, hasStateTable }, log);
  const future = () => chain && futureFloor(watch.floor, now(), chain);
  const atStart = future();
  if (atStart !== undefined) log.error({}, futureText(atStart));
  const bound: { binding?: StoreBinding | undefined } = {};
  // noop keeps no marks that could lie ahead.
  const latest = chain === undefined || bare.name === 'noop' ? undefined : latestBy(now, chain);
  const store = restrainStore(bare, {
    doubts,
    future,
    latest,
    // Before the first look at the table, no store of a fleet is in force.
    hindrance: table && (() => (bound.binding === undefined ? 'slashing_unbound' : bound.binding.hindrance)),
    close: (waitMs) => leaveAndClose({ bound, store: bare, doubts, slashing, log }, waitMs),
  });
  const right: RightToSign = { custody, store };
  const options = { ...telemetry.slashing, right: hindranceOf(right), latest };
  const slashing = new SlashingProtection(store, options, { clock: world.clock, log });
  opened.defer(() => slashing.close(ending.leftMs() * STORE_SHARE));
  if (custody !== undefined && table !== undefined) {
    const parts = { custody, table, backend: bare, doubts, time };
    bound.binding = await bindStore(config, parts, world, opened);
  } else if (custody === undefined) {
    const renew = renewIncarnations(bare, doubts.settle);
    const look = () => renew().catch(() => undefined); // what the store does not answer its health check says
    await look();
    every(RENEWAL_MS, look, opened);
  }
  const isBusy = () => slashing.load.queued + slashing.load.inFlight > 0;
  const pruning = startPruning({ backend: store, isBusy, hindrance: store.hindrance, log, clock: world.clock });
  // A step of pruning that hangs in its store ends when the store is closed: the end does not wait for it longer.
  opened.defer(() => inTime(pruning.stop(), ending.leftMs() / 4, () => undefined));
  if (store.name === 'noop') log.warn({}, 'NO SLASHING PROTECTION: every message is signed, slashable or not');
  log.info({ backend: store.name }, 'slashing protection is open');
  return { slashing, store, right, bareStore: bare, binding: bound.binding, trouble: { doubts, future } };
}

/** Who may confirm the clock of a host (slashing/doubt/clock.ts). */
function witnessesOf(time: SignerTime, store: SlashingBackend, custody: Custody | undefined): readonly Witness[] {
  const table = custody?.bindingTable;
  const ofTable = async () => {
    const { tableTime } = (await table?.read()) ?? {};
    return tableTime === undefined ? undefined : { time: tableTime, confirms: true };
  };
  return [
    ...(time.witnesses ?? []),
    ...(table === undefined ? [] : [{ name: 'the service of the state table', ask: ofTable }]),
    ...(store.witness === undefined ? [] : [store.witness]),
  ];
}

/** With the log module `slashing_trace` at debug, what the store is asked and answers is logged. */
function traced(store: SlashingBackend, { logger }: World): SlashingBackend {
  if (logger.isDebug?.('slashing_trace') !== true) return store;
  const log = logger.module('slashing_trace');
  return tracedStore(store, (line) => log.debug(line, 'slashing store'));
}

interface Leaving {
  readonly bound: { readonly binding?: StoreBinding | undefined };
  readonly store: Pick<SlashingBackend, 'name' | 'identity' | 'close'>;
  readonly doubts: Pick<Doubts, 'unsettled'>;
  readonly slashing: Pick<SlashingProtection, 'isLacking'>;
  readonly log: Log;
}

/**
 * Once all batches have ended: the last signer of a fleet closes the store before the store itself is closed. A store
 * in doubt is not left in order, so that a jump comes before the next signature.
 */
async function leaveAndClose(leaving: Leaving, waitMs = LEAVE_WAIT_MS): Promise<void> {
  const { bound, store, doubts, log } = leaving;
  const until = performance.now() + waitMs;
  // A file can be overwritten in place, and is the same file then. Other stores answer for themselves at each check.
  const isLacking = store.name === 'sqlite' && (await looked(leaving, Math.min(waitMs, LEAVE_WAIT_MS) / 4));
  if (isLacking) log.error({ backend: store.name }, NOT_WHOLE);
  const isInDoubt = isLacking || doubts.unsettled !== undefined;
  const left = Promise.resolve(isInDoubt ? bound.binding?.stop() : bound.binding?.end());
  await inTime(left, Math.min(waitMs, LEAVE_WAIT_MS) / 2, () => undefined);
  await store.close(Math.max(0, until - performance.now()), isInDoubt);
}

/** One that does not answer may lack anything. */
async function looked({ store, slashing }: Leaving, milliseconds: number): Promise<boolean> {
  const look = async (): Promise<boolean> => slashing.isLacking((await store.identity()).floor, milliseconds);
  return inTime(
    look().catch(() => true),
    2 * milliseconds,
    () => true,
  );
}

const NOT_WHOLE =
  'the slashing database lacks what this process recorded, or does not say: it was overwritten while it was in use. ' +
  'It is not closed in order, and the next start raises it';

const NO_CLOCK =
  'custom_network.genesis_time is missing: the signers of a state table refuse what lies ahead of the clock, and could not';

interface BindStoreParts {
  readonly custody: Custody;
  readonly table: BindingTable;
  readonly backend: BareStore;
  readonly doubts: Pick<Doubts, 'settleNow'>;
  readonly time: SignerTime;
}

async function bindStore(
  config: Pick<Config, 'signer_state'>,
  { custody, table, backend, doubts, time }: BindStoreParts,
  { clock, logger }: Pick<World, 'clock' | 'logger'>,
  opened: AsyncDisposableStack,
): Promise<StoreBinding> {
  const binding = new StoreBinding(
    {
      boundMs: stalenessBoundSeconds(config.signer_state.refresh_interval_seconds) * 1000,
      isFreshTable: custody.isNewTable,
      replica: `${hostname()}-${randomBytes(4).toString('hex')}`,
    },
    {
      table,
      backend,
      jump: async () => void (await doubts.settleNow({ cause: 'other_store' })),
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
