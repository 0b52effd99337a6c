// The policies of roles and users, and those of tables: what each may do, and nothing else. A key policy of our making
// grants nothing through IAM but its administration, so `kms:` actions here count for keys of other accounts; within
// the account the key's own policy (key-policy.ts) decides.

import { type Phase, type PolicyDocument, policyOf, type Statement } from './policy-document.ts';
import { DELETIONS, TABLES, type TableKind, tableActions } from './table-permissions.ts';

export interface GrantedTable {
  readonly arn: string;
  /** Whether the configuration names it by its ARN. */
  readonly isPinned: boolean;
}

export type GrantedTables = Readonly<Partial<Record<TableKind, GrantedTable>>>;

export interface SignerPolicyRequest {
  /** Every key that the ceremony names, retired ones too. */
  readonly keyArns: readonly string[];
  /** Empty where sealed credentials call the tables. */
  readonly tables: GrantedTables;
  readonly phase: Phase;
}

/** Whoever calls KMS: the role of a plain service, or that of an enclave's parent. */
export function signerPolicy({ keyArns, tables, phase }: SignerPolicyRequest): PolicyDocument {
  return policyOf([custodyKeys(keyArns, phase), ...tableStatements(tables, phase)]);
}

/** The identity of the sealed table credentials. */
export function tablesPolicy(tables: GrantedTables, phase: Phase): PolicyDocument {
  return policyOf(tableStatements(tables, phase));
}

/**
 * The policy of a VPC's endpoint for DynamoDB: whoever calls through it does what a signer does with these tables, and
 * nothing else. What a recovery does is among it.
 */
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
      Condition: { 'ForAllValues:StringEquals': { 'dynamodb:LeadingKeys': ROWS_TO_RECOVER } },
    },
  ]);
}

/** Whoever runs `strongroom setup tables`. */
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
 * The policy of a table itself: nobody deletes records of the slashing table, and with sealed table credentials the
 * roles of the parents do nothing with any.
 */
export function tableResourcePolicy(
  table: TableKind,
  arn: string,
  keptOut: readonly string[],
): PolicyDocument | undefined {
  const parents: Statement = {
    Sid: 'NotTheParents',
    Effect: 'Deny',
    Principal: { AWS: keptOut },
    Action: ['dynamodb:*'],
    Resource: arn,
  };
  const deletions: Statement = {
    Sid: 'NobodyDeletesRecords',
    Effect: 'Deny',
    Principal: '*',
    Action: DELETIONS.map((action) => `dynamodb:${action}`),
    Resource: arn,
  };
  const statements = [...(keptOut.length > 0 ? [parents] : []), ...(table === 'slashing' ? [deletions] : [])];
  return statements.length === 0 ? undefined : policyOf(statements);
}

function custodyKeys(keyArns: readonly string[], phase: Phase): Statement {
  const encrypt = phase === 'running' ? [] : ['kms:Encrypt'];
  return {
    Sid: 'CustodyKeys',
    Effect: 'Allow',
    Action: ['kms:Decrypt', 'kms:DescribeKey', ...encrypt],
    Resource: keyArns,
  };
}

const SIDS: Readonly<Record<TableKind, string>> = { state: 'StateTable', keys: 'KeyTable', slashing: 'SlashingTable' };

function tableStatements(tables: GrantedTables, phase: Phase): readonly Statement[] {
  return TABLES.flatMap((kind): readonly Statement[] => {
    const table = tables[kind];
    if (table === undefined) return [];
    const Action = tableActions(kind, phase, table.isPinned);
    return [{ Sid: SIDS[kind], Effect: 'Allow', Action, Resource: table.arn }];
  });
}

function arnsOf(tables: GrantedTables): readonly string[] {
  return TABLES.flatMap((kind) => tables[kind]?.arn ?? []);
}
