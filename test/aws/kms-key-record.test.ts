// The envelope over KMS: the master key wrapped, unwrapped and rotated through the real client and a real server, with
// keys that fail in every way they can.

import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Ceremony, ceremonyArns } from '../../ceremony/definition.ts';
import { unwrapMasterKey } from '../../ceremony/key-record.ts';
import { parseRecord, serializeRecord } from '../../ceremony/record.ts';
import { type KeyBehaviour, type KmsServer, kmsClientOptions, startKmsServer } from '../../rehearsal/kms/server.ts';
import { createKms, custodyKeysOf, type Kms, type KmsOptions } from '../../signer/aws/kms.ts';
import { ceremonyOf, failed, succeeded, termsOf, wrapped } from '../ceremony/custody.ts';
import { keyArn, multiRegionArn } from '../config/loading.ts';
import { GIVES_UP, PATIENT } from '../support/patience.ts';
import { recordingLog } from '../support/recording-log.ts';

const REPLICAS = [multiRegionArn(3, 'eu-west-1'), multiRegionArn(3, 'us-east-1')];
const CEREMONY = ceremonyOf({ threshold: 2, keys: [[keyArn(1)], [keyArn(2, 'us-east-1')], REPLICAS] });

let server: KmsServer;
const open: Kms[] = [];

beforeEach(async () => {
  server = await startKmsServer();
  for (const { arns } of CEREMONY.kmsKeys) server.createKey(arns);
});

afterEach(async () => {
  for (const kms of open.splice(0)) kms.close();
  await server.close();
});

function keysOf(ceremony: Ceremony, patience: Partial<KmsOptions> = PATIENT) {
  const options = kmsClientOptions(server, ceremonyArns(ceremony), { ...patience, maxAttempts: 1 });
  const kms = createKms(options, { log: recordingLog() });
  open.push(kms);
  return custodyKeysOf(kms);
}

/** Only a key that never answers is given up. */
function patienceWith(behaviour: KeyBehaviour): Partial<KmsOptions> {
  return behaviour === 'hanging' ? GIVES_UP : PATIENT;
}

async function written(masterKey: Buffer, ceremony = CEREMONY) {
  const record = parseRecord(serializeRecord(await wrapped(masterKey, ceremony, keysOf(ceremony))));
  if (record === undefined) throw new Error('what is written parses');
  return record;
}

const FAILURES: readonly KeyBehaviour[] = [
  'disabled',
  'pending_deletion',
  'deleted',
  'denied',
  'throttled',
  'unreachable',
  'hanging',
  'impostor',
  'garbled',
];

describe('with 2 of 3 keys', () => {
  it.each(FAILURES)('one key that is %s is survived, and named', async (behaviour) => {
    const masterKey = randomBytes(32);
    const record = await written(masterKey);
    server.setBehaviour(keyArn(1), behaviour);
    const { masterKey: recovered, keys } = succeeded(
      await unwrapMasterKey(record, termsOf(CEREMONY), keysOf(CEREMONY, patienceWith(behaviour))),
    );
    expect(recovered).toEqual(masterKey);
    expect(keys.map(({ ok }) => ok)).toEqual([false, true, true]);
  });

  it.each(FAILURES)('two keys that are %s are not', async (behaviour) => {
    const record = await written(randomBytes(32));
    for (const arn of [keyArn(1), keyArn(2, 'us-east-1')]) server.setBehaviour(arn, behaviour);
    const refused = failed(await unwrapMasterKey(record, termsOf(CEREMONY), keysOf(CEREMONY, patienceWith(behaviour))));
    expect(refused).toMatchObject({ refusal: 'below_threshold', startupFailure: 8 });
    expect(refused.message).toContain(`key 1: ${keyArn(1)}`);
  });

  it('a region down takes one replica and one key, and the other replica serves', async () => {
    const masterKey = randomBytes(32);
    const record = await written(masterKey);
    server.setBehaviour(REPLICAS[0] ?? '', 'unreachable');
    server.setBehaviour(keyArn(1), 'unreachable');
    expect(succeeded(await unwrapMasterKey(record, termsOf(CEREMONY), keysOf(CEREMONY))).masterKey).toEqual(masterKey);
  });
});

it('the keys of the ceremony are rotated: one retired, one new', async () => {
  const next = ceremonyOf({
    threshold: 2,
    keys: [[keyArn(2, 'us-east-1')], REPLICAS, [keyArn(4)]],
    generation: 2,
    retired: [[keyArn(1)]],
  });
  server.createKey([keyArn(4)]);
  const masterKey = randomBytes(32);
  const opened = succeeded(await unwrapMasterKey(await written(masterKey), termsOf(next), keysOf(next)));
  expect(opened.rotationDue).toBe(true);
  const rotated = await written(opened.masterKey, next);
  expect(succeeded(await unwrapMasterKey(rotated, termsOf(next), keysOf(next)))).toMatchObject({
    masterKey,
    rotationDue: false,
  });
});

it('shares that changed places open under no key', async () => {
  const record = await written(randomBytes(32));
  const ciphertexts = record.shares.map(({ ciphertext }) => ciphertext);
  const shares = record.shares.map((share, at) => ({
    ...share,
    ciphertext: ciphertexts.at(at - 1) ?? Buffer.alloc(1),
  }));
  const refused = failed(await unwrapMasterKey({ ...record, shares }, termsOf(CEREMONY), keysOf(CEREMONY)));
  expect(refused).toMatchObject({ refusal: 'below_threshold', startupFailure: 8 });
  const faults = refused.keys.flatMap(({ attempts }) => attempts.map(({ fault }) => fault));
  expect(faults).toEqual(Array(4).fill('bad_ciphertext'));
});
