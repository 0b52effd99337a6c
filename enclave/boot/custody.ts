// Step "custody": the state table, the custody keys, and the chamber, which the custody keys unseal or a latch keeps
// sealed. It exists only with `signer_state`.

import type { Ceremony } from '../../ceremony/definition.ts';
import { ceremonyArns, parseCeremony } from '../../ceremony/definition.ts';
import { deploymentOf } from '../../ceremony/deployment.ts';
import { MASTER_KEY_BYTES } from '../../ceremony/shares.ts';
import { encodeHex } from '../../formats/hex.ts';
import { replaceRootToken } from '../auth/stateful/root-token.ts';
import { createToken } from '../auth/tokens.ts';
import type { AwsClientOptions } from '../aws/client.ts';
import { createDynamoDBClient, type DynamoDBClient } from '../aws/dynamodb.ts';
import { createKms, custodyKeysOf, type Kms } from '../aws/kms.ts';
import { tableNameIn } from '../aws/table-name.ts';
import { bindingCodes } from '../chamber/binding-row.ts';
import { type BindingTable, bindingTable } from '../chamber/binding-table.ts';
import { bootChamber, type MakeRootToken, type UnsealParts, unsealOnly } from '../chamber/boot-chamber.ts';
import { Chamber } from '../chamber/chamber.ts';
import { type CustodyKeyHealth, custodyHealth } from '../chamber/custody-health.ts';
import { type StateTable, stateTable } from '../chamber/state-table.ts';
import type { Config } from '../config/options.ts';
import type { Network } from '../signing/networks.ts';
import { nsmRandomBytes } from '../tee/nsm/random.ts';
import { type AwsAccess, DEFAULT_AWS_ACCESS } from './credentials.ts';
import { memoryPolicy } from './secret-key-memory.ts';
import type { Telemetry } from './telemetry.ts';
import type { World } from './world.ts';

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

type CustodyConfig = Pick<Config, 'ceremony' | 'server' | 'signer_state'>;

export interface CustodyParts {
  readonly aws: AwsAccess;
  readonly network: Network;
  readonly telemetry: Pick<Telemetry, 'metrics' | 'dynamodbCalled' | 'kmsCalled'>;
}

/**
 * Undefined without `signer_state`.
 * @throws StateTableFailure, CustodyFailure (specification/operating.md#startup-failures, 8 and 9)
 */
export async function openCustody(
  config: CustodyConfig,
  parts: CustodyParts,
  world: World,
  opened: AsyncDisposableStack,
): Promise<Custody | undefined> {
  const { table: tableName } = config.signer_state;
  if (tableName === undefined) return undefined;
  const { logger, clock, enclave } = world;
  const log = logger.module('chamber');
  const { kms, client, ...unsealing } = openCustodyParts(config, { ...parts, tableName }, world, opened);
  const { table, terms } = unsealing;
  const { ceremony } = terms;
  const readAt = clock.monotonic();
  const booted = await bootChamber({
    ...unsealing,
    makeRootToken: rootTokenMaker(clock),
    ...(enclave === undefined ? {} : { randomness: () => nsmRandomBytes(enclave.nsm, MASTER_KEY_BYTES) }),
    clock,
  });
  const found = booted.kind === 'sealed' ? { latch: booted.latch } : { masterKey: booted.masterKey };
  const chamber = new Chamber(found, { table, clock, log });
  opened.defer(() => chamber.close());
  const { metrics } = parts.telemetry;
  metrics.chamberUnsealed.set(1);
  metrics.custodyGeneration.set(ceremony.generation);
  chamber.onSealed(() => metrics.chamberUnsealed.set(0));
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

interface UnsealingParts extends Pick<CustodyParts, 'aws' | 'network'> {
  readonly tableName: string;
  readonly telemetry?: CustodyParts['telemetry'];
}

/** What reads the table and calls the custody keys; nothing is called yet. */
export function openCustodyParts(
  config: CustodyConfig,
  { aws, network, tableName, telemetry }: UnsealingParts,
  { logger, enclave }: Pick<World, 'logger' | 'enclave'>,
  opened: AsyncDisposableStack,
): UnsealParts & { readonly table: StateTable; readonly kms: Kms; readonly client: DynamoDBClient } {
  const log = logger.module('chamber');
  const ceremony = enclave?.ceremony ?? parseCeremony(config.ceremony);
  const onCall = (called: AwsClientOptions['onCall']) => (called === undefined ? {} : { onCall: called });
  const client = createDynamoDBClient({ ...aws.client, ...onCall(telemetry?.dynamodbCalled) });
  opened.defer(() => client.destroy());
  const kms = createKms({ ...aws.kms, ceremonyArns: ceremonyArns(ceremony), ...onCall(telemetry?.kmsCalled) }, { log });
  opened.defer(() => kms.close());
  return {
    kms,
    client,
    table: stateTable(client, tableName),
    terms: {
      ceremony,
      deployment: deploymentOf(
        encodeHex(network.genesisValidatorsRoot),
        config.signer_state.deployment_id ?? tableNameIn(tableName), // pinning a table later renames no deployment
      ),
      requireBound: config.signer_state.require_bound_master_key,
    },
    custodyKeys: custodyKeysOf(kms),
    memory: memoryPolicy(config.server, enclave),
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

/**
 * The row HMAC of the slashing store; undefined without a master key, and then rows carry checksums. The caller wipes
 * it.
 */
export function slashingIntegrityKey(custody: Custody | undefined): Buffer | undefined {
  return custody === undefined || custody.chamber.state === 'Sealed'
    ? undefined
    : custody.chamber.masterKey.subKey('slashingRowHmac');
}

/**
 * The same for a command that works on the slashing store beside the signers. The caller wipes it.
 * @throws as `openCustody`, and when the table is fresh or sealed
 */
export async function commandIntegrityKey(
  config: CustodyConfig,
  parts: Pick<CustodyParts, 'network'>,
  world: Pick<World, 'logger'>,
): Promise<Buffer | undefined> {
  const { table: tableName } = config.signer_state;
  if (tableName === undefined) return undefined;
  await using opened = new AsyncDisposableStack();
  const masterKey = await unsealOnly(
    openCustodyParts(config, { ...parts, aws: DEFAULT_AWS_ACCESS, tableName }, world, opened),
  );
  opened.defer(() => masterKey.wipe());
  return masterKey.subKey('slashingRowHmac');
}
