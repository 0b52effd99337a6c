// The ARNs of the tables that a configuration names: its own where it states them, and else made of account and region.

import { parseTableArn } from '../../signer/aws/table-name.ts';
import type { Config } from '../../signer/config/options.ts';
import { InputRefused } from './inputs.ts';
import type { GrantedTable, GrantedTables } from './role-policy.ts';
import { TABLES, type TableKind } from './table-permissions.ts';

export interface Home {
  readonly account: string | undefined;
  readonly region: string | undefined;
}

export function tablesOf({ signer_state, key_sources, anti_slashing }: Config, home: Home): GrantedTables {
  const names: Readonly<Record<TableKind, string | undefined>> = {
    state: signer_state.table,
    keys: key_sources.dynamodb.table,
    slashing: anti_slashing.backend === 'dynamodb' ? anti_slashing.table : undefined,
  };
  return Object.fromEntries(
    TABLES.flatMap((kind) => {
      const table = names[kind];
      return table === undefined ? [] : [[kind, granted(table, home)]];
    }),
  );
}

function granted(table: string, { account, region }: Home): GrantedTable {
  if (parseTableArn(table) !== undefined) return { arn: table, isPinned: true };
  const arn = `arn:${partitionOf(region ?? '')}:dynamodb:${region}:${account}:table/${table}`;
  if (parseTableArn(arn) !== undefined) return { arn, isPinned: false };
  throw new InputRefused(
    `the table ${table} is named without an ARN: say where it is with --account 111122223333 --region eu-central-1`,
  );
}

function partitionOf(region: string): string {
  if (region.startsWith('cn-')) return 'aws-cn';
  return region.startsWith('us-gov-') ? 'aws-us-gov' : 'aws';
}
