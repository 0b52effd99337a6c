// Attested calls, with the real client over the wire: what KMS decrypts reaches this process only, in an envelope;
// whatever else comes back is refused and says what it means.

import { createHash, randomBytes } from 'node:crypto';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CustodyKeyFault } from '../../ceremony/custody-keys.ts';
import { verifyDocument } from '../../common/attestation/verify.ts';
import { createKmsRecipient } from '../../enclave/kms/cms.ts';
import { createNsm } from '../../enclave/nsm/client.ts';
import { type KeyBehaviour, type KmsServer, kmsClientOptions, startKmsServer } from '../../rehearsal/kms/server.ts';
import { createNsmEmulator, type NsmEmulator, testPcr } from '../../rehearsal/nsm/emulator.ts';
import { createNsmPki } from '../../rehearsal/nsm/pki.ts';
import { createKms, type Kms, type KmsOptions } from '../../signer/aws/kms.ts';
import { type Nsm, NsmError } from '../../signer/tee/nsm.ts';
import type { KmsRecipient } from '../../signer/tee/recipient.ts';
import { keyArn, multiRegionArn } from '../config/loading.ts';
import { recordingLog } from '../support/recording-log.ts';

const KEY = keyArn(1);
const OTHER = keyArn(2);
const REPLICAS = [multiRegionArn(3, 'eu-west-1'), multiRegionArn(3, 'us-east-1')] as const;
const CONTEXT = { service: 'strongroom', generation: '1', index: '1' };
const PCR0 = 'kms:RecipientAttestation:PCR0';
const SECRET = randomBytes(33);

let emulator: NsmEmulator;
let recipient: KmsRecipient;
let server: KmsServer;
let log: ReturnType<typeof recordingLog>;
const open: Kms[] = [];

beforeAll(async () => {
  emulator = await createNsmEmulator();
  recipient = await createKmsRecipient({ nsm: createNsm(emulator.exchange) });
});

beforeEach(async () => {
  server = await startKmsServer({ attestationRoot: emulator.rootFingerprint });
  for (const arns of [[KEY], [OTHER], REPLICAS]) {
    server.createKey(arns);
    for (const arn of arns) server.requireAttestation(arn, { [PCR0]: [testPcr(0).toString('hex')] });
  }
  log = recordingLog();
});

afterEach(async () => {
  for (const kms of open.splice(0)) kms.close();
  await server.close();
});

function connect(options: Partial<KmsOptions> = { recipient }): Kms {
  const kms = createKms(kmsClientOptions(server, [KEY, OTHER, ...REPLICAS], { maxAttempts: 1, ...options }), { log });
  open.push(kms);
  return kms;
}

async function encrypted(arns: readonly string[] = [KEY]): Promise<Buffer> {
  const answer = await connect().encrypt(arns, SECRET, CONTEXT);
  if (!answer.ok) throw new Error(JSON.stringify(answer));
  return answer.bytes;
}

async function recipientIn(options: Parameters<typeof createNsmEmulator>[0]): Promise<KmsRecipient> {
  return createKmsRecipient({ nsm: createNsm((await createNsmEmulator({ pki: emulator.pki, ...options })).exchange) });
}

