// What the guides ask of the AWS command line, done with its SDK against the stand-ins of the environment: a program in
// its place for tests. It knows the commands of the guides, and refuses every other.

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { EncryptCommand, KMSClient } from '@aws-sdk/client-kms';

const names = ['table-name', 'key', 'key-id', 'plaintext', 'encryption-context', 'query', 'output'];
const options = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]));
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const given = (name: string): string => {
  const value = values[name];
  if (typeof value !== 'string') throw new Error(`--${name} is missing`);
  return value;
};

switch (positionals.join(' ')) {
  case 'dynamodb get-item': {
    const call = { TableName: given('table-name'), Key: JSON.parse(given('key')) };
    const { Item } = await new DynamoDBClient({}).send(new GetItemCommand(call));
    process.stdout.write(`${JSON.stringify({ Item })}\n`);
    break;
  }
  case 'kms encrypt': {
    const [, file = ''] = /^fileb:\/\/(.+)$/.exec(given('plaintext')) ?? [];
    const EncryptionContext = Object.fromEntries(
      given('encryption-context')
        .split(',')
        .map((pair) => pair.split('=')),
    );
    const call = { KeyId: given('key-id'), Plaintext: readFileSync(file), EncryptionContext };
    const { CiphertextBlob = new Uint8Array() } = await new KMSClient({}).send(new EncryptCommand(call));
    if (given('query') !== 'CiphertextBlob' || given('output') !== 'text') throw new Error('another form of output');
    process.stdout.write(`${Buffer.from(CiphertextBlob).toString('base64')}\n`);
    break;
  }
  default:
    throw new Error(`not a command of the guides: ${positionals.join(' ')}`);
}
