// Step "custody": the state table, the custody keys, and the chamber that they unseal (or that a latch keeps sealed); and, once
// everything that holds secrets is open, the watcher that seals it. Nothing of this exists without `signer_state`.

import type { Ceremony } from '../../ceremony/definition.ts';
import { ceremonyArns, parseCeremony } from '../../ceremony/definition.ts';
import { deploymentOf } from '../../ceremony/deployment.ts';
import { encodeHex } from '../../formats/hex.ts';
import { replaceRootToken } from '../auth/stateful/root-token.ts';
import { createToken } from '../auth/tokens.ts';
import { createDynamoDBClient, type DynamoDBClient } from '../aws/dynamodb.ts';
import { createKms, custodyKeysOf, type Kms } from '../aws/kms.ts';
import { tableNameIn } from '../aws/table-name.ts';
import { bindingCodes } from '../chamber/binding-row.ts';
import { type BindingTable, bindingTable } from '../chamber/binding-table.ts';
import { bootChamber, type MakeRootToken, type UnsealParts, unsealOnly } from '../chamber/boot-chamber.ts';
import { Chamber } from '../chamber/chamber.ts';
import { type CustodyKeyHealth, custodyHealth } from '../chamber/custody-health.ts';
import { MASTER_KEY_BYTES } from '../chamber/master-key.ts';
import { type StateTable, stateTable } from '../chamber/state-table.ts';
import { Watcher, type WatcherParts } from '../chamber/watcher.ts';
import type { Config } from '../config/options.ts';
import { nsmRandomBytes } from '../tee/nsm/random.ts';
import type { World } from './boot.ts';
import { DEFAULT_AWS_ACCESS } from './credentials.ts';
import { networkOf } from './network.ts';
import { memoryPolicy } from './secret-key-memory.ts';
import type { Telemetry } from './telemetry.ts';

export interface Custody {
  readonly chamber: Chamber;
  readonly table: StateTable;
  readonly ceremony: Ceremony;
  readonly keyHealth: () => Promise<readonly CustodyKeyHealth[]>;
  /** By the monotonic clock: when the start began to read the table. */
  readonly readAt: number;
  /** This start has initialised the state table: no other signer has used it yet. */
  readonly isNewTable: boolean;
  /** The row that binds the fleet to a slashing store; undefined while sealed. */
  readonly binding: BindingTable | undefined;
}

/** Undefined without `signer_state`. @throws StateTableFailure, CustodyFailure (service.md, startup failures 8 and 9) */
export async function openCustody(
  config: Config,
  world: World,
  telemetry: Pick<Telemetry, 'metrics' | 'dynamodbCalled' | 'kmsCalled'>,
  opened: AsyncDisposableStack,
): Promise<Custody | undefined> {
  const { table: tableName } = config.signer_state;
  if (tableName === undefined) return undefined;
  const { logger, clock, enclave } = world;
  const log = logger.module('chamber');
  const { kms, client, ...parts } = openParts(config, tableName, world, telemetry, opened);
  const { table, terms } = parts;
  const { ceremony } = terms;
  const readAt = clock.monotonic();
  const booted = await bootChamber({
    ...parts,
    makeRootToken: rootTokenMaker(clock),
    ...(enclave === undefined ? {} : { randomness: () => nsmRandomBytes(enclave.nsm, MASTER_KEY_BYTES) }),
    clock,
  });
  const found = booted.kind === 'sealed' ? { latch: booted.latch } : { masterKey: booted.masterKey };
  const chamber = new Chamber(found, { table, clock, log });
  opened.defer(() => chamber.close());
  telemetry.metrics.chamberUnsealed.set(1);
  chamber.onSealed(() => telemetry.metrics.chamberUnsealed.set(0));
  const keyHealth = custodyHealth(ceremony.kmsKeys, { reachable: kms.reachable, clock });
  const isNewTable = booted.kind === 'unsealed' && booted.isNewTable;
  const binding = openBinding(chamber, client, tableName, opened);
  return { chamber, table, ceremony, keyHealth, readAt, isNewTable, binding };
}

/** Its key ends with the chamber. */
function openBinding(
  chamber: Chamber,
  client: DynamoDBClient,
  tableName: string,
  opened: AsyncDisposableStack,
): BindingTable | undefined {
  if (chamber.state === 'Sealed') return undefined;
  const codes = bindingCodes(chamber.masterKey.subKey('storeBindingHmac'));
  chamber.onSealed(() => codes.wipe());
  opened.defer(() => codes.wipe());
  return bindingTable(client, tableName, codes);
}

