// A replica's way to its master key, in this process, with clients of its own: what the boot step does and nothing else.

import { ceremonyArns, parseCeremony } from '../../ceremony/definition.ts';
import type { AwsClientOptions } from '../../enclave/aws/client.ts';
import { createDynamoDBClient } from '../../enclave/aws/dynamodb.ts';
import { createKms, custodyKeysOf, type KmsOptions } from '../../enclave/aws/kms.ts';
import { rootTokenMaker } from '../../enclave/boot/chamber.ts';
import { type Booted, bootChamber } from '../../enclave/chamber/boot-chamber.ts';
import { type StateTable, stateTable } from '../../enclave/chamber/state-table.ts';
import { systemClock } from '../../enclave/observe/clock.ts';
import type { CustodyWorld } from '../support/custody.ts';
import { dynamoDBClientOptions } from '../support/dynamodb.ts';
import { kmsClientOptions } from '../support/kms-server.ts';
import { type LogLine, recordingLog } from '../support/recording-log.ts';

export interface ReplicaOptions {
  readonly table: string;
  /** A ceremony block. */
  readonly ceremony: unknown;
  /** Instead of the server's own, to go through a proxy. */
  readonly dynamodb?: string;
  readonly client?: AwsClientOptions;
  readonly kms?: Partial<KmsOptions>;
}

export interface Replica {
  readonly booted: Booted;
  readonly log: readonly LogLine[];
}

export async function bootReplica(world: CustodyWorld, options: ReplicaOptions): Promise<Replica> {
  const log = recordingLog();
  const ceremony = parseCeremony(options.ceremony);
  const client = createDynamoDBClient(
    dynamoDBClientOptions(options.dynamodb ?? world.dynamodb.endpoint, options.client),
  );
  const kms = createKms(kmsClientOptions(world.kms, ceremonyArns(ceremony), options.kms), { log });
  try {
    const booted = await bootChamber({
      table: stateTable(client, options.table),
      ceremony,
      custodyKeys: custodyKeysOf(kms),
      makeRootToken: rootTokenMaker(systemClock),
      memory: 'off',
      clock: systemClock,
      log,
    });
    return { booted, log: log.lines };
  } finally {
    kms.close();
    client.destroy();
  }
}

/** What replicas of one master key agree on, without showing it. */
export function fingerprint({ booted }: Replica): string {
  if (booted.kind === 'sealed') return 'sealed';
  return booted.masterKey.subKey('keyEncryption').toString('hex');
}

export function said({ log }: Replica, text: string): boolean {
  return log.some(({ message }) => message.includes(text));
}

/** The state table through a client of its own. */
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
