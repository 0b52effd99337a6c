// The rules of a ceremony, and the bytes that its digest covers.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  canonicalBytes,
  ceremonyArns,
  ceremonyBlock,
  ceremonyDigest,
  InvalidCeremony,
  parseCeremony,
} from '../../ceremony/definition.ts';
import { parseKeyArn } from '../../ceremony/key-arn.ts';
import { keyArn, multiRegionArn } from '../config/loading.ts';
import { RECIPIENT } from './custody.ts';

const BLOCK = {
  generation: 1,
  kms_threshold: 1,
  kms_keys: [{ arns: [keyArn(1)] }, { arns: [keyArn(2)] }],
  root_token_recipients: [RECIPIENT],
};

function problemsOf(value: unknown): readonly string[] {
  try {
    parseCeremony(value);
    return [];
  } catch (error) {
    if (error instanceof InvalidCeremony) return error.problems;
    throw error;
  }
}

const vector = JSON.parse(readFileSync(new URL('../vectors/ceremony-v1.json', import.meta.url), 'utf8')) as {
  block: { kms_keys: { arns: string[] }[] };
  canonical: string;
  digest_sha384: string;
};

describe('a key ARN', () => {
  it.each([
    ['arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab', 'aws', 'eu-central-1'],
    ['arn:aws-cn:kms:cn-north-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab', 'aws-cn', 'cn-north-1'],
    [
      'arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/mrk-1234abcd12ab34cd56ef1234567890ab',
      'aws-us-gov',
      'us-gov-west-1',
    ],
    [
      'arn:aws-eusc:kms:eusc-de-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
      'aws-eusc',
      'eusc-de-east-1',
    ],
  ])('%s is taken apart', (text, partition, region) => {
    expect(parseKeyArn(text)).toMatchObject({ partition, region, account: '111122223333' });
  });

  it.each([
    'alias/custody',
    'arn:aws:kms:eu-central-1:111122223333:alias/custody',
    '1234abcd-12ab-34cd-56ef-1234567890ab',
    'arn:aws:kms:eu-central-1:11112222333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
    'arn:aws:kms:eu-central-1::key/1234abcd-12ab-34cd-56ef-1234567890ab',
    'arn:aws:kms::111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
    'arn:aws:kms:eu-central:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
    'arn:azure:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
    'arn:aws:s3:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
    'arn:aws:kms:eu-central-1:111122223333:key/1234ABCD-12ab-34cd-56ef-1234567890ab',
    'arn:aws:kms:eu-central-1:111122223333:key/mrk-1234',
    'arn:aws:kms:eu-central-1:111122223333:key/*',
    'arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab\n',
    ' arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
  ])('%j is none', (text) => {
    expect(parseKeyArn(text)).toBeUndefined();
    expect(problemsOf({ ...BLOCK, kms_keys: [{ arns: [text] }] }).join()).toContain(
      'kms_keys[0].arns[0] must be a KMS key ARN',
    );
  });
});

