// `strongroom setup tables`: creates the DynamoDB tables that a configuration names, or prints their definitions as
// JSON. Tables that exist are looked at and left alone.

import { EXIT, type ExitCode } from '../../common/command-line/exit-codes.ts';
import { sayFailure } from '../../common/command-line/failure.ts';
import { command } from '../../common/command-line/program.ts';
import { note, type Piped } from '../../common/command-line/terminal.ts';
import { loadConfig } from '../../service/config/load.ts';
import { type CreateTableCommandInput, createDynamoDBClient, type DynamoDBClient } from '../../signer/aws/dynamodb.ts';
import { type AwsFault, awsFault } from '../../signer/aws/errors.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import type { Config } from '../../signer/config/options.ts';
import { keyTableDefinition } from '../../signer/keys/table/definition.ts';
import { CONFIG } from '../arguments.ts';
import { ConfigurationViolated } from '../inputs.ts';
import { backupsOf, byName, setUpTable, type TableSetup } from '../table-setup.ts';

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