describe('an attested Decrypt', () => {
  it('gives the plaintext, in every shape of envelope, and KMS never sent it', async () => {
    const ciphertext = await encrypted();
    for (let call = 0; call < 3; call++) {
      expect(await connect().decrypt([KEY], ciphertext, CONTEXT)).toEqual({ ok: true, arn: KEY, bytes: SECRET });
    }
    expect(log.lines).toEqual([]);
  });

  it('carries a document of its own, of the key of this process', async () => {
    const ciphertext = await encrypted();
    const kms = connect();
    await kms.decrypt([KEY], ciphertext, CONTEXT);
    await kms.decrypt([KEY], ciphertext, CONTEXT);
    const documents = server.calls.flatMap(({ document }) => document ?? []);
    expect(documents).toHaveLength(2);
    const provider = { name: 'test', rootSha256: emulator.rootFingerprint };
    const verdicts = documents.map((bytes) => verifyDocument(bytes, { provider, at: Date.now(), maxAgeSeconds: 300 }));
    const keys = verdicts.map(({ document }) => document?.publicKey?.toString('hex'));
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^30820122300d06092a864886f70d010101/); // RSA of 2048 bits
    expect(documents[0]?.equals(documents[1] ?? Buffer.alloc(0))).toBe(false);
  });

  it('is the only attested operation: Encrypt and DescribeKey have no recipient', async () => {
    const kms = connect();
    await kms.encrypt([KEY], SECRET, CONTEXT);
    await kms.reachable([KEY]);
    expect(server.calls.map(({ document }) => document)).toEqual([undefined, undefined]);
  });

  it('asks for a document for every replica that it tries', async () => {
    const ciphertext = await encrypted(REPLICAS);
    server.setBehaviour(REPLICAS[0], 'unreachable');
    expect(await connect().decrypt(REPLICAS, ciphertext, CONTEXT)).toMatchObject({ ok: true, arn: REPLICAS[1] });
    const documents = server.calls.flatMap(({ document }) => document ?? []);
    expect(new Set(documents.map((document) => document.toString('hex'))).size).toBe(2);
  });

  it('of a key that asks for no attestation is attested all the same', async () => {
    const unconditional = keyArn(4);
    server.createKey([unconditional]);
    const kms = createKms(kmsClientOptions(server, [unconditional], { recipient }), { log });
    open.push(kms);
    const answer = await kms.encrypt([unconditional], SECRET, CONTEXT);
    if (!answer.ok) throw new Error('encrypts');
    expect(await kms.decrypt([unconditional], answer.bytes, CONTEXT)).toMatchObject({ ok: true, bytes: SECRET });
    expect(server.calls.at(-1)?.document).toBeDefined();
  });
});

describe('a key policy', () => {
  const refused = (fault: CustodyKeyFault) => ({ ok: false, attempts: [{ arn: KEY, fault }] });

  it('that asks for another image: an attestation policy mismatch', async () => {
    const ciphertext = await encrypted();
    server.requireAttestation(KEY, { [PCR0]: [createHash('sha384').update('another image').digest('hex')] });
    expect(await connect().decrypt([KEY], ciphertext, CONTEXT)).toEqual(refused('attestation_denied'));
  });

  it('may accept several images, as during a rollout', async () => {
    const ciphertext = await encrypted();
    server.requireAttestation(KEY, { [PCR0]: ['00'.repeat(48), testPcr(0).toString('hex')] });
    expect(await connect().decrypt([KEY], ciphertext, CONTEXT)).toMatchObject({ ok: true });
  });

  it.each([
    ['ImageSha384', { 'kms:RecipientAttestation:ImageSha384': ['11'.repeat(48)] }],
    [
      'a register beside a right one',
      { [PCR0]: [testPcr(0).toString('hex')], 'kms:RecipientAttestation:PCR8': ['22'] },
    ],
    ['a register that is not locked yet', { 'kms:RecipientAttestation:PCR16': ['00'.repeat(48)] }],
  ])('with a condition on %s that is not met denies', async (_what, conditions) => {
    const ciphertext = await encrypted();
    server.requireAttestation(KEY, conditions);
    expect(await connect().decrypt([KEY], ciphertext, CONTEXT)).toEqual(refused('attestation_denied'));
  });

  it('denies an enclave in debug mode', async () => {
    const ciphertext = await encrypted();
    const debugged = connect({ recipient: await recipientIn({ debugMode: true }) });
    expect(await debugged.decrypt([KEY], ciphertext, CONTEXT)).toEqual(refused('attestation_denied'));
  });

  it('denies a signer that is not in an enclave, which is told of no measurement', async () => {
    const ciphertext = await encrypted();
    expect(await connect({}).decrypt([KEY], ciphertext, CONTEXT)).toEqual(refused('denied'));
  });

  it('is no matter of Encrypt: there a denial is about the role', async () => {
    server.setBehaviour(KEY, 'denied');
    expect(await connect().encrypt([KEY], SECRET, CONTEXT)).toEqual(refused('denied'));
  });
});

