// Step "custody": the state table, the custody keys, and the chamber. It exists only with `signer_state`, and is loaded
// only then, with the clients of AWS.

import {
  type Ceremony,
  ceremonyArns,
  type Deployment,
  deploymentOf,
  parseCeremony,
} from '../../ceremony/definition.ts';
import { MASTER_KEY_BYTES } from '../../ceremony/shares.ts';
import type { AcceptedImage } from '../../common/attestation/contract.ts';
import { encodeHex } from '../../common/formats/hex.ts';
import {
  type Manifest,
  makeHead,
  makeRow,
  newCommit,
  openHead,
  pkOf,
  rowCode,
  tokenFields,
} from '../auth/stateful/rows.ts';
import type { AuthHead, AuthKeys } from '../auth/stateful/state.ts';
import { createAccessor, createToken, tokenDigest } from '../auth/tokens.ts';
import type { AwsAccess } from '../aws/access.ts';
import { createDynamoDBClient, type DynamoDBClient } from '../aws/dynamodb.ts';
import { createKms, custodyKeysOf, type Kms } from '../aws/kms.ts';
import { tableNameIn } from '../aws/table-name.ts';
import { bindingCodes } from '../chamber/binding-row.ts';
import { type BindingTable, bindingTable } from '../chamber/binding-table.ts';
import { bootChamber, type MakeRootToken, type NewRootToken, type UnsealParts } from '../chamber/boot-chamber.ts';
import { Chamber } from '../chamber/chamber.ts';
import { type CustodyKeyHealth, custodyHealth } from '../chamber/custody-health.ts';
import { type KeyOrigin, type KeyProvenance, keyProvenance } from '../chamber/key-provenance.ts';
import { type StateTable, stateTable } from '../chamber/state-table.ts';
import type { Config } from '../config/options.ts';
import type { Network } from '../sign/networks.ts';
import { nsmRandomBytes } from '../tee/random.ts';
import { memoryPolicy } from './secret-key-memory.ts';
import type { Telemetry } from './telemetry.ts';
import type { World } from './world.ts';

export interface Custody {
  readonly chamber: Chamber;
  readonly table: StateTable;
  readonly client: DynamoDBClient;
  readonly ceremony: Ceremony;
  readonly keyHealth: () => Promise<readonly CustodyKeyHealth[]>;
  readonly readAt: number;
  /** This start has initialised the state table: no other signer has used it yet. */
  readonly isNewTable: boolean;
  /** Where the master key comes from, as this start verified it; undefined while sealed and outside an enclave. */
  readonly origin: KeyOrigin | undefined;
  readonly bindingTable: BindingTable | undefined;
}

export type CustodyConfig = Pick<Config, 'ceremony' | 'server' | 'signer_state' | 'tee'>;

interface CustodyParts {
  readonly aws: AwsAccess;
  readonly network: Network;
  readonly tableName: string;
  readonly telemetry: Pick<Telemetry, 'metrics' | 'dynamodbCalled' | 'kmsCalled'>;
}

/** @throws StateTableFailure, CustodyFailure (specification/operating.md#startup-failures, 8 and 9) */
export async function openCustody(
  config: CustodyConfig,
  parts: CustodyParts,
  world: World,
  opened: AsyncDisposableStack,
): Promise<Custody> {
  const { logger, clock, enclave } = world;
  const log = logger.module('chamber');
  const { kms, client, ...unsealing } = openCustodyParts(config, parts, world, opened);
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
  const origin = booted.kind === 'unsealed' ? booted.origin : undefined;
  const binding = openBinding(chamber, client, parts.tableName, opened);
  return { chamber, table, client, ceremony, keyHealth, readAt, isNewTable, origin, bindingTable: binding };
}

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

type UnsealingParts = Omit<CustodyParts, 'telemetry'> & Partial<Pick<CustodyParts, 'telemetry'>>;

export function openCustodyParts(
  config: CustodyConfig,
  { aws, network, tableName, telemetry }: UnsealingParts,
  { logger, enclave }: Pick<World, 'logger' | 'enclave'>,
  opened: AsyncDisposableStack,
): UnsealParts & { readonly table: StateTable; readonly kms: Kms; readonly client: DynamoDBClient } {
  const log = logger.module('chamber');
  const ceremony = enclave?.ceremony ?? parseCeremony(config.ceremony);
  const client = createDynamoDBClient({ ...aws.client, onCall: telemetry?.dynamodbCalled });
  opened.defer(() => client.destroy());
  const kms = createKms({ ...aws.kms, ceremonyArns: ceremonyArns(ceremony), onCall: telemetry?.kmsCalled }, { log });
  opened.defer(() => kms.close());
  const deployment = deploymentOf(
    encodeHex(network.genesisValidatorsRoot),
    config.signer_state.deployment_id ?? tableNameIn(tableName), // pinning a table later renames no deployment
  );
  return {
    kms,
    client,
    table: stateTable(client, tableName),
    provenance: provenanceOf(enclave, deployment, config.tee.nitro.accepted_images),
    terms: { ceremony, deployment },
    custodyKeys: custodyKeysOf(kms),
    memory: memoryPolicy(config.server, enclave),
    log,
  };
}

function provenanceOf(
  enclave: World['enclave'],
  deployment: Deployment,
  acceptedImages: readonly AcceptedImage[],
): KeyProvenance | undefined {
  if (enclave === undefined || enclave.nsm.signsNothing) return undefined;
  const { nsm, documents, measurements, ceremony } = enclave;
  return keyProvenance({ nsm, documents, measurements, ceremony, deployment, acceptedImages });
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

type RootTokenWrite = Omit<NewRootToken, 'token'>;

/** @param rootToken the caller encrypts and wipes it @throws Error when the revision of the stored head was altered */
export function replaceRootToken(
  keys: AuthKeys,
  head: AuthHead | undefined,
  rootToken: Uint8Array,
  now: number,
): RootTokenWrite {
  const revision = (head?.revision ?? 0) + 1;
  if (!Number.isSafeInteger(revision)) {
    throw new Error('the revision in the row AUTH_REVISION was altered: delete the row and start again');
  }
  const believed = head && openHead(keys.rows, head);
  const before = believed ?? NO_ROWS;
  const pk = pkOf('token', createAccessor());
  const fields = tokenFields({
    kind: 'management',
    digest: tokenDigest(keys.tokens, rootToken),
    policies: [],
    boundCidrs: [],
    description: 'root token',
    createdAt: new Date(now).toISOString(),
    expiresAt: null,
    ttlSeconds: null,
  });
  const rows = new Map(before.rows);
  if (before.root !== null) rows.delete(before.root);
  const commit = newCommit(revision);
  const row = makeRow(keys.rows, pk, commit, fields);
  rows.set(pk, rowCode(row));
  return {
    dropsEverything: believed === undefined,
    changes: [...(before.root === null ? [] : [{ delete: before.root }]), { put: row }],
    head: makeHead(keys.rows, commit, { root: pk, rows }),
  };
}

const NO_ROWS: Manifest = Object.freeze({ root: null, rows: new Map() });
