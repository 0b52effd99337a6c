// The KMS client against a real server: the ceremony guard before the network, replicas in order, bounded attempts and
// waits, what each refusal says of the key, and nothing of a share in the log.

import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CustodyKeyFault } from '../../ceremony/custody-keys.ts';
import { type KeyBehaviour, type KmsServer, kmsClientOptions, startKmsServer } from '../../rehearsal/kms/server.ts';
import { createKms, type Kms, type KmsOptions } from '../../signer/aws/kms.ts';
import { keyArn, multiRegionArn } from '../config/loading.ts';
import { makeCertificate } from '../support/certificates.ts';
import { GIVES_UP, PATIENT } from '../support/patience.ts';
import { recordingLog } from '../support/recording-log.ts';

const KEY = keyArn(1);
const OTHER = keyArn(2);
const REPLICAS = [multiRegionArn(3, 'eu-west-1'), multiRegionArn(3, 'us-east-1')] as const;
const CONTEXT = { service: 'strongroom', generation: '1', index: '1' };
const SECRET = Buffer.from('a secret that no log may repeat');

let server: KmsServer;
let kms: Kms;
let log: ReturnType<typeof recordingLog>;

function connect(options: Partial<KmsOptions> = {}): Kms {
  kms?.close();
  log = recordingLog();
  kms = createKms(kmsClientOptions(server, [KEY, OTHER, ...REPLICAS], { ...PATIENT, ...options }), { log });
  return kms;
}

beforeEach(async () => {
  server = await startKmsServer();
  for (const arns of [[KEY], [OTHER], REPLICAS]) server.createKey(arns);
  connect({ maxAttempts: 1 });
});

afterEach(async () => {
  kms.close();
  await server.close();
});

async function encrypted(arns: readonly string[] = [KEY]): Promise<Buffer> {
  const answer = await kms.encrypt(arns, SECRET, CONTEXT);
  if (!answer.ok) throw new Error(JSON.stringify(answer));
  return answer.bytes;
}

describe('the ceremony guard', () => {
  const outside = keyArn(9);

  it.each(['encrypt', 'decrypt', 'reachable'] as const)(
    '%s of a key outside the ceremony reaches no network',
    async (operation) => {
      server.createKey([outside]); // it exists, and the credentials would do
      expect(await kms[operation]([outside], SECRET, CONTEXT)).toEqual({
        ok: false,
        attempts: [{ arn: outside, fault: 'outside_ceremony' }],
      });
      expect(server.calls).toEqual([]);
    },
  );

  it.each([
    'alias/custody',
    'arn:aws:kms:eu-central-1:111122223333:alias/custody',
    KEY.toUpperCase(),
    `${KEY} `,
    KEY.replace('eu-central-1', 'eu-central-2'),
    '',
  ])('"%s" is outside, whatever it resembles', async (arn) => {
    expect((await kms.decrypt([arn], SECRET, CONTEXT)).ok).toBe(false);
    expect(server.calls).toEqual([]);
  });

  it('an ARN outside the ceremony beside one inside is passed over', async () => {
    const answer = await kms.encrypt([outside, KEY], SECRET, CONTEXT);
    expect(answer).toMatchObject({ ok: true, arn: KEY });
    expect(server.calls.map(({ arn }) => arn)).toEqual([KEY]);
  });

  it('an ARN that is none is not taken into the set', () => {
    expect(() => createKms(kmsClientOptions(server, ['alias/custody']), { log })).toThrow('no schema');
  });
});

describe('a custody key', () => {
  it('gives back what it encrypted', async () => {
    expect(await kms.decrypt([KEY], await encrypted(), CONTEXT)).toEqual({ ok: true, arn: KEY, bytes: SECRET });
  });

  it('that is another one cannot decrypt', async () => {
    expect(await kms.decrypt([OTHER], await encrypted(), CONTEXT)).toEqual({
      ok: false,
      attempts: [{ arn: OTHER, fault: 'bad_ciphertext' }],
    });
  });

  it.each([
    { ...CONTEXT, index: '2' },
    { ...CONTEXT, generation: '2' },
    { ...CONTEXT, service: 'another' },
    { service: 'strongroom', generation: '1' },
  ])('decrypts under its own encryption context only, not %j', async (context) => {
    expect(await kms.decrypt([KEY], await encrypted(), context)).toMatchObject({
      attempts: [{ fault: 'bad_ciphertext' }],
    });
  });

  it('detects an altered ciphertext', async () => {
    const ciphertext = await encrypted();
    ciphertext[ciphertext.length - 1] = (ciphertext.at(-1) ?? 0) ^ 1;
    expect(await kms.decrypt([KEY], ciphertext, CONTEXT)).toMatchObject({ attempts: [{ fault: 'bad_ciphertext' }] });
  });

  const faults: [KeyBehaviour, CustodyKeyFault][] = [
    ['disabled', 'disabled'],
    ['pending_deletion', 'invalid_state'],
    ['deleted', 'not_found'],
    ['denied', 'denied'],
    ['throttled', 'throttled'],
    ['unreachable', 'unreachable'],
    ['impostor', 'wrong_answer'],
  ];
  it.each(faults)('that is %s is reported as %s by every operation', async (behaviour, fault) => {
    const ciphertext = await encrypted();
    server.setBehaviour(KEY, behaviour);
    const expected = { ok: false, attempts: [{ arn: KEY, fault }] };
    expect(await kms.encrypt([KEY], SECRET, CONTEXT)).toEqual(expected);
    expect(await kms.decrypt([KEY], ciphertext, CONTEXT)).toEqual(expected);
    expect(await kms.reachable([KEY])).toEqual(expected);
  });

  it('that is enabled is reachable', async () => {
    expect(await kms.reachable([KEY])).toMatchObject({ ok: true, arn: KEY });
  });
});