function openParts(
  config: Config,
  tableName: string,
  { logger, enclave, aws = DEFAULT_AWS_ACCESS }: Pick<World, 'logger' | 'enclave' | 'aws'>,
  telemetry: Partial<Pick<Telemetry, 'dynamodbCalled' | 'kmsCalled'>>,
  opened: AsyncDisposableStack,
): UnsealParts & { readonly table: StateTable; readonly kms: Kms; readonly client: DynamoDBClient } {
  const log = logger.module('chamber');
  const ceremony = enclave?.ceremony ?? parseCeremony(config.ceremony);
  const { dynamodbCalled, kmsCalled } = telemetry;
  const client = createDynamoDBClient({
    ...aws.client,
    ...(dynamodbCalled === undefined ? {} : { onCall: dynamodbCalled }),
  });
  opened.defer(() => client.destroy());
  const kms = createKms(
    { ...aws.kms, ceremonyArns: ceremonyArns(ceremony), ...(kmsCalled === undefined ? {} : { onCall: kmsCalled }) },
    { log },
  );
  opened.defer(() => kms.close());
  return {
    kms,
    client,
    table: stateTable(client, tableName),
    terms: {
      ceremony,
      deployment: deploymentOf(
        encodeHex(networkOf(config).genesisValidatorsRoot),
        config.signer_state.deployment_id ?? tableNameIn(tableName), // pinning a table later renames no deployment
      ),
      requireBound: config.signer_state.require_bound_master_key,
    },
    custodyKeys: custodyKeysOf(kms),
    memory: memoryPolicy(config, enclave),
    log,
  };
}

export function rootTokenMaker(clock: World['clock']): MakeRootToken {
  return (masterKey, head) => {
    const keys = { rows: masterKey.subKey('authRowHmac'), tokens: masterKey.subKey('tokenHmac') };
    const token = createToken('management');
    try {
      return { token, ...replaceRootToken(keys, head, token, clock.now()) };
    } finally {
      keys.rows.fill(0);
      keys.tokens.fill(0);
    }
  };
}

/** The row HMAC of the slashing store; undefined without a master key, and then rows carry checksums. The caller wipes it. */
export function slashingIntegrityKey(custody: Custody | undefined): Buffer | undefined {
  return custody === undefined || custody.chamber.state === 'Sealed'
    ? undefined
    : custody.chamber.masterKey.subKey('slashingRowHmac');
}

/**
 * The same for a command that works on the slashing store beside the signers. The caller wipes it.
 * @throws as `openCustody`, and when the table is fresh or sealed
 */
export async function commandIntegrityKey(config: Config, world: Pick<World, 'logger'>): Promise<Buffer | undefined> {
  const { table: tableName } = config.signer_state;
  if (tableName === undefined) return undefined;
  await using opened = new AsyncDisposableStack();
  const masterKey = await unsealOnly(openParts(config, tableName, world, {}, opened));
  opened.defer(() => masterKey.wipe());
  return masterKey.subKey('slashingRowHmac');
}

/** Why nothing may be signed now (decisions.md section 2). */
export function custodyRefusal(
  custody: Custody | undefined,
  watcher: Watcher | undefined,
): 'sealed' | 'state_stale' | undefined {
  if (custody?.chamber.state === 'Sealed') return 'sealed';
  return watcher?.stale === true ? 'state_stale' : undefined;
}

export interface WatchParts {
  readonly config: Config;
  readonly custody: Custody | undefined;
  /** Of the stateful mode. */
  readonly auth: WatcherParts['auth'] | undefined;
}

/**
 * Undefined when there is nothing to watch: no signer state, sealed already, or a refresh interval of 0. Resolves after the
 * first look, so that nothing is served on what was read before the other steps of the start.
 */
export async function watchState(
  { config, custody, auth }: WatchParts,
  { logger, clock }: World,
  { metrics }: Pick<Telemetry, 'metrics'>,
  opened: AsyncDisposableStack,
): Promise<Watcher | undefined> {
  const intervalSeconds = config.signer_state.refresh_interval_seconds;
  if (custody === undefined || auth === undefined || custody.chamber.state === 'Sealed') return undefined;
  const { chamber, table, ceremony, readAt } = custody;
  const log = logger.module('chamber');
  if (intervalSeconds === 0) {
    log.warn({}, NOT_WATCHING);
    return undefined;
  }
  const watcher = new Watcher(
    { intervalSeconds, generation: ceremony.generation, readAt },
    { table, onLatch: (latch) => chamber.sealBecauseOf(latch), auth, clock, log },
  );
  chamber.onSealed(() => watcher.stop());
  opened.defer(() => watcher.stop());
  metrics.onRender(() => metrics.stateAgeSeconds.set(watcher.ageSeconds()));
  await watcher.start();
  return watcher;
}

const NOT_WATCHING =
  'signer_state.refresh_interval_seconds is 0: seals, revocations and changed policies that are made elsewhere do not reach this ' +
  'replica before it starts again';
