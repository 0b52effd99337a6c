// `strongroom setup tables`: creates the DynamoDB tables that a configuration names, or prints their definitions as
// JSON. Tables that exist are looked at and left alone.

import { setTimeout as pause } from 'node:timers/promises';
import { EXIT, type ExitCode } from '../../common/command-line/exit-codes.ts';
import { sayFailure } from '../../common/command-line/failure.ts';
import { command } from '../../common/command-line/program.ts';
import { note, type Piped } from '../../common/command-line/terminal.ts';
import { loadConfig } from '../../service/config/load.ts';
import {
  CreateTableCommand,
  type CreateTableCommandInput,
  createDynamoDBClient,
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  UpdateContinuousBackupsCommand,
  waitUntilTableExists,
} from '../../signer/aws/dynamodb.ts';
import { type AwsFault, awsFault } from '../../signer/aws/errors.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { parseTableArn, tableNameIn } from '../../signer/aws/table-name.ts';
import type { Config } from '../../signer/config/options.ts';
import { keyTableDefinition } from '../../signer/keys/table/definition.ts';
import { CONFIG } from '../arguments.ts';
import { ConfigurationViolated } from '../inputs.ts';

export const tables = command(
  {
    summary: 'Create the DynamoDB tables that the configuration names',
    notes: [
      'Creates each table that does not exist: on-demand capacity, deletion protection, point-in-time recovery. A table ' +
        'that exists is checked and never altered. Region and credentials come from the AWS environment. A table that ' +
        'is named by its ARN is made by its name, and in no other region or account than the ARN says.',
      'Keep the slashing table in one region: it is bound to that of the first signer. What roles need on each table is ' +
        'printed by strongroom setup iam.',
    ],
    flags: {
      ...CONFIG,
      print: {
        meaning:
          'Write the definitions as JSON and create nothing: `create` is the input of CreateTable, `continuous_backups` ' +
          'that of UpdateContinuousBackups',
      },
    },
    examples: [
      'strongroom setup tables -c strongroom.yaml',
      'strongroom setup tables -c strongroom.yaml --print > tables.json',
    ],
  },

  async ({ values }, terminal: Omit<Piped, 'stdin'>) => {
    const loaded = loadConfig(
      { argv: ['-c', values.config], env: terminal.env },
      { compiledCeremony: false, onlyRead: true, withoutTokens: true },
    );
    if (!loaded.ok) throw new ConfigurationViolated(loaded.violations);
    const definitions = definitionsOf(loaded.config);
    if (definitions.length === 0) return fail(terminal, 'the configuration names no DynamoDB table');
    if (values.print) return print(definitions, terminal);
    const client = createDynamoDBClient({});
    try {
      return await create(client, definitions, terminal);
    } finally {
      client.destroy();
    }
  },
);

function definitionsOf({ signer_state, key_sources, anti_slashing }: Config): readonly CreateTableCommandInput[] {
  const slashingTable = anti_slashing.backend === 'dynamodb' ? anti_slashing.table : undefined;
  const { table: keyTable } = key_sources.dynamodb;
  return [
    ...(signer_state.table === undefined ? [] : [tableDefinition(signer_state.table)]),
    ...(keyTable === undefined ? [] : [keyTableDefinition(keyTable)]),
    ...(slashingTable === undefined ? [] : [tableDefinition(slashingTable)]),
  ];
}

function print(definitions: readonly CreateTableCommandInput[], { stdout }: Pick<Piped, 'stdout'>): ExitCode {
  const tables = definitions.map(byName).map((create) => ({ create, continuous_backups: backupsOf(create.TableName) }));
  stdout.write(`${JSON.stringify({ tables }, null, 2)}\n`);
  return EXIT.ok;
}

async function create(
  client: DynamoDBClient,
  definitions: readonly CreateTableCommandInput[],
  { stdout, stderr }: Pick<Piped, 'stdout' | 'stderr'>,
): Promise<ExitCode> {
  let code: ExitCode = EXIT.ok;
  for (const definition of definitions) {
    const { TableName: table } = definition;
    let setup: TableSetup;
    try {
      setup = await setUpTable(client, definition);
    } catch (error) {
      return fail({ stderr }, `the table ${table} could not be set up: ${textOf(error)}`, adviceOnTable(error));
    }
    stdout.write(`${table}: ${setup.outcome}\n`);
    for (const difference of setup.differences) note({ stderr }, `strongroom: warning: table ${table}: ${difference}`);
    if (setup.unusable !== undefined) {
      code = fail({ stderr }, `table ${table} cannot be used: ${setup.unusable}`);
    }
  }
  return code;
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.name === 'Error' ? error.message : `${error.name}: ${error.message}`;
}

const ADVICE: Partial<Record<AwsFault, string>> = {
  denied: 'use credentials that may make tables: `strongroom setup iam --for setup` prints their policy',
  unreachable: 'see that this machine reaches DynamoDB of the region that AWS_REGION names',
  throttled: 'run the command again: tables that are there stay as they are',
};

function adviceOnTable(error: unknown): readonly string[] {
  const isWithoutRegion = error instanceof Error && /^Region (is missing|not accepted)/.test(error.message);
  const advice = isWithoutRegion ? 'export AWS_REGION: the region of the tables' : ADVICE[awsFault(error)];
  return advice === undefined ? [] : [advice];
}

function fail(terminal: Pick<Piped, 'stderr'>, problem: string, remedies: readonly string[] = []): ExitCode {
  sayFailure(terminal, 'strongroom', problem, remedies);
  return EXIT.failed;
}

// Making a table and looking at one that is there: deletion protection and point-in-time recovery, because the rows
// cannot be made again. A table that exists is never altered; one that is pinned by its ARN is never made in another
// region or account.

const ACTIVE_WITHIN_SECONDS = 300;
/** A new table takes a while until its backups can be turned on. */
const MAX_BACKUP_TRIES = 30;
const BACKUP_PAUSE_MS = 2_000;

interface TableSetup {
  readonly outcome: 'created' | 'exists';
  readonly unusable: string | undefined;
  /** What is not as it should be: of a table that exists, or where the service does not offer it. */
  readonly differences: readonly string[];
}

/** @throws Error also when the ARN that the definition names is of another region or account than the caller's */
async function setUpTable(client: DynamoDBClient, definition: CreateTableCommandInput): Promise<TableSetup> {
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

function byName(definition: CreateTableCommandInput): CreateTableCommandInput {
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

function backupsOf(tableName: string | undefined) {
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

type Found = NonNullable<Awaited<ReturnType<typeof describe>>>;

function unusableBecause(
  { KeySchema, AttributeDefinitions }: CreateTableCommandInput,
  found: Found,
): string | undefined {
  const sameKeys =
    spelled(found.KeySchema) === spelled(KeySchema) &&
    (AttributeDefinitions ?? []).every((wanted) => spelled(found.AttributeDefinitions).includes(spelled(wanted)));
  return sameKeys ? undefined : `its primary key is not ${spelled(KeySchema)}`;
}

function differencesOf(found: Found, recovery: string | undefined): readonly string[] {
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