describe('replicas of a multi-region key', () => {
  const [first, second] = REPLICAS;

  it('are tried in the order given, each in its own region', async () => {
    const ciphertext = await encrypted(REPLICAS);
    server.setBehaviour(first, 'unreachable');
    expect(await kms.decrypt(REPLICAS, ciphertext, CONTEXT)).toEqual({ ok: true, arn: second, bytes: SECRET });
    expect(server.calls).toEqual([
      { operation: 'Encrypt', arn: first, region: 'eu-west-1', accessKeyId: 'test' },
      { operation: 'Decrypt', arn: first, region: 'eu-west-1', accessKeyId: 'test' },
      { operation: 'Decrypt', arn: second, region: 'us-east-1', accessKeyId: 'test' },
    ]);
  });

  it('are not tried after one that served', async () => {
    await encrypted([second, first]);
    expect(server.calls.map(({ arn }) => arn)).toEqual([second]);
  });

  it('each give their reason when none serves', async () => {
    server.setBehaviour(first, 'denied');
    server.setBehaviour(second, 'disabled');
    expect(await kms.encrypt(REPLICAS, SECRET, CONTEXT)).toEqual({
      ok: false,
      attempts: [
        { arn: first, fault: 'denied' },
        { arn: second, fault: 'disabled' },
      ],
    });
  });
});

describe('attempts and waits are bounded', () => {
  it('a key that is unreachable is given up after its attempts', async () => {
    connect({ maxAttempts: 3 });
    server.setBehaviour(KEY, 'unreachable');
    expect((await kms.encrypt([KEY], SECRET, CONTEXT)).ok).toBe(false);
    expect(server.calls).toHaveLength(3);
  });

  it('a key that refuses is asked once', async () => {
    connect({ maxAttempts: 3 });
    server.setBehaviour(KEY, 'denied');
    expect((await kms.encrypt([KEY], SECRET, CONTEXT)).ok).toBe(false);
    expect(server.calls).toHaveLength(1);
  });

  it('a key that never answers is given up', async () => {
    connect({ ...GIVES_UP, maxAttempts: 2 });
    server.setBehaviour(KEY, 'hanging');
    expect(await kms.encrypt([KEY], SECRET, CONTEXT)).toEqual({
      ok: false,
      attempts: [{ arn: KEY, fault: 'unreachable' }],
    });
    expect(server.calls).toHaveLength(2);
  });

  it('every call is reported once, with its outcome', async () => {
    const calls: string[] = [];
    connect({ maxAttempts: 2, onCall: (operation, outcome) => calls.push(`${operation} ${outcome}`) });
    await encrypted();
    server.setBehaviour(KEY, 'unreachable');
    await kms.reachable([KEY]);
    expect(calls).toEqual(['Encrypt ok', 'DescribeKey unreachable']);
  });
});

describe('the log', () => {
  it('says which key did not serve and what the service said', async () => {
    server.setBehaviour(KEY, 'denied');
    await kms.encrypt([KEY], SECRET, CONTEXT);
    expect(log.lines).toEqual([
      {
        level: 'warn',
        message: 'a custody key did not serve',
        fields: {
          arn: KEY,
          fault: 'denied',
          error: 'AccessDeniedException',
          said: 'User: test is not authorized to perform: kms:Encrypt',
        },
      },
    ]);
  });

  it('repeats nothing of an answer that is not JSON, which may be a share', async () => {
    const ciphertext = await encrypted();
    server.setBehaviour(KEY, 'garbled');
    expect((await kms.decrypt([KEY], ciphertext, CONTEXT)).ok).toBe(false);
    expect(log.lines).toHaveLength(1);
    const fragment = SECRET.toString('base64').slice(0, 6);
    expect(JSON.stringify(log.lines)).not.toContain(fragment);
  });
});

it('the server refuses what is not signed', async () => {
  const response = await fetch(server.endpoint, {
    method: 'POST',
    headers: { 'x-amz-target': 'TrentService.DescribeKey' },
    body: JSON.stringify({ KeyId: KEY }),
  });
  expect(await response.json()).toMatchObject({ __type: 'MissingAuthenticationTokenException' });
});

it('the server over TLS, as a guest of the whole path needs it, shows the certificate it was given', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-kms-'));
  const { cert, key } = makeCertificate(folder, 'kms');
  const [certPem, keyPem] = [readFileSync(cert, 'utf8'), readFileSync(key, 'utf8')];
  const secure = await startKmsServer({ tls: { cert: certPem, key: keyPem } });
  try {
    const call = httpsRequest(secure.endpoint, { method: 'POST', ca: certPem, headers: { 'x-amz-target': 'none' } });
    call.end('{}');
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(400);
    response.resume();
  } finally {
    await secure.close();
    rmSync(folder, { recursive: true });
  }
});
