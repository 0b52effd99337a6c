// The key table of the step "keys". It is looked at once, so that a table that is not there ends the start.

import { SignerError } from '../api/errors.ts';
import type { AwsAccess } from '../aws/access.ts';
import { createDynamoDBClient } from '../aws/dynamodb.ts';
import type { Config } from '../config/options.ts';
import type { KeyStore } from '../keys/store.ts';
import { readRevisions, type TableConnection } from '../keys/table/calls.ts';
import { TableFreshness } from '../keys/table/freshness.ts';
import { KeyCipher } from '../keys/table/key-cipher.ts';
import { TableLoader } from '../keys/table/loader.ts';
import { openKeyTable } from '../keys/table/table.ts';
import type { KeyTable } from '../keys/table/types.ts';
import type { Custody } from './custody.ts';
import type { Telemetry } from './telemetry.ts';
import type { World } from './world.ts';

export interface OpenedKeyTable {
  readonly rows: KeyTable;
  readonly loader: TableLoader;
}

interface ConfiguredKeyTableParts {
  readonly aws: AwsAccess;
  readonly custody: Custody;
  readonly store: KeyStore;
  readonly telemetry: Pick<Telemetry, 'metrics' | 'dynamodbCalled'>;
}

export async function openConfiguredKeyTable(
  config: Config['key_sources']['dynamodb'],
  { aws, custody, store, telemetry: { metrics, dynamodbCalled } }: ConfiguredKeyTableParts,
  { logger, clock }: World,
  opened: AsyncDisposableStack,
): Promise<OpenedKeyTable | undefined> {
  const { table: tableName, status_filter, refresh_interval_seconds, max_concurrent_reads } = config;
  if (tableName === undefined) return undefined;
  const log = logger.module('keys');
  const client = createDynamoDBClient({ ...aws.client, onCall: dynamodbCalled });
  opened.defer(() => client.destroy());
  await assertReadable({ client, tableName });

  const keyCipher = new KeyCipher(custody.chamber.masterKey.subKey('keyEncryption'));
  const parts = { client, tableName, keyCipher, freshness: new TableFreshness(), clock, log };
  const loader = new TableLoader(
    {
      statusFilter: status_filter,
      refreshIntervalSeconds: refresh_interval_seconds,
      maxConcurrentReads: max_concurrent_reads,
    },
    {
      ...parts,
      store,
      onLoaded: ({ refusedRows, seconds }) => {
        metrics.keyLoadSeconds.set(seconds, { source: 'dynamodb' });
        metrics.keyLoadFailures.set(refusedRows, { source: 'dynamodb' });
      },
      onLookFailed: () => metrics.keyTableReadFailures.inc(),
    },
  );
  custody.chamber.onSealed(() => {
    keyCipher.wipe();
    void loader.stop();
  });
  opened.defer(async () => {
    await loader.stop();
    keyCipher.wipe();
  });
  return { rows: openKeyTable(parts), loader };
}

async function assertReadable(connection: TableConnection): Promise<void> {
  try {
    await readRevisions(connection);
  } catch (error) {
    const { fault, problem } = error instanceof SignerError ? (error.detail ?? {}) : {};
    const remedy =
      fault === 'not_found'
        ? 'it does not exist; create it with `strongroom setup tables`'
        : `it cannot be read (${String(fault)}: ${String(problem)})`;
    throw new Error(`key_sources.dynamodb.table: the table ${connection.tableName}: ${remedy}`, { cause: error });
  }
}
