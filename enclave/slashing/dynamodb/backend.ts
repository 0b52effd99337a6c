// Slashing protection in a DynamoDB table, for any number of signers: the highest block and the highest vote of each
// key, raised by conditional writes only. It trusts the service to be linearizable for one item; every item it reads
// carries an integrity code that is checked before the item decides anything. The signer's role in the account should
// be allowed to get, batch-get, put, scan and update by statement (PartiQLUpdate), and not to delete.

import { SignerError } from '../../api/errors.ts';
import { encodeHex } from '../../api/hex.ts';
import type { AwsClientOptions } from '../../aws/client.ts';
import { createDynamoDBClient, type DynamoDBClient } from '../../aws/dynamodb.ts';
import type { Log } from '../../observe/log.ts';
import type { RowIntegrity } from '../history/integrity.ts';
import { NO_MARKS } from '../history/rules.ts';
import type { BatchLimits, HighWaterMarks, SlashableMessage, SlashingBackend, Verdict } from '../types.ts';
import { type CheckContext, checkAndRecordOne, verifiedItems } from './check.ts';
import { countMarks, exportHistories } from './export.ts';
import { gatheringReplace } from './gather.ts';
import { importHistories } from './import.ts';
import { bindNetwork, checkNetwork, type NetworkBinding } from './network.ts';
import { applyUpdates } from './statements.ts';
import { type SlashingTable, slashingTable } from './table.ts';

export interface DynamoDBBackendOptions {
  /** `anti_slashing.table` */
  readonly tableName: string;
  /** `anti_slashing.max_concurrent_writes` */
  readonly maxConcurrentWrites: number;
  /** 32 bytes. */
  readonly genesisValidatorsRoot: Uint8Array;
  /** Of the same network; the caller wipes it after the backend is closed. */
  readonly integrity: RowIntegrity;
  readonly client: Omit<AwsClientOptions, 'maxSockets'>;
}

/** Beyond the writes: health checks and imports do not wait behind them. */
const OTHER_SOCKETS = 8;

/**
 * Bind the table to the network, or check that it is.
 * @throws SignerError slashing_unavailable, with a hint when the table is missing, of another shape, or of another
 *         network; slashing_integrity when its codes were made with another key
 */
export async function openDynamoDBBackend(
  options: DynamoDBBackendOptions,
  { log }: { readonly log: Log },
): Promise<SlashingBackend> {
  const maxSockets = options.maxConcurrentWrites + OTHER_SOCKETS;
  const client = createDynamoDBClient({ ...options.client, maxSockets });
  try {
    await bindNetwork(client, options);
  } catch (error) {
    client.destroy();
    throw error;
  }
  return new DynamoDBBackend(client, options, log);
}

class DynamoDBBackend implements SlashingBackend {
  readonly name = 'dynamodb';
  readonly batchLimits: BatchLimits;
  readonly #client: DynamoDBClient;
  readonly #binding: NetworkBinding;
  readonly #context: CheckContext & { readonly log: Log };
  #closed = false;

  constructor(client: DynamoDBClient, options: DynamoDBBackendOptions, log: Log) {
    const { integrity, maxConcurrentWrites } = options;
    // Each message is a write of its own and fails alone; writes share requests further down (gather.ts).
    this.batchLimits = { maxMessages: 1, maxInFlight: maxConcurrentWrites, minIntervalMs: 0 };
    this.#client = client;
    this.#binding = options;
    this.#context = { table: openTable(client, options, log), integrity, verified: verifiedItems(), log };
  }

  async checkAndRecord(messages: readonly SlashableMessage[], floors: readonly HighWaterMarks[]): Promise<Verdict[]> {
    this.#assertOpen();
    const checks = messages.map((message, index) =>
      checkAndRecordOne(message, floors[index] ?? NO_MARKS, this.#context),
    );
    // All of them end before a failure is reported: nothing goes on behind the caller's back.
    await Promise.allSettled(checks);
    return Promise.all(checks);
  }

  async checkHealth(signal: AbortSignal): Promise<void> {
    this.#assertOpen();
    await checkNetwork(this.#client, this.#binding, signal);
  }

  async importHistories(histories: Parameters<SlashingBackend['importHistories']>[0]) {
    this.#assertOpen();
    return importHistories(histories, this.#context);
  }

  exportHistories(publicKeys?: Parameters<SlashingBackend['exportHistories']>[0]) {
    this.#assertOpen();
    return exportHistories(this.#context.table, publicKeys);
  }

  /** There is one entry of each kind for a key and it is the highest, so there is never anything behind it. */
  async pruneStep(): Promise<number> {
    this.#assertOpen();
    return 0;
  }

  async status() {
    this.#assertOpen();
    const { publicKeys, counts } = await countMarks(this.#context.table);
    return {
      validators: publicKeys.size,
      blocks: counts.block,
      attestations: counts.attestation,
      genesisValidatorsRoot: encodeHex(this.#binding.genesisValidatorsRoot),
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#client.destroy();
  }

  #assertOpen(): void {
    if (this.#closed) throw new SignerError('slashing_unavailable', { detail: { closed: 'dynamodb' } });
  }
}

function openTable(client: DynamoDBClient, { tableName, integrity }: DynamoDBBackendOptions, log: Log): SlashingTable {
  const table = slashingTable(client, tableName, integrity);
  const applied = (updates: Parameters<typeof applyUpdates>[2]) => applyUpdates(client, tableName, updates);
  return { ...table, replace: gatheringReplace({ replace: table.replace, applyUpdates: applied, log }) };
}