describe('a document that KMS does not take', () => {
  it.each<readonly [string, () => Promise<KmsRecipient>]>([
    ['untrusted_root', async () => recipientIn({ pki: await createNsmPki({ at: Date.now() }) })],
    ['stale', () => recipientIn({ timestamp: Date.now() - 301_000 })],
  ])('%s: refused, and the log says what KMS said', async (code, stranger) => {
    const ciphertext = await encrypted();
    expect(await connect({ recipient: await stranger() }).decrypt([KEY], ciphertext, CONTEXT)).toEqual({
      ok: false,
      attempts: [{ arn: KEY, fault: 'failed' }],
    });
    expect(log.lines[0]?.fields['said']).toBe(`the attestation document: ${code}`);
  });
});

it('without a document from the NSM, KMS is not called', async () => {
  const ciphertext = await encrypted();
  const calls = server.calls.length;
  const attest: Nsm['attest'] = () => Promise.reject(new NsmError('InternalError', 'the device said InternalError'));
  const kms = connect({ recipient: { ...recipient, attest: () => attest({}) } });
  expect(await kms.decrypt([KEY], ciphertext, CONTEXT)).toEqual({
    ok: false,
    attempts: [{ arn: KEY, fault: 'no_attestation' }],
  });
  expect(server.calls.length).toBe(calls);
});

describe('an answer to an attested call', () => {
  const faults: [KeyBehaviour, CustodyKeyFault][] = [
    ['plaintext_beside', 'disclosed'],
    ['plaintext_instead', 'disclosed'],
    ['no_envelope', 'wrong_answer'],
    ['impostor', 'wrong_answer'],
    ['foreign_envelope', 'bad_envelope'],
    ['truncated_envelope', 'bad_envelope'],
    ['garbled', 'failed'],
  ];

  it.each(faults)('that is %s is refused as %s', async (behaviour, fault) => {
    const ciphertext = await encrypted();
    server.setBehaviour(KEY, behaviour, ['Decrypt']);
    expect(await connect().decrypt([KEY], ciphertext, CONTEXT)).toEqual({ ok: false, attempts: [{ arn: KEY, fault }] });
  });

  it.each<KeyBehaviour>(['plaintext_beside', 'plaintext_instead'])(
    'that is %s is an error in the log, which repeats nothing of it',
    async (behaviour) => {
      const ciphertext = await encrypted();
      server.setBehaviour(KEY, behaviour);
      await connect().decrypt([KEY], ciphertext, CONTEXT);
      expect(log.lines.map(({ level }) => level)).toEqual(['error']);
      expect(JSON.stringify(log.lines)).not.toContain(SECRET.toString('base64').slice(0, 8));
    },
  );

  it('that is for another process is refused by name in the log', async () => {
    const ciphertext = await encrypted();
    await connect({ recipient: await recipientIn({}) }).decrypt([KEY], ciphertext, CONTEXT);
    server.setBehaviour(KEY, 'replayed_envelope');
    expect(await connect().decrypt([KEY], ciphertext, CONTEXT)).toMatchObject({
      attempts: [{ fault: 'bad_envelope' }],
    });
    expect(log.lines.at(-1)?.fields['said']).toBe('CMS envelope: made for the key of another process');
  });

  it('goes on to the next replica when it is refused', async () => {
    const ciphertext = await encrypted(REPLICAS);
    server.setBehaviour(REPLICAS[0], 'foreign_envelope', ['Decrypt']);
    expect(await connect().decrypt(REPLICAS, ciphertext, CONTEXT)).toEqual({
      ok: true,
      arn: REPLICAS[1],
      bytes: SECRET,
    });
  });
});
