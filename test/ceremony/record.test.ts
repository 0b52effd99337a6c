// The MASTER_KEY record as text: one spelling, every member checked, and the bytes that the share binding covers.

import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  bindingVerifies,
  type MasterKeyRecord,
  parseRecord,
  serializeRecord,
  shareBindingKey,
} from '../../ceremony/record.ts';

interface Vector {
  master_key: string;
  bound_bytes: string;
  record: string;
}

const vector = vectorOf(2);
const unbound = vectorOf(1);
const MASTER_KEY = Buffer.from(vector.master_key, 'hex');

interface Share {
  index: number;
  arns: string[];
  ciphertext: string;
}

interface Text {
  version: number;
  deployment: { network: string; id: string };
  generation: number;
  threshold: number;
  shares: [Share, Share, Share];
  binding: string;
}

function vectorOf(version: number): Vector {
  const url = new URL(`../vectors/master-key-record-v${version}.json`, import.meta.url);
  return JSON.parse(readFileSync(url, 'utf8')) as Vector;
}

function golden({ record: text }: Vector = vector): MasterKeyRecord {
  const record = parseRecord(text);
  if (record === undefined) throw new Error('the golden record does not parse');
  return record;
}

function altered(change: (text: Text) => void): string {
  const text = JSON.parse(vector.record) as Text;
  change(text);
  return JSON.stringify(text);
}

describe.each([
  ['of version 1, which names no deployment', unbound],
  ['of version 2', vector],
])('the golden record %s', (_, given) => {
  it('parses, and is written as it was', () => {
    expect(serializeRecord(golden(given))).toBe(given.record);
  });

  it('is bound by its master key and by no other', () => {
    expect(bindingVerifies(MASTER_KEY, golden(given))).toBe(true);
    const other = Buffer.from(MASTER_KEY);
    other[31] = (other[31] ?? 0) ^ 1;
    expect(bindingVerifies(other, golden(given))).toBe(false);
  });

  it('binds the documented bytes', () => {
    const hmac = createHmac('sha256', shareBindingKey(MASTER_KEY))
      .update(Buffer.from(given.bound_bytes, 'hex'))
      .digest();
    expect(golden(given).binding).toEqual(hmac);
  });
});

it('names its deployment, or none', () => {
  const network = '0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95';
  expect(golden().deployment).toEqual({ network, id: 'strongroom-state' });
  expect(golden(unbound).deployment).toBeUndefined();
});

describe('the share binding notices', () => {
  const [firstCiphertext, secondCiphertext] = [JSON.parse(vector.record) as Text].flatMap(({ shares }) => [
    shares[0].ciphertext,
    shares[1].ciphertext,
  ]);
  it.each<[string, (text: Text) => void]>([
    ['another deployment', (text) => (text.deployment.id = 'strongroom-statf')],
    ['another network', (text) => (text.deployment.network = `0x${'00'.repeat(32)}`)],
    [
      'a deployment that is taken away',
      (text) => void (Object.assign(text, { version: 1 }) && Reflect.deleteProperty(text, 'deployment')),
    ],
    ['another generation', (text) => (text.generation += 1)],
    ['a downgraded threshold', (text) => (text.threshold = 1)],
    ['a raised threshold', (text) => (text.threshold = 3)],
    ['an altered ciphertext', (text) => (text.shares[2].ciphertext = Buffer.from('other').toString('base64'))],
    [
      'swapped ciphertexts',
      (text) => {
        text.shares[0].ciphertext = secondCiphertext ?? '';
        text.shares[1].ciphertext = firstCiphertext ?? '';
      },
    ],
    [
      'swapped ARNs',
      (text) => ([text.shares[0].arns, text.shares[2].arns] = [text.shares[2].arns, text.shares[0].arns]),
    ],
    [
      'a replica more',
      (text) => text.shares[1].arns.push(text.shares[1].arns[0]?.replace('eu-west-1', 'us-west-1') ?? ''),
    ],
    ['a replica less', (text) => text.shares[1].arns.pop()],
    ['a share less', (text) => (text.shares as Share[]).pop()],
    ['another binding', (text) => (text.binding = Buffer.alloc(32).toString('base64'))],
  ])('%s', (_, change) => {
    const record = parseRecord(altered(change));
    expect(record).toBeDefined();
    expect(record !== undefined && bindingVerifies(MASTER_KEY, record)).toBe(false);
  });
});

describe('a record is none when', () => {
  it.each<[string, (text: Text) => void]>([
    ['its version is another', (text) => (text.version = 3)],
    ['its version is the former one and it names a deployment', (text) => (text.version = 1)],
    ['it names no deployment', (text) => Reflect.deleteProperty(text, 'deployment')],
    ['its network is spelled otherwise', (text) => (text.deployment.network = text.deployment.network.toUpperCase())],
    ['its network is a name', (text) => (text.deployment.network = 'mainnet')],
    ['its deployment has no id', (text) => (text.deployment.id = '')],
    ['its deployment has another character', (text) => (text.deployment.id = 'a b')],
    ['its deployment has a member too many', (text) => Object.assign(text.deployment, { note: '' })],
    ['its generation is not a whole number', (text) => (text.generation = 1.5)],
    ['its threshold is zero', (text) => (text.threshold = 0)],
    ['its threshold is above its shares', (text) => (text.threshold = 4)],
    ['it has no shares', (text) => (text.shares as Share[]).splice(0)],
    ['its shares are out of order', (text) => Object.assign(text, { shares: text.shares.toReversed() })],
    ['a share is missing in the middle', (text) => (text.shares as Share[]).splice(1, 1)],
    ['a key holds two shares', (text) => (text.shares[2].arns = text.shares[0].arns)],
    [
      'replicas of a key hold two shares',
      (text) => (text.shares[0].arns = [text.shares[1].arns[0]?.replace('eu-west-1', 'us-west-1') ?? '']),
    ],
    ['its ARNs are not sorted', (text) => Object.assign(text.shares[1], { arns: text.shares[1].arns.toReversed() })],
    ['an ARN is repeated', (text) => text.shares[0].arns.push(text.shares[0].arns[0] ?? '')],
    ['an ARN is an alias', (text) => (text.shares[0].arns = ['arn:aws:kms:eu-central-1:111122223333:alias/custody'])],
    ['an entry mixes keys', (text) => text.shares[0].arns.push(text.shares[1].arns[1] ?? '')],
    ['a ciphertext is empty', (text) => (text.shares[0].ciphertext = '')],
    [
      'a ciphertext is larger than KMS makes them',
      (text) => (text.shares[0].ciphertext = Buffer.alloc(6145).toString('base64')),
    ],
    ['a ciphertext is not base64', (text) => (text.shares[0].ciphertext = 'AAA=AAAA')],
    ['a ciphertext is spelled otherwise', (text) => (text.shares[0].ciphertext += '\n')],
    ['its binding is short', (text) => (text.binding = Buffer.alloc(31).toString('base64'))],
    ['it has a member too many', (text) => Object.assign(text, { note: '' })],
    ['a share has a member too many', (text) => Object.assign(text.shares[0], { note: '' })],
  ])('%s', (_, change) => {
    expect(parseRecord(altered(change))).toBeUndefined();
  });

  it.each(['', 'null', '[]', '{}', '{"version":1', '"text"'])('the text is %j', (text) => {
    expect(parseRecord(text)).toBeUndefined();
  });
});
