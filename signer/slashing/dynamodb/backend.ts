// Slashing protection in a DynamoDB table, for any number of signers: the highest block and vote of each key, raised by
// conditional writes only. It trusts the service to be linearizable for one item.

import { encodeHex } from '../../../common/formats/hex.ts';
import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import type { AwsClientOptions } from '../../aws/client.ts';
import { createDynamoDBClient, type DynamoDBClient } from '../../aws/dynamodb.ts';
import { parseTableArn } from '../../aws/table-name.ts';
import { NO_MARKS } from '../history/head.ts';
import { identityOf } from '../incarnation.ts';
import type { SlashingBackend } from '../types.ts';
import { checkAndRecordOne, type StoreContext, signedBlockRoot, verifiedItems } from './operations/check.ts';
import { firstWrites } from './operations/first-writes.ts';
import { gatheringReplace } from './operations/gather.ts';
import { countMarks, exportTable, importHistories } from './operations/import.ts';
import {
  beginTenures,
  endTenures,
  lowered,
  marksBeyond,
  moveItems,
  raisedItem,
  readTenures,
  startAfresh,
} from './operations/keys.ts';
import { openStore, type RegionBinding, type Store } from './tables/store.ts';
import { type SlashingTable, slashingTable } from './tables/table.ts';

interface DynamoDBBackendOptions extends Omit<RegionBinding, 'region'> {
  readonly maxConcurrentWrites: number;
  readonly client: Omit<AwsClientOptions, 'maxSockets'>;
}

/** Health checks and imports do not wait behind writes. */
const OTHER_SOCKETS = 8;

/**
 * @throws SignerError slashing_unavailable, with a hint: the table is missing, of another shape, network or region;
 * slashing_integrity when its codes were made with another key
 */
export async function openDynamoDBBackend(
  options: DynamoDBBackendOptions,
  { log }: { readonly log: Log },
): Promise<SlashingBackend> {
  const maxSockets = options.maxConcurrentWrites + OTHER_SOCKETS;
  const client = createDynamoDBClient({ ...options.client, maxSockets });
  try {
    const region = await client.config.region();
    const store = await openStore(client, { ...options, region }, log);
    return dynamodbBackend(client, store, options, log);
  } catch (error) {
    client.destroy();
    throw error;
  }
}

function dynamodbBackend(
  client: DynamoDBClient,
  store: Store,
  options: DynamoDBBackendOptions,
  log: Log,
): SlashingBackend {
  const { integrity, maxConcurrentWrites } = options;
  const table = openTable(client, options, log);
  const writeFirst = firstWrites(table, store);
  const context: StoreContext = { table, integrity, verified: verifiedItems(), store, writeFirst, log };
  let isClosed = false;
  const assertOpen = (): void => {
    if (isClosed) throw new SignerError('slashing_unavailable', { detail: { closed: 'dynamodb' } });
  };
  /** @throws SignerError slashing_unavailable: also of another region, or replaced meanwhile */
  const assertUsable = (): void => {
    assertOpen();
    store.assertUsable();
  };
  const inUse = guarded(assertUsable);
  const whileOpen = guarded(assertOpen);

  return {
    name: 'dynamodb',
    batchLimits: { maxMessages: 1, maxInFlight: maxConcurrentWrites, minIntervalMs: 0 },
    witness: {
      name: 'the service of the slashing table',
      async ask(signal) {
        const time = await store.serviceTime(signal);
        return time === undefined ? undefined : { time, confirms: true };
      },
    },

    checkAndRecord: inUse(async (messages, floors) => {
      const checks = messages.map((message, index) => checkAndRecordOne(message, floors[index] ?? NO_MARKS, context));
      await Promise.allSettled(checks);
      return Promise.all(checks);
    }),

    checkHealth: whileOpen(async (signal) => {
      await store.read(signal);
      assertUsable();
    }),

    identity: whileOpen(async () => identityOf(await store.read())),

    incarnate: inUse(async (expected, next) => {
      const { incarnation } = await store.change((record) =>
        record.incarnation === expected ? { ...record, incarnation: next } : record,
      );
      return incarnation === next;
    }),

    /** First the record, which new keys are judged by, then the item of every key. */
    jump: whileOpen(async (floor, lowers = false) => {
      if (lowers) return identityOf(await lowered(floor, context));
      const after = await store.raise(floor);
      await moveItems((item) => raisedItem(item, store.floor ?? floor), context);
      return identityOf(after);
    }),

    signedBlockRoot: inUse((publicKey, slot) => signedBlockRoot(table, publicKey, slot)),
    tenures: whileOpen((publicKeys) => readTenures(table, publicKeys)),
    marksBeyond: whileOpen((floor, publicKeys) => marksBeyond(table, floor, publicKeys)),
    startAfresh: inUse((publicKey, floor) => startAfresh(publicKey, floor, context)),
    endTenures: inUse((publicKeys) => endTenures(publicKeys, context)),
    beginTenures: inUse((from) => beginTenures(from, context)),
    importHistories: inUse((histories) => importHistories(histories, context)),

    async *exportHistories(publicKeys) {
      assertUsable();
      // By the floor as it is now: the file must refuse what the store does.
      await store.read();
      yield* exportTable(table, store.floor, publicKeys);
    },

    /** There is one entry of each kind for a key. */
    pruneStep: whileOpen(async () => 0),

    status: whileOpen(async () => {
      const { publicKeys, counts } = await countMarks(table);
      const genesisValidatorsRoot = encodeHex(options.genesisValidatorsRoot);
      return {
        validators: publicKeys.size,
        blocks: counts.block,
        attestations: counts.attestation,
        genesisValidatorsRoot,
      };
    }),

    async close() {
      isClosed = true;
      client.destroy();
    },
  };
}

/** What the guard throws, the call rejects with. */
function guarded(guard: () => void) {
  return <Given extends unknown[], Result>(call: (...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      guard();
      return call(...given);
    };
}

function openTable(client: DynamoDBClient, { tableName, integrity }: DynamoDBBackendOptions, log: Log): SlashingTable {
  const table = slashingTable(client, tableName, integrity);
  // Nothing says that an ARN in a statement's text is that one table.
  if (parseTableArn(tableName) !== undefined) return table;
  return { ...table, replace: gatheringReplace(client, tableName, table.replace, log) };
}
