// A replica's way to its master key, in this process, with clients of its own: what the boot step does and nothing
// else.

import { ceremonyArns, deploymentOf, parseCeremony } from '../../ceremony/definition.ts';
import type { CustodyTerms } from '../../ceremony/key-record.ts';
import { encodeHex } from '../../common/formats/hex.ts';
import { systemClock } from '../../common/observe/clock.ts';
import type { CustodyWorld } from '../../rehearsal/custody.ts';
import { dynamoDBClientOptions } from '../../rehearsal/dynamodb.ts';
import { kmsClientOptions } from '../../rehearsal/kms/server.ts';
import { unsealOnly } from '../../service/store-looks/chamber.ts';
import type { AwsClientOptions } from '../../signer/aws/client.ts';
import { createDynamoDBClient } from '../../signer/aws/dynamodb.ts';
import { createKms, custodyKeysOf, type KmsOptions } from '../../signer/aws/kms.ts';
import { rootTokenMaker } from '../../signer/boot/custody.ts';
import { type Booted, bootChamber, type UnsealParts } from '../../signer/chamber/boot-chamber.ts';
import { type KeyProvenanceParts, keyProvenance } from '../../signer/chamber/key-provenance.ts';
import { type StateTable, stateTable } from '../../signer/chamber/state-table.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { PATIENT } from '../support/patience.ts';
import { type LogLine, recordingLog } from '../support/recording-log.ts';

/** Mainnet, which is a signer's own default: replicas here and processes agree about a table. */
export const NETWORK = encodeHex(publicNetwork('mainnet').genesisValidatorsRoot);

export interface ReplicaOptions {
  readonly table: string;
  readonly ceremony: unknown;
  readonly terms?: Partial<CustodyTerms>;
  /** Instead of the server's own, to go through a proxy. */
  readonly dynamodb?: string;
  readonly client?: AwsClientOptions;
  readonly kms?: Partial<KmsOptions>;
  /** As in an enclave. */
  readonly provenance?: Pick<KeyProvenanceParts, 'nsm' | 'documents' | 'measurements'> &
    Partial<Pick<KeyProvenanceParts, 'acceptedImages'>>;
}

export interface Replica {
  readonly booted: Booted;
  readonly log: readonly LogLine[];
}

export async function bootReplica(world: CustodyWorld, options: ReplicaOptions): Promise<Replica> {
  const log = recordingLog();
  const booted = await withParts(world, options, log, (parts) =>
    bootChamber({ ...parts, makeRootToken: rootTokenMaker(systemClock), clock: systemClock }),
  );
  return { booted, log: log.lines };
}

/** What a command beside the signers comes to: the fingerprint of its master key. */
export async function unsealForCommand(world: CustodyWorld, options: ReplicaOptions): Promise<string> {
  return withParts(world, options, recordingLog(), async (parts) =>
    (await unsealOnly(parts)).subKey('keyEncryption').toString('hex'),
  );
}

async function withParts<Result>(
  world: CustodyWorld,
  options: ReplicaOptions,
  log: ReturnType<typeof recordingLog>,
  use: (parts: UnsealParts & { readonly table: StateTable }) => Promise<Result>,
): Promise<Result> {
  const ceremony = parseCeremony(options.ceremony);
  const client = createDynamoDBClient(
    dynamoDBClientOptions(options.dynamodb ?? world.dynamodb.endpoint, { ...PATIENT, ...options.client }),
  );
  const kms = createKms(kmsClientOptions(world.kms, ceremonyArns(ceremony), { ...PATIENT, ...options.kms }), { log });
  const deployment = deploymentOf(NETWORK, options.table);
  const provenance = options.provenance && {
    provenance: keyProvenance({ acceptedImages: [], ...options.provenance, ceremony, deployment }),
  };
  try {
    return await use({
      table: stateTable(client, options.table),
      ...provenance,
      terms: { ceremony, deployment, ...options.terms },
      custodyKeys: custodyKeysOf(kms),
      memory: 'off',
      log,
    });
  } finally {
    kms.close();
    client.destroy();
  }
}

export function fingerprint({ booted }: Replica): string {
  if (booted.kind === 'sealed') return 'sealed';
  return booted.masterKey.subKey('keyEncryption').toString('hex');
}

export function said({ log }: Replica, text: string): boolean {
  return log.some(({ message }) => message.includes(text));
}

export function openTable(
  world: CustodyWorld,
  name: string,
  options: { readonly endpoint?: string; readonly client?: AwsClientOptions } = {},
): StateTable & Disposable {
  const client = createDynamoDBClient(
    dynamoDBClientOptions(options.endpoint ?? world.dynamodb.endpoint, options.client),
  );
  return { ...stateTable(client, name), [Symbol.dispose]: () => client.destroy() };
}
