// The IAM actions of each table, in which phase they are needed, and what for. A transaction has no action of its own:
// DynamoDB asks for the action of each item in it. A test runs the real program under these lists: nothing is missing,
// and nothing is too much.

import { PHASES, type Phase } from './policy-document.ts';

export const TABLES = ['state', 'keys', 'slashing'] as const;
export type TableKind = (typeof TABLES)[number];

interface TableAction {
  readonly action: string;
  readonly phases: readonly Phase[];
  readonly why: string;
  /** Statements name a table by its name only: a table that is named by its ARN is never called so. */
  readonly onlyByName?: true;
}

const always = (action: string, why: string): TableAction => ({ action, phases: PHASES, why });
const atFirstBoot = (action: string, why: string): TableAction => ({ action, phases: ['first-boot'], why });

export const TABLE_ACTIONS: Readonly<Record<TableKind, readonly TableAction[]>> = {
  state: [
    always(
      'GetItem',
      'the rows of a start, from one moment (TransactGetItems); the latch; the binding of the store; receipts',
    ),
    always('BatchGetItem', 'the watcher, each interval; policies and tokens'),
    always('PutItem', 'policies, tokens, the latch, a new root token, the record of a rotation, receipts'),
    always(
      'UpdateItem',
      'the incarnation of the slashing store that the fleet is bound to, and the end that was used last; receipts',
    ),
    always('DeleteItem', 'policies and tokens that are deleted or revoked, tiles of receipts that full ones replace'),
    atFirstBoot('Scan', 'whether the table is empty: a table that lost its rows is not initialised anew'),
    atFirstBoot('ConditionCheckItem', 'the initialisation, on the condition that there is no latch'),
  ],
  keys: [
    always('BatchGetItem', 'the revisions of the sixteen shards; the rows that a change replaces'),
    always('Query', 'the keys of a shard'),
    always('PutItem', 'generated and imported keys, their status, the revision of a shard'),
    always('DeleteItem', 'deleted keys'),
  ],
  slashing: [
    always('DescribeTable', 'whether two regions write it: without it the signer does not start'),
    always('GetItem', 'the record of a key; the incarnation of the store'),
    always('BatchGetItem', 'the records of keys that are checked together'),
    always('Scan', 'retired keys, exports, and whether a new store is empty'),
    always('PutItem', 'records of what was signed'),
    always('ConditionCheckItem', 'the first record of a key, retired keys, imports: the store is still the bound one'),
    {
      ...always('PartiQLUpdate', 'records of several keys in one request; without it each is a request of its own'),
      onlyByName: true,
    },
  ],
};

/** Actions that no role needs on the slashing table: nothing deletes a record. */
export const DELETIONS: readonly string[] = ['DeleteItem', 'BatchWriteItem', 'PartiQLDelete'];

/** As a policy spells them. @param byArn whether the configuration names the table by its ARN */
export function tableActions(table: TableKind, phase: Phase, byArn: boolean): readonly string[] {
  return TABLE_ACTIONS[table]
    .filter(({ phases, onlyByName }) => phases.includes(phase) && !(byArn && onlyByName === true))
    .map(({ action }) => `dynamodb:${action}`);
}
