// The policies of roles and users, and those of tables. A key policy of our making grants nothing through IAM but its
// administration, so `kms:` actions here count for keys of other accounts.

import { type Phase, type PolicyDocument, type PolicyStatement, policyOf } from './policy-document.ts';
import { DELETIONS, TABLES, type TableKind, tableActions } from './table-permissions.ts';

export interface GrantedTable {
  readonly arn: string;
  readonly isPinned: boolean;
}

export type GrantedTables = Readonly<Partial<Record<TableKind, GrantedTable>>>;

interface SignerPolicyRequest {
  readonly keyArns: readonly string[];
  readonly tables: GrantedTables;
  readonly phase: Phase;
}

/** The role of a plain service, or that of parents that write the tables. */
export function signerPolicy({ keyArns, tables, phase }: SignerPolicyRequest): PolicyDocument {
  const actions = [...CUSTODY_KEYS, ...(phase === 'running' ? [] : [ENCRYPT])];
  return policyOf([custodyKeys(keyArns, actions), ...tableStatements(tables, phase)]);
}

/** The parents of enclaves with sealed table credentials, in every phase: no table, and nothing is encrypted. */
export function parentPolicy(keyArns: readonly string[]): PolicyDocument {
  return policyOf([custodyKeys(keyArns, CUSTODY_KEYS)]);
}

/** The identity of the sealed table credentials: it encrypts the shares of a new master key, too. */
export function tablesPolicy({ keyArns, tables, phase }: SignerPolicyRequest): PolicyDocument {
  const shares = phase === 'running' ? [] : [custodyKeys(keyArns, [ENCRYPT])];
  return policyOf([...shares, ...tableStatements(tables, phase)]);
}

/** The policy of a VPC's endpoint for DynamoDB: what a signer and a recovery do with these tables, and nothing else. */
export function endpointPolicy(tables: GrantedTables, phase: Phase): PolicyDocument {
  const anybody = tableStatements(tables, phase).map(({ Sid, Effect, ...rest }) => ({
    Sid,
    Effect,
    Principal: '*' as const,
    ...rest,
  }));
  return policyOf(anybody);
}

/** The rows that a person deletes: the latch, and a root token that was lost (specification/custody.md#states). */
const ROWS_TO_RECOVER = ['SEAL_OVERRIDE', 'ROOT_TOKEN_BOOTSTRAP'];

export function recoveryPolicy(stateTableArn: string): PolicyDocument {
  return policyOf([
    {
      Sid: 'SealAndRootToken',
      Effect: 'Allow',
      Action: ['dynamodb:GetItem', 'dynamodb:DeleteItem'],
      Resource: stateTableArn,
      // A call without the key would hold for all of its no values.
      Condition: {
        'ForAllValues:StringEquals': { 'dynamodb:LeadingKeys': ROWS_TO_RECOVER },
        Null: { 'dynamodb:LeadingKeys': 'false' },
      },
    },
  ]);
}

export function setupPolicy(tables: GrantedTables): PolicyDocument {
  return policyOf([
    {
      Sid: 'MakeTables',
      Effect: 'Allow',
      Action: [
        'dynamodb:CreateTable',
        'dynamodb:DescribeTable',
        'dynamodb:DescribeContinuousBackups',
        'dynamodb:UpdateContinuousBackups',
      ],
      Resource: arnsOf(tables),
    },
  ]);
}

/**
 * The policy of a table itself: no records of the slashing table are deleted, and with sealed table credentials the
 * roles of the parents do nothing with any.
 */
export function tableResourcePolicy(
  table: TableKind,
  arn: string,
  keptOut: readonly string[],
): PolicyDocument | undefined {
  const parents: PolicyStatement = {
    Sid: 'NotTheParents',
    Effect: 'Deny',
    Principal: { AWS: keptOut },
    Action: ['dynamodb:*'],
    Resource: arn,
  };
  const deletions: PolicyStatement = {
    Sid: 'NobodyDeletesRecords',
    Effect: 'Deny',
    Principal: '*',
    Action: DELETIONS.map((action) => `dynamodb:${action}`),
    Resource: arn,
  };
  const statements = [...(keptOut.length > 0 ? [parents] : []), ...(table === 'slashing' ? [deletions] : [])];
  return statements.length === 0 ? undefined : policyOf(statements);
}

const CUSTODY_KEYS = ['kms:Decrypt', 'kms:DescribeKey'];
const ENCRYPT = 'kms:Encrypt';

function custodyKeys(keyArns: readonly string[], actions: readonly string[]): PolicyStatement {
  return { Sid: 'CustodyKeys', Effect: 'Allow', Action: actions, Resource: keyArns };
}

const SIDS: Readonly<Record<TableKind, string>> = { state: 'StateTable', keys: 'KeyTable', slashing: 'SlashingTable' };

function tableStatements(tables: GrantedTables, phase: Phase): readonly PolicyStatement[] {
  return TABLES.flatMap((kind): readonly PolicyStatement[] => {
    const table = tables[kind];
    if (table === undefined) return [];
    const Action = tableActions(kind, phase, table.isPinned);
    return [{ Sid: SIDS[kind], Effect: 'Allow', Action, Resource: table.arn }];
  });
}

function arnsOf(tables: GrantedTables): readonly string[] {
  return TABLES.flatMap((kind) => tables[kind]?.arn ?? []);
}
