// Making a table and looking at one that is there: deletion protection and point-in-time recovery, because the rows
// cannot be made again. A table that exists is never altered; one that is pinned by its ARN is never made in another
// region or account.

import { setTimeout as pause } from 'node:timers/promises';
import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  UpdateContinuousBackupsCommand,
  waitUntilTableExists,
} from '../signer/aws/dynamodb.ts';
import { awsFault } from '../signer/aws/errors.ts';
import { parseTableArn, tableNameIn } from '../signer/aws/table-name.ts';

const ACTIVE_WITHIN_SECONDS = 300;
/** A new table takes a while until its backups can be turned on. */
const MAX_BACKUP_TRIES = 30;
const BACKUP_PAUSE_MS = 2_000;

export interface TableSetup {
  readonly outcome: 'created' | 'exists';
  readonly unusable: string | undefined;
  /** What is not as it should be: of a table that exists, or where the service does not offer it. */
  readonly differences: readonly string[];
}

/** @throws Error also when the ARN that the definition names is of another region or account than the caller's */
export async function setUpTable(client: DynamoDBClient, definition: CreateTableCommandInput): Promise<TableSetup> {
  const { TableName } = definition;
  await assertOwn(client, TableName);
  const found = await describe(client, TableName);
  if (found !== undefined) {
    const recovery = await backupsProblem(() => hasBackups(client, TableName));
    return {
      outcome: 'exists',
      unusable: unusableBecause(definition, found),
      differences: differencesOf(found, recovery),
    };
  }
  const { TableDescription } = await client.send(new CreateTableCommand(byName(definition)));
  const madeElsewhere = parseTableArn(TableName ?? '') !== undefined && TableDescription?.TableArn !== TableName;
  if (madeElsewhere)
    throw new Error(`the table was made as ${TableDescription?.TableArn}, and not as ${TableName}: ${REMEDY}`);
  await waitUntilTableExists({ client, maxWaitTime: ACTIVE_WITHIN_SECONDS, minDelay: 1, maxDelay: 5 }, { TableName });
  const recovery = await backupsProblem(() => turnBackupsOn(client, TableName));
  return { outcome: 'created', unusable: undefined, differences: recovery === undefined ? [] : [recovery] };
}

export function byName(definition: CreateTableCommandInput): CreateTableCommandInput {
  return { ...definition, TableName: tableNameIn(definition.TableName ?? '') };
}

const REMEDY = 'correct the ARN, or use credentials and the region (AWS_REGION) of its account';

/** The region is always known before anything is made; the account where the credentials name theirs. */
async function assertOwn({ config }: DynamoDBClient, table: string | undefined): Promise<void> {
  const arn = parseTableArn(table ?? '');
  if (arn === undefined) return;
  const region = await config.region();
  if (arn.region !== region) throw new Error(`${table} is of another region than ${region}: ${REMEDY}`);
  const { accountId } = await config.credentials();
  if (accountId !== undefined && accountId !== arn.account) {
    throw new Error(`${table} is of another account than ${accountId}: ${REMEDY}`);
  }
}

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

/** Local stand-ins do not know backups: that is worth saying, and no reason to stop. */
async function backupsProblem(areOn: () => Promise<boolean>): Promise<string | undefined> {
  try {
    return (await areOn()) ? undefined : 'point-in-time recovery is off';
  } catch (error) {
    if (error instanceof Error && error.name === 'UnknownOperationException') {
      return 'this service does not offer point-in-time recovery';
    }
    throw error;
  }
}

async function turnBackupsOn(client: DynamoDBClient, tableName: string | undefined): Promise<true> {
  for (let tries = 1; ; tries++) {
    try {
      await client.send(new UpdateContinuousBackupsCommand(backupsOf(tableName)));
      return true;
    } catch (error) {
      const notYet = error instanceof Error && error.name === 'ContinuousBackupsUnavailableException';
      if (!notYet || tries === MAX_BACKUP_TRIES) throw error;
    }
    await pause(BACKUP_PAUSE_MS);
  }
}

async function hasBackups(client: DynamoDBClient, tableName: string | undefined): Promise<boolean> {
  const answer = await client.send(new DescribeContinuousBackupsCommand({ TableName: tableName }));
  const { PointInTimeRecoveryDescription: recovery } = answer.ContinuousBackupsDescription ?? {};
  return recovery?.PointInTimeRecoveryStatus === 'ENABLED';
}

type ExistingTable = NonNullable<Awaited<ReturnType<typeof describe>>>;

function unusableBecause(
  { KeySchema, AttributeDefinitions }: CreateTableCommandInput,
  found: ExistingTable,
): string | undefined {
  const sameKeys =
    spelled(found.KeySchema) === spelled(KeySchema) &&
    (AttributeDefinitions ?? []).every((wanted) => spelled(found.AttributeDefinitions).includes(spelled(wanted)));
  return sameKeys ? undefined : `its primary key is not ${spelled(KeySchema)}`;
}

function differencesOf(found: ExistingTable, recovery: string | undefined): readonly string[] {
  const differences = [
    found.BillingModeSummary?.BillingMode === 'PAY_PER_REQUEST' ? undefined : 'capacity is not on demand',
    found.DeletionProtectionEnabled === true ? undefined : 'deletion protection is off',
    recovery,
  ];
  return differences.filter((difference) => difference !== undefined);
}

/** Members in one order: services answer in any. */
function spelled(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