describe('a ceremony is refused when', () => {
  const mrk = multiRegionArn(7, 'eu-west-1');
  it.each<[string, object, string]>([
    [
      'its threshold is above the number of keys',
      { kms_threshold: 3 },
      'kms_threshold must be at most the number of kms_keys',
    ],
    ['its threshold is zero', { kms_threshold: 0 }, 'kms_threshold'],
    ['its generation is zero', { generation: 0 }, 'generation'],
    ['it has no keys', { kms_keys: [] }, 'kms_keys must name at least one'],
    ['it has 256 keys', { kms_keys: Array.from({ length: 256 }, (_, at) => ({ arns: [keyArn(at)] })) }, 'at most 255'],
    ['a key counts twice', { kms_keys: [{ arns: [keyArn(1)] }, { arns: [keyArn(1)] }] }, 'one key in two entries'],
    [
      'replicas are two entries',
      { kms_keys: [{ arns: [mrk] }, { arns: [multiRegionArn(7, 'us-east-1')] }] },
      'one key in two entries',
    ],
    [
      'an entry has two keys',
      { kms_keys: [{ arns: [mrk, multiRegionArn(8, 'us-east-1')] }] },
      'replicas of one multi-region key',
    ],
    [
      'an entry spans accounts',
      { kms_keys: [{ arns: [mrk, mrk.replace('111122223333', '999922223333')] }] },
      'replicas of one multi-region key',
    ],
    ['a replica is repeated', { kms_keys: [{ arns: [mrk, mrk] }] }, 'must not repeat an ARN'],
    [
      'a key is in use and retired',
      { retired_kms_keys: [{ arns: [keyArn(2)] }] },
      'retired_kms_keys must not repeat an ARN',
    ],
    [
      'a key is retired twice',
      { retired_kms_keys: [{ arns: [keyArn(9)] }, { arns: [keyArn(9)] }] },
      'retired_kms_keys must not repeat',
    ],
    ['it has no recipient', { root_token_recipients: [] }, 'must name at least one recipient'],
    ['a recipient is repeated', { root_token_recipients: [RECIPIENT, RECIPIENT] }, 'must not repeat a recipient'],
    ['a recipient is mistyped', { root_token_recipients: [RECIPIENT.replace('ql3z7', 'ql3z8')] }, 'valid checksum'],
    ['a recipient is in capitals', { root_token_recipients: [RECIPIENT.toUpperCase()] }, 'valid checksum'],
    ['a recipient is of another kind', { root_token_recipients: [`age1pq1${'q'.repeat(52)}`] }, 'valid checksum'],
    ['a recipient is an identity', { root_token_recipients: [`AGE-SECRET-KEY-1${'Q'.repeat(58)}`] }, 'valid checksum'],
    ['a member is missing', { kms_keys: undefined }, 'kms_keys is required'],
    ['it has a member too many', { threshold: 1 }, 'threshold'],
  ])('%s', (_, members, problem) => {
    expect(problemsOf({ ...BLOCK, ...members }).join('\n')).toContain(problem);
  });

  it.each([undefined, null, [], 'text', 1, {}])('the whole value is %j', (value) => {
    expect(problemsOf(value)).not.toEqual([]);
  });
});

describe('a ceremony is accepted when', () => {
  it('a new replica joins a key whose former replica is retired', () => {
    const kms_keys = [{ arns: [multiRegionArn(7, 'us-east-1')] }];
    expect(problemsOf({ ...BLOCK, kms_keys, retired_kms_keys: [{ arns: [multiRegionArn(7, 'eu-west-1')] }] })).toEqual(
      [],
    );
  });

  it('every key is needed', () => {
    expect(problemsOf({ ...BLOCK, kms_threshold: 2 })).toEqual([]);
  });
});

describe('the canonical bytes', () => {
  it('and the digest are those of the golden vector', () => {
    const ceremony = parseCeremony(vector.block);
    expect(canonicalBytes(ceremony).toString('utf8')).toBe(vector.canonical);
    expect(ceremonyDigest(ceremony).toString('hex')).toBe(vector.digest_sha384);
    expect(createHash('sha384').update(vector.canonical).digest('hex')).toBe(vector.digest_sha384);
  });

  it('do not depend on the order in which members are written', () => {
    const reversed = Object.fromEntries(Object.entries(vector.block).toReversed());
    expect(canonicalBytes(parseCeremony(reversed))).toEqual(canonicalBytes(parseCeremony(vector.block)));
  });

  it('of an absent retired_kms_keys are those of an empty one', () => {
    expect(canonicalBytes(parseCeremony(BLOCK))).toEqual(
      canonicalBytes(parseCeremony({ ...BLOCK, retired_kms_keys: [] })),
    );
  });

  it('change with every member, and with the order of keys and of replicas', () => {
    const [one, two, ...rest] = vector.block.kms_keys;
    const variants: object[] = [
      { generation: 4 },
      { kms_threshold: 1 },
      { kms_keys: [two, one, ...rest] },
      { kms_keys: [one, { arns: two?.arns.toReversed() }, ...rest] },
      { kms_keys: [one, two] },
      { retired_kms_keys: [] },
    ];
    const texts = [{}, ...variants].map((members) =>
      canonicalBytes(parseCeremony({ ...vector.block, ...members })).toString(),
    );
    expect(new Set(texts).size).toBe(texts.length);
  });

  it('hold the block, which parses to the same ceremony', () => {
    const ceremony = parseCeremony(vector.block);
    const [, line = ''] = canonicalBytes(ceremony).toString('ascii').split('\n');
    expect(parseCeremony(JSON.parse(line))).toEqual(ceremony);
    expect(parseCeremony(ceremonyBlock(ceremony))).toEqual(ceremony);
  });
});

it('the callable ARNs are those of the custody keys and the retired ones', () => {
  expect(ceremonyArns(parseCeremony({ ...BLOCK, retired_kms_keys: [{ arns: [keyArn(3)] }] }))).toEqual([
    keyArn(1),
    keyArn(2),
    keyArn(3),
  ]);
});
