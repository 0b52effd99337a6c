// `aws`, as far as the pages use it: rows of tables at the DynamoDB stand-in; encryption, key policies and the state of
// keys at the KMS stand-in. Its words and options are those of the AWS CLI, version 2; another word or option is
// refused.

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { EncryptCommand, KMSClient } from '@aws-sdk/client-kms';
import { CUSTODY_REGION } from '../../rehearsal/custody.ts';
import { dynamoDBClientOptions } from '../../rehearsal/dynamodb.ts';
import type { KeyBehaviour } from '../../rehearsal/kms/server.ts';
import type { PolicyDocument } from '../../setup/policy-document.ts';
import {
  createDynamoDBClient,
  DeleteItemCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  GetItemCommand,
} from '../../signer/aws/dynamodb.ts';
import { type Program, Refused } from './programs.ts';

export interface AccessKeys {
  create(): { readonly AccessKeyId: string; readonly SecretAccessKey: string };
  list(): readonly string[];
  deactivate(id: string): void;
}

export interface AwsKeys {
  policyOf(arn: string): PolicyDocument | undefined;
  putPolicy(arn: string, policy: PolicyDocument): void;
  setBehaviour(arn: string, behaviour: KeyBehaviour): void;
  isEnabled(arn: string): boolean;
}

export interface AwsEndpoints {
  readonly dynamodb: string;
  readonly kms: string;
}

interface Account {
  readonly tables: DynamoDBClient;
  readonly kms: KMSClient;
  readonly keys: AwsKeys;
  readonly accessKeys: AccessKeys | undefined;
}

interface Call {
  readonly option: (name: string) => string;
  readonly json: <Value>(name: string) => Value;
  readonly bytes: (name: string) => Buffer;
}

type Operation = (call: Call, account: Account) => Promise<unknown> | unknown;

const TEXT = { type: 'string' } as const;
const FLAG = { type: 'boolean' } as const;
const OPTIONS = {
  ...{ 'table-name': TEXT, key: TEXT, 'consistent-read': FLAG, region: TEXT, query: TEXT, output: TEXT },
  ...{ 'condition-expression': TEXT, 'expression-attribute-values': TEXT, 'return-values': TEXT },
  ...{ 'key-id': TEXT, 'policy-name': TEXT, policy: TEXT },
  ...{ plaintext: TEXT, 'encryption-context': TEXT },
  ...{ 'user-name': TEXT, 'access-key-id': TEXT, status: TEXT },
};

const OPERATIONS: Readonly<Record<string, Operation>> = {
  'dynamodb get-item': async ({ option, json }, { tables }) => {
    const input = { TableName: option('table-name'), Key: json<never>('key'), ConsistentRead: true };
    const { Item } = await tables.send(new GetItemCommand(input));
    return Item === undefined ? undefined : { Item };
  },
  'dynamodb delete-item': async ({ option, json }, { tables }) => {
    const { Attributes } = await tables.send(
      new DeleteItemCommand({ TableName: option('table-name'), Key: json<never>('key'), ReturnValues: 'ALL_OLD' }),
    );
    return Attributes === undefined ? undefined : { Attributes };
  },
  'dynamodb describe-table': async ({ option }, { tables }) => {
    const { Table } = await tables.send(new DescribeTableCommand({ TableName: option('table-name') }));
    return { Table };
  },
  'kms encrypt': async ({ option, bytes }, { kms }) => {
    const pairs = option('encryption-context').split(',');
    const EncryptionContext = Object.fromEntries(pairs.map((pair) => pair.split('=')));
    const input = { KeyId: option('key-id'), Plaintext: bytes('plaintext'), EncryptionContext };
    const { CiphertextBlob = new Uint8Array() } = await kms.send(new EncryptCommand(input));
    return { CiphertextBlob: Buffer.from(CiphertextBlob).toString('base64') };
  },
  'iam create-access-key': (_call, { accessKeys }) => ({ AccessKey: accessKeys?.create() }),
  'iam list-access-keys': (_call, { accessKeys }) => ({
    AccessKeyMetadata: accessKeys?.list().map((AccessKeyId) => ({ AccessKeyId })),
  }),
  'iam update-access-key': ({ option }, { accessKeys }) => {
    if (option('status') !== 'Inactive') throw new Refused('the stand-in only deactivates', 252);
    accessKeys?.deactivate(option('access-key-id'));
  },
  'kms put-key-policy': ({ option, json }, { keys }) => {
    if (option('policy-name') !== 'default') throw new Refused('a key has one policy, default');
    keys.putPolicy(option('key-id'), json('policy'));
  },
  'kms get-key-policy': ({ option }, { keys }) => ({
    Policy: JSON.stringify(keys.policyOf(option('key-id'))),
    PolicyName: 'default',
  }),
  'kms describe-key': ({ option }, { keys }) => {
    const Arn = option('key-id');
    return { KeyMetadata: { Arn, KeyState: keys.isEnabled(Arn) ? 'Enabled' : 'Disabled' } };
  },
  'kms disable-key': ({ option }, { keys }) => keys.setBehaviour(option('key-id'), 'disabled'),
  'kms enable-key': ({ option }, { keys }) => keys.setBehaviour(option('key-id'), 'enabled'),
};

export function awsProgram(
  endpoints: AwsEndpoints,
  keys: AwsKeys,
  accessKeys?: AccessKeys,
): { readonly program: Program; close(): void } {
  const tables = createDynamoDBClient(dynamoDBClientOptions(endpoints.dynamodb));
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const kms = new KMSClient({ endpoint: endpoints.kms, region: CUSTODY_REGION, credentials });
  return {
    close: () => {
      tables.destroy();
      kms.destroy();
    },
    async program(args, folder) {
      const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
      const operation = OPERATIONS[positionals.join(' ')];
      if (operation === undefined) throw new Refused(`aws: no stand-in for: ${positionals.join(' ')}`, 252);
      const option: Call['option'] = (name) => {
        const value = values[name as keyof typeof values];
        if (typeof value !== 'string') throw new Refused(`aws: --${name} is required`, 252);
        return value;
      };
      const json: Call['json'] = (name) => JSON.parse(contentOf(option(name), folder));
      const bytes: Call['bytes'] = (name) => readFileSync(pathIn(option(name), 'fileb', folder));
      return rendered(await operation({ option, json, bytes }, { tables, kms, keys, accessKeys }), values);
    },
  };
}

function contentOf(value: string, folder: string): string {
  return value.startsWith('file://') ? readFileSync(pathIn(value, 'file', folder), 'utf8') : value;
}

function pathIn(value: string, scheme: 'file' | 'fileb', folder: string): string {
  if (!value.startsWith(`${scheme}://`)) throw new Refused(`aws: ${scheme}:// and a path is needed`, 252);
  return resolve(folder, value.slice(`${scheme}://`.length));
}

/** A query is a path of members, of which one may be a list. */
function rendered(answer: unknown, { query, output }: { readonly query?: string; readonly output?: string }): string {
  if (answer === undefined) return '';
  const found = (query?.split('.') ?? []).reduce<unknown>((value, name) => memberOf(value, name), answer);
  if (output === 'text') return `${found === null ? 'None' : [found].flat().join('\t')}\n`;
  return `${JSON.stringify(found, undefined, 4)}\n`;
}

/** `name`, or `name[]` for what each of a list has next. */
function memberOf(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return value.map((one) => memberOf(one, name));
  return (value as Record<string, unknown> | null | undefined)?.[name.replace('[]', '')] ?? null;
}
