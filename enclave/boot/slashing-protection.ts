// Step "slashing protection": the configured store, bound to the network, with the grouping in front of it and pruning
// behind it. Also what the offline `slashing` commands open.

import { setTimeout as pause } from 'node:timers/promises';
import { encodeHex } from '../../formats/hex.ts';
import { systemClock } from '../../observe/clock.ts';
import type { Log } from '../../observe/log.ts';
import type { StoreBinding } from '../chamber/store-binding.ts';
import type { Config } from '../config/options.ts';
import type { Network } from '../signing/networks.ts';
import { openDynamoDBBackend } from '../slashing/dynamodb/backend.ts';
import { rowIntegrity } from '../slashing/history/integrity.ts';
import { type JumpFloor, jumpFloor, jumpToPresent } from '../slashing/jump.ts';
import { unsafeNoopBackend } from '../slashing/noop.ts';
import { type PostgresAddress, parsePostgresUrl } from '../slashing/postgres/address.ts';
import { openPostgresBackend } from '../slashing/postgres/backend.ts';
import { SlashingProtection } from '../slashing/protection.ts';
import { startPruning } from '../slashing/pruning.ts';
import { sealedBackend } from '../slashing/sealed.ts';
import { openSqliteBackend } from '../slashing/sqlite/backend.ts';
import type { SlashingBackend, StoreFloor } from '../slashing/types.ts';
import type { World } from './boot.ts';
import { DEFAULT_AWS_ACCESS } from './credentials.ts';
import { type Custody, slashingIntegrityKey } from './custody.ts';
import type { Ending } from './ending.ts';
import { afterBootJump } from './slashing-protection/boot-jump.ts';
import { openingFailure } from './slashing-protection/failure.ts';
import { bindStore } from './slashing-protection/store-binding.ts';
import type { Telemetry } from './telemetry.ts';
import type { SignerTime } from './time.ts';

/** The slashing store's share of the time that is left; the rest is for what is still open then. */
const STORE_SHARE = 0.8;

export interface SlashingStoreOptions {
  readonly config: Config;
  readonly network: Network;
  /** 32 bytes derived from the master key; without one rows carry checksums. */
  readonly integrityKey?: Uint8Array | undefined;
  /** What a jump raises the store to; by the system's clock unless given. */
  readonly floorOf?: JumpFloor;
  /** Open also a store that only a jump can put right (dynamodb: bound to another region, or without its record). */
  readonly isForJump?: boolean;
}

export interface SlashingProtectionParts {
  readonly config: Config;
  readonly network: Network;
  /** Undefined without a signer state. */
  readonly custody: Custody | undefined;
  readonly ending: Pick<Ending, 'leftMs'>;
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
  parts: SlashingProtectionParts,
  world: World,
  telemetry: Pick<Telemetry, 'slashing' | 'dynamodbCalled'>,
  opened: AsyncDisposableStack,
): Promise<OpenSlashing> {
  const log = world.logger.module('slashing');
  if (parts.custody?.chamber.state === 'Sealed') {
    return { slashing: sealedProtection(parts.config, world, telemetry), binding: undefined, floor: null };
  }
  const integrityKey = slashingIntegrityKey(parts.custody);
  const { now } = parts.time;
  const floorOf = jumpFloor(parts.network.time, now);
  const asFound = await openSlashingBackend(
    { ...parts, integrityKey, floorOf },
    world,
    telemetry.dynamodbCalled,
  ).finally(() => integrityKey?.fill(0));
  const { config, network } = parts;
  const { store: backend, floor } = await afterBootJump({ config, network, store: asFound, now }, world);
  const bound: { binding?: StoreBinding | undefined } = {};
  const options = {
    ...telemetry.slashing,
    hindrance: () => bound.binding?.hindrance,
    onRollback: raisedOnce(backend, floorOf, log),
  };
  const slashing = new SlashingProtection(backend, options, { clock: world.clock, log });
  opened.defer(() => slashing.close(parts.ending.leftMs() * STORE_SHARE));
  if (parts.custody !== undefined) {
    const wiring = { config: parts.config, custody: parts.custody, backend, jumpFloor: floorOf };
    bound.binding = await bindStore(wiring, world, opened);
  }
  const pruning = startPruning({}, { backend, log });
  // A step that hangs in its store ends with it: nobody waits for it before.
  opened.defer(() => Promise.race([pruning.stop(), pause(parts.ending.leftMs() / 4, undefined, { ref: false })]));
  if (backend.name === 'noop') log.warn({}, 'NO SLASHING PROTECTION: every message is signed, slashable or not');
  log.info({ backend: backend.name }, 'slashing protection is open');
  return { slashing, binding: bound.binding, floor };
}

