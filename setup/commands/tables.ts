// `strongroom setup tables`: creates the DynamoDB tables that a configuration names, or prints their definitions as
// JSON for those who create them otherwise. Tables that exist are looked at and left alone. Exit codes: 0 done, 1
// usage, a table that cannot be used or a fault, 78 a configuration that cannot be used.

import { ArgumentsError, withAdvice } from '../../command-line/arguments.ts';
import { EXIT } from '../../command-line/exit-codes.ts';
import { sayFailure, sayWrongUsage } from '../../command-line/failure.ts';
import { readCommand } from '../../command-line/read-command.ts';
import { note, type Piped } from '../../command-line/terminal.ts';
import { writeViolations } from '../../command-line/violations.ts';
import { type CreateTableCommandInput, createDynamoDBClient, type DynamoDBClient } from '../../enclave/aws/dynamodb.ts';
import { type AwsFault, awsFault } from '../../enclave/aws/errors.ts';
import { tableDefinition } from '../../enclave/aws/table-definition.ts';
import { loadConfig } from '../../enclave/config/load.ts';
import type { Config } from '../../enclave/config/options.ts';
import { keyTableDefinition } from '../../enclave/keys/table/rows.ts';
import { TABLES_COMMAND } from '../description.ts';
import { backupsOf, byName, setUpTable, type TableSetup } from '../set-up-table.ts';

/** @returns the exit code */
export async function runSetupCommand(argv: readonly string[], terminal: Omit<Piped, 'stdin'>): Promise<number> {
  const args = readArguments(argv);
  if ('problem' in args) {
    sayWrongUsage(terminal, 'strongroom setup tables', args.problem);
    return EXIT.failed;
  }
  const loaded = loadConfig(
    { argv: ['-c', args.config], env: terminal.env },
    { compiledCeremony: false, onlyRead: true, withoutTokens: true },
  );
  if (!loaded.ok) {
    writeViolations(loaded.violations, terminal);
    return EXIT.configuration;
  }
  const definitions = definitionsOf(loaded.config);
  if (definitions.length === 0) return fail(terminal, 'the configuration names no DynamoDB table');
  if (args.print) return print(definitions, terminal);
  const client = createDynamoDBClient({});
  try {
    return await create(client, definitions, terminal);
  } finally {
    client.destroy();
  }
}

function definitionsOf({ signer_state, key_sources, anti_slashing }: Config): readonly CreateTableCommandInput[] {
  const slashingTable = anti_slashing.backend === 'dynamodb' ? anti_slashing.table : undefined;
  const { table: keyTable } = key_sources.dynamodb;
  return [
    ...(signer_state.table === undefined ? [] : [tableDefinition(signer_state.table)]),
    ...(keyTable === undefined ? [] : [keyTableDefinition(keyTable)]),
    ...(slashingTable === undefined ? [] : [tableDefinition(slashingTable)]),
  ];
}

function print(definitions: readonly CreateTableCommandInput[], { stdout }: Pick<Piped, 'stdout'>): number {
  const tables = definitions.map(byName).map((create) => ({ create, continuous_backups: backupsOf(create.TableName) }));
  stdout.write(`${JSON.stringify({ tables }, null, 2)}\n`);
  return EXIT.ok;
}

async function create(
  client: DynamoDBClient,
  definitions: readonly CreateTableCommandInput[],
  { stdout, stderr }: Pick<Piped, 'stdout' | 'stderr'>,
): Promise<number> {
  let code: number = EXIT.ok;
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

function readArguments(
  argv: readonly string[],
): { readonly config: string; readonly print: boolean } | { readonly problem: string } {
  try {
    return readCommand(TABLES_COMMAND, argv).values;
  } catch (error) {
    if (!(error instanceof ArgumentsError)) throw error;
    return { problem: withAdvice(error) };
  }
}

function fail(terminal: Pick<Piped, 'stderr'>, problem: string, remedies: readonly string[] = []): number {
  sayFailure(terminal, 'strongroom', problem, remedies);
  return EXIT.failed;
}
