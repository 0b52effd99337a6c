// Making a table and looking at one that is there: on-demand capacity, deletion protection and point-in-time recovery, because the
// rows cannot be made again (the master key, validator keys, what was signed). A table that exists is never altered.

import { setTimeout as pause } from 'node:timers/promises';
import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  UpdateContinuousBackupsCommand,
  waitUntilTableExists,
} from './dynamodb.ts';
import { awsFault } from './errors.ts';

const ACTIVE_WITHIN_SECONDS = 300;
/** A new table takes a while until its backups can be turned on. */
const MAX_BACKUP_TRIES = 30;
const BACKUP_PAUSE_MS = 2_000;

export type TableSetup =
  | { readonly outcome: 'created' }
  /** `unusable`: why the signer cannot work with it; `differences`: what is not as it would have been created. */
  | { readonly outcome: 'exists'; readonly unusable: string | undefined; readonly differences: readonly string[] };

export async function setUpTable(client: DynamoDBClient, definition: CreateTableCommandInput): Promise<TableSetup> {
  const { TableName } = definition;
  const found = await describe(client, TableName);
  if (found !== undefined) return { outcome: 'exists', ...(await compare(client, definition, found)) };
  await client.send(new CreateTableCommand(definition));
  await waitUntilTableExists({ client, maxWaitTime: ACTIVE_WITHIN_SECONDS, minDelay: 1, maxDelay: 5 }, { TableName });
  await turnBackupsOn(client, TableName);
  return { outcome: 'created' };
}

/** The input of UpdateContinuousBackups. */
export function backupsOf(tableName: string | undefined) {
  return { TableName: tableName, PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true } };
}

async function describe(client: DynamoDBClient, tableName: string | undefined) {
  try {
    return (await client.send(new DescribeTableCommand({ TableName: tableName }))).Table;
  } catch (error) {
    if (awsFault(error) === 'not_found') return undefined;
    throw error;
  }
}

async function turnBackupsOn(client: DynamoDBClient, tableName: string | undefined): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await client.send(new UpdateContinuousBackupsCommand(backupsOf(tableName)));
      return;
    } catch (error) {
      const notYet = error instanceof Error && error.name === 'ContinuousBackupsUnavailableException';
      if (!notYet || tries === MAX_BACKUP_TRIES) throw error;
    }
    await pause(BACKUP_PAUSE_MS);
  }
}

type Found = NonNullable<Awaited<ReturnType<typeof describe>>>;

async function compare(
  client: DynamoDBClient,
  { TableName, KeySchema, AttributeDefinitions }: CreateTableCommandInput,
  found: Found,
): Promise<{ readonly unusable: string | undefined; readonly differences: readonly string[] }> {
  const sameKeys =
    spelled(found.KeySchema) === spelled(KeySchema) &&
    (AttributeDefinitions ?? []).every((wanted) => spelled(found.AttributeDefinitions).includes(spelled(wanted)));
  const differences = [
    found.BillingModeSummary?.BillingMode === 'PAY_PER_REQUEST' ? undefined : 'capacity is not on demand',
    found.DeletionProtectionEnabled === true ? undefined : 'deletion protection is off',
    (await hasBackups(client, TableName)) ? undefined : 'point-in-time recovery is off',
  ];
  return {
    unusable: sameKeys ? undefined : `its primary key is not ${spelled(KeySchema)}`,
    differences: differences.filter((difference) => difference !== undefined),
  };
}

async function hasBackups(client: DynamoDBClient, tableName: string | undefined): Promise<boolean> {
  const answer = await client.send(new DescribeContinuousBackupsCommand({ TableName: tableName }));
  const { PointInTimeRecoveryDescription: recovery } = answer.ContinuousBackupsDescription ?? {};
  return recovery?.PointInTimeRecoveryStatus === 'ENABLED';
}

/** Members in one order: services answer in any. */
function spelled(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