/** What follows when a store holds less than this process knows: it is raised to the present, one raise at a time. */
function raisedOnce(backend: SlashingBackend, floorOf: JumpFloor, log: Log): () => void {
  let raising = false;
  return () => {
    if (raising) return;
    raising = true;
    jumpToPresent(backend, floorOf)
      .then(({ floor }) => log.warn({ backend: backend.name, floor }, RAISED))
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
  { anti_slashing: { backend } }: Config,
  { clock, logger }: World,
  { slashing }: Pick<Telemetry, 'slashing'>,
): SlashingProtection {
  const options = { ...slashing, unopened: true };
  return new SlashingProtection(sealedBackend(backend), options, { clock, log: logger.module('slashing') });
}

/** @throws Error, a startup failure or that of a command: which store, why, and what to do */
export async function openSlashingBackend(
  options: SlashingStoreOptions,
  world: World,
  onCall?: Telemetry['dynamodbCalled'],
): Promise<SlashingBackend> {
  try {
    return await openBackend(options, world, onCall);
  } catch (error) {
    throw openingFailure(options.config, error);
  }
}

async function openBackend(
  {
    config,
    network,
    integrityKey,
    isForJump,
    floorOf = jumpFloor(network.time, systemClock.now),
  }: SlashingStoreOptions,
  { logger, clock, aws = DEFAULT_AWS_ACCESS }: World,
  onCall?: Telemetry['dynamodbCalled'],
): Promise<SlashingBackend> {
  const { anti_slashing: options } = config;
  const { genesisValidatorsRoot } = network;
  const log = logger.module('slashing');
  const integrity = () => rowIntegrity({ genesisValidatorsRoot, key: integrityKey });
  switch (options.backend) {
    case 'sqlite':
      return openSqliteBackend(
        { path: options.path, genesisValidatorsRoot: encodeHex(genesisValidatorsRoot), integrityKey },
        { log },
      );
    case 'postgres':
      return openPostgresBackend(
        {
          address: addressOf(options.url),
          poolSize: options.pool_size,
          forceIpv4: options.force_ipv4,
          genesisValidatorsRoot,
          integrity: integrity(),
          jumpFloor: floorOf,
        },
        { log, clock },
      );
    case 'dynamodb':
      return openDynamoDBBackend(
        {
          tableName: given(options.table, 'anti_slashing.table'),
          maxConcurrentWrites: options.max_concurrent_writes,
          genesisValidatorsRoot,
          integrity: integrity(),
          client: { ...aws.client, ...(onCall === undefined ? {} : { onCall }) },
          isForJump,
        },
        { log },
      );
    case 'noop':
      return unsafeNoopBackend(encodeHex(genesisValidatorsRoot));
  }
}

function addressOf(url: Config['anti_slashing']['url']): PostgresAddress {
  const reading = parsePostgresUrl(given(url, 'anti_slashing.url').reveal().toString('utf8'));
  if (reading.kind === 'invalid') throw new Error(`anti_slashing.url: ${reading.problem}`);
  return reading;
}

/** The configuration's rules require it: a missing one here is a bug. */
function given<T>(value: T | undefined, option: string): T {
  if (value === undefined) throw new Error(`${option} is missing`);
  return value;
}
