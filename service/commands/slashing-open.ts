// Opens the configured slashing store for a command, and closes it. Which databases of Web3Signer it holds is asked
// before a start or an export that would otherwise know nothing of them.

import { existsSync } from 'node:fs';
import { systemClock, type Witness } from '../../common/observe/clock.ts';
import { createLogger, type Logger } from '../../common/observe/logger.ts';
import { DEFAULT_AWS_ACCESS } from '../../signer/aws/access.ts';
import type { CustodyConfig } from '../../signer/boot/custody.ts';
import { doubtOfFile, notedDoubt } from '../../signer/boot/slashing-protection/start-doubts.ts';
import { openSlashingBackend } from '../../signer/boot/slashing-protection/store.ts';
import type { World } from '../../signer/boot/world.ts';
import type { BindingRow } from '../../signer/chamber/binding-row.ts';
import { networkOf } from '../../signer/config/network.ts';
import type { Config } from '../../signer/config/options.ts';
import type { Network } from '../../signer/sign/networks.ts';
import type { ClockParts } from '../../signer/slashing/doubt/clock.ts';
import { latestBy } from '../../signer/slashing/future.ts';
import { readIncarnations } from '../../signer/slashing/incarnation.ts';
import { type BareStore, type RestrainedStore, restrainStore } from '../../signer/slashing/restraints.ts';
import type { Doubt, StoreIdentity } from '../../signer/slashing/types.ts';
import { readConfigFile } from '../config/consensus-config.ts';
import { kernelClock } from '../kernel-clock.ts';
import { SERVICE_STORES } from '../stores.ts';

export interface StoreUse {
  readonly stderr: NodeJS.WritableStream;
  readonly isForJump: boolean;
  /** Whether the answer, or what is taken back, counts for the fleet: then the store is the one that it signs over. */
  readonly needsBound: boolean;
  /** What the store says of itself is said from this level on; `warn` unless given. */
  readonly level?: 'warn' | 'error';
}

export interface OpenedStore {
  readonly backend: RestrainedStore;
  readonly bareStore: BareStore;
  readonly network: Network;
  readonly logger: Logger;
  /** For which a start would jump. */
  readonly doubt: Doubt | undefined;
  /** What a jump goes by. */
  readonly confirmedClock: ClockParts;
}

export async function withStore<Result>(
  config: Config,
  { stderr, isForJump, needsBound, level = 'warn' }: StoreUse,
  use: (store: OpenedStore) => Promise<Result>,
): Promise<Result> {
  const network = networkOf(config, readConfigFile);
  const logger = createLogger({ level, format: 'text', color: false }, stderr);
  const custody = await commandCustody(config, { network }, { logger });
  const integrityKey = custody?.integrityKey;
  const parts = { stores: SERVICE_STORES, network, integrityKey, isForJump };
  const bareStore = await openSlashingBackend(config.anti_slashing, parts, { logger, clock: systemClock }).finally(() =>
    integrityKey?.fill(0),
  );
  try {
    const otherStore = custody === undefined ? undefined : otherStoreThan(await bareStore.identity(), custody);
    if (otherStore !== undefined && needsBound) throw new Error(otherStore);
    if (otherStore !== undefined) logger.module('slashing').warn({}, otherStore);
    // A command runs by hand, with no binding of its own: what it may do while signers run is said in its help.
    const latest = network.time && latestBy(systemClock.now, network.time);
    const backend = restrainStore(bareStore, { latest, hindrance: () => undefined });
    const witnesses = [
      kernelClock,
      ...(custody?.witnesses ?? []),
      ...(bareStore.witness === undefined ? [] : [bareStore.witness]),
    ];
    const needsNoWitness = config.anti_slashing.unsafe_unconfirmed_clock;
    const confirmedClock = { now: systemClock.now, witnesses, needsNoWitness };
    const { jump_after_unclean_end } = config.anti_slashing;
    const ofFile = jump_after_unclean_end ? doubtOfFile(bareStore, custody !== undefined) : undefined;
    const doubt = ofFile ?? (await notedDoubt(bareStore));
    return await use({ backend, bareStore, network, logger, doubt, confirmedClock });
  } finally {
    await bareStore.close();
  }
}

interface CommandCustody {
  readonly integrityKey: Buffer;
  /** Over which store the fleet signs, read before that store is opened; undefined when the table does not say. */
  readonly bound: BindingRow | undefined;
  readonly witnesses: readonly Witness[];
}

/** @throws as `openCustody`, and when the table is fresh or sealed */
async function commandCustody(
  config: CustodyConfig,
  parts: { readonly network: Network },
  world: Pick<World, 'logger'>,
): Promise<CommandCustody | undefined> {
  const { table: tableName } = config.signer_state;
  if (tableName === undefined) return undefined;
  const { openCustodyParts } = await import('../../signer/boot/custody.ts');
  const { bindingTable } = await import('../../signer/chamber/binding-table.ts');
  const { bindingCodes } = await import('../../signer/chamber/binding-row.ts');
  const { unsealOnly } = await import('../store-looks/chamber.ts');
  await using opened = new AsyncDisposableStack();
  const unsealing = openCustodyParts(config, { ...parts, aws: DEFAULT_AWS_ACCESS, tableName }, world, opened);
  const masterKey = await unsealOnly(unsealing);
  opened.defer(() => masterKey.wipe());
  const codes = bindingCodes(masterKey.subKey('storeBindingHmac'));
  opened.defer(() => codes.wipe());
  const { row, tableTime } = await bindingTable(unsealing.client, tableName, codes).read();
  const readAt = systemClock.monotonic();
  const ask = async () => ({ time: (tableTime ?? 0) + systemClock.monotonic() - readAt, confirms: true });
  const witnesses = tableTime === undefined ? [] : [{ name: 'the service of the state table', ask }];
  return { integrityKey: masterKey.subKey('slashingRowHmac'), bound: row, witnesses };
}

/** Why the store is not known to be the one over which the fleet signs; undefined when it is. */
function otherStoreThan({ id, incarnation }: StoreIdentity, { bound }: CommandCustody): string | undefined {
  if (bound?.isAuthentic !== true) {
    return (
      'the state table does not say over which slashing store the fleet signs: start a signer over this store first, ' +
      'and wait until it is bound'
    );
  }
  if (bound.storeId === id && readIncarnations(incarnation).held.includes(bound.incarnation)) return undefined;
  const isCopy = bound.storeId === id;
  return (
    `the fleet signs over ${isCopy ? 'a later state of this slashing store, of which this is a copy' : `another slashing store, ${bound.storeId}`} ` +
    `(last used by ${bound.replica} at ${bound.beatAt}): what this one holds may lack what the fleet has signed`
  );
}

/** The databases that were merged or waived. A SQLite database that is not there is not made. */
export async function web3SignersOf(config: Config, stderr: NodeJS.WritableStream): Promise<readonly string[]> {
  const { backend, path } = config.anti_slashing;
  if (backend === 'sqlite' && !existsSync(path)) return [];
  return withStore(config, { stderr, isForJump: false, needsBound: false }, async ({ bareStore }) => {
    const { incarnation } = await bareStore.identity();
    return readIncarnations(incarnation).web3signers;
  });
}
