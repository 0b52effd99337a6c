// The envelope of KMS: captured ones give the parts they are known to have, own ones open, and everything else is
// refused by name.

import { createCipheriv, createHash, generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openCms, parseCms } from '../../../enclave/kms/cms.ts';
import {
  AES_256_CBC,
  CMS_SHAPES,
  cmsFor,
  DATA,
  MGF1,
  OAEP_SHA_256,
  RSAES_OAEP,
  recipientInfo,
  SHA_256,
  tlv,
} from '../../../rehearsal/kms/cms.ts';
import { CmsError, type CmsProblem, MAX_CMS_BYTES } from '../../../signer/tee/recipient.ts';
import { vectorPath } from '../../support/vectors.ts';

const KEY = keyPair(2048);
const SHARE = randomBytes(33);

function keyPair(modulusLength: number) {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  return { spki, privateKey, keyIdentifier: createHash('sha256').update(spki).digest() };
}

function problemOf(run: () => unknown): CmsProblem | 'none' {
  try {
    run();
    return 'none';
  } catch (error) {
    if (error instanceof CmsError) return error.problem;
    throw error;
  }
}

const folder = vectorPath('kms-cms');

describe.skipIf(folder === undefined)('captured envelopes of AWS KMS', () => {
  const read = (name: string) => readFileSync(`${folder}/${name}.bin`);

  it.each(['', '_w_ctx'])('input_ber%s gives the parts that it is known to have', (suffix) => {
    const envelope = parseCms(read(`input_ber${suffix}`));
    expect(envelope.encryptedKey).toEqual(read(`encrypted_key_out${suffix}`));
    expect(envelope.iv).toEqual(read(`iv_out${suffix}`));
    expect(envelope.ciphertext).toEqual(read(`ciphertext_out${suffix}`));
    expect(envelope.keyIdentifier).toHaveLength(32);
  });

  it('an envelope for another process is refused before it is decrypted', () => {
    expect(problemOf(() => openCms(read('input_ber'), KEY))).toBe('other_recipient');
  });

  it('an envelope that is cut off anywhere is refused', () => {
    const whole = read('input_ber');
    for (let end = 0; end < whole.length; end++) {
      expect(problemOf(() => parseCms(whole.subarray(0, end)))).not.toBe('none');
    }
  });
});

describe.each(CMS_SHAPES)('an envelope of the shape %s', (shape) => {
  it.each([1, 15, 16, 33, 999, 1000, 4096])('opens: %i bytes', (size) => {
    const plaintext = randomBytes(size);
    expect(openCms(cmsFor(KEY.spki, plaintext, { shape }), KEY)).toEqual(plaintext);
  });

  it('is refused with bytes after it', () => {
    const envelope = Buffer.concat([cmsFor(KEY.spki, SHARE, { shape }), Buffer.of(0)]);
    expect(problemOf(() => parseCms(envelope))).toBe('trailing_bytes');
  });

  it('is refused when its end is missing', () => {
    expect(problemOf(() => parseCms(cmsFor(KEY.spki, SHARE, { shape }).subarray(0, -1)))).not.toBe('none');
  });
});

it('what comes out lies in memory of its own, so that wiping it wipes everything', () => {
  const opened = openCms(cmsFor(KEY.spki, SHARE), KEY);
  expect(opened.buffer.byteLength).toBe(SHARE.length);
});

const NULL = tlv(0x05);
const algorithm = (oid: string, ...parameters: Buffer[]) => tlv(0x30, Buffer.from(oid, 'hex'), ...parameters);
const SHA_1 = algorithm('06052b0e03021a', NULL);
const SHA_512 = algorithm('0609608648016503040203', NULL);
const oaep = (...parameters: Buffer[]) => tlv(0x30, RSAES_OAEP, tlv(0x30, ...parameters));
const hash = tlv(0xa0, SHA_256);
const mask = tlv(0xa1, tlv(0x30, MGF1, SHA_256));
const iv = tlv(0x04, randomBytes(16));
const twoRecipients = [recipientInfo(KEY.spki, randomBytes(32)), recipientInfo(KEY.spki, randomBytes(32))];
const issuerAndSerial = tlv(0x30, tlv(0x30), Buffer.from('020101', 'hex'));

const REFUSED: readonly [string, CmsProblem, Parameters<typeof cmsFor>[2]][] = [
  ['another content type', 'not_enveloped_data', { contentType: DATA }],
  ['another version', 'version', { version: Buffer.from('020100', 'hex') }],
  ['a version that only ends in 2', 'version', { version: Buffer.from('02020102', 'hex') }],
  ['attributes', 'not_enveloped_data', { more: tlv(0xa1, tlv(0x30)) }],
  ['no recipient', 'recipients', { recipients: [] }],
  ['two recipients', 'recipients', { recipients: twoRecipients }],
  ['a recipient of another kind', 'recipients', { recipients: [tlv(0xa2, tlv(0x30))] }],
  ['a recipient by issuer', 'recipients', { recipient: { identifier: issuerAndSerial } }],
  ['a key identifier that is no SHA-256', 'recipients', { recipient: { identifier: tlv(0x80, randomBytes(20)) } }],
  ['a recipient of another version', 'version', { recipient: { version: Buffer.from('020100', 'hex') } }],
  ['a wrapped key of another size', 'key_encryption', { recipient: { encryptedKey: tlv(0x04, randomBytes(255)) } }],
  ['RSA PKCS #1 v1.5', 'key_encryption', { recipient: { algorithm: algorithm('06092a864886f70d010101', NULL) } }],
  ['OAEP without parameters', 'key_encryption', { recipient: { algorithm: tlv(0x30, RSAES_OAEP) } }],
  ['OAEP with its defaults, SHA-1', 'key_encryption', { recipient: { algorithm: oaep() } }],
  ['OAEP without the mask', 'key_encryption', { recipient: { algorithm: oaep(hash) } }],
  ['OAEP with SHA-1', 'key_encryption', { recipient: { algorithm: oaep(tlv(0xa0, SHA_1), mask) } }],
  ['OAEP with SHA-512', 'key_encryption', { recipient: { algorithm: oaep(tlv(0xa0, SHA_512), mask) } }],
  ['MGF1 with SHA-1', 'key_encryption', { recipient: { algorithm: oaep(hash, tlv(0xa1, tlv(0x30, MGF1, SHA_1))) } }],
  ['a label', 'key_encryption', { recipient: { algorithm: oaep(hash, mask, tlv(0xa2, SHA_256)) } }],
  ['AES-128-CBC', 'content_encryption', { contentAlgorithm: algorithm('0609608648016503040102', iv) }],
  ['AES-256-GCM', 'content_encryption', { contentAlgorithm: algorithm('060960864801650304012e', iv) }],
  ['no initialisation vector', 'content_encryption', { contentAlgorithm: tlv(0x30, AES_256_CBC, NULL) }],
  ['one of 12 bytes', 'content_encryption', { contentAlgorithm: tlv(0x30, AES_256_CBC, tlv(0x04, randomBytes(12))) }],
  ['a content that is no data', 'not_enveloped_data', { dataType: Buffer.from('06092a864886f70d010702', 'hex') }],
  ['no content', 'content_size', { ciphertext: Buffer.alloc(0) }],
  ['half a block', 'content_size', { ciphertext: randomBytes(24) }],
];

describe('refused by name', () => {
  it.each(REFUSED)('%s: %s', (_what, problem, parts) => {
    expect(problemOf(() => openCms(cmsFor(KEY.spki, SHARE, parts), KEY))).toBe(problem);
  });

  it('the parts that are refused are replaced one by one: what they replace is accepted', () => {
    expect(problemOf(() => openCms(cmsFor(KEY.spki, SHARE, { recipient: { algorithm: oaep(hash, mask) } }), KEY))).toBe(
      'none',
    );
    expect(oaep(hash, mask)).toEqual(OAEP_SHA_256);
  });

  it('too many bytes', () => {
    expect(problemOf(() => parseCms(Buffer.alloc(MAX_CMS_BYTES + 1, 0x30)))).toBe('too_large');
  });

  it('more segments than the largest content has', () => {
    const ciphertext = randomBytes(16 * 1024);
    expect(problemOf(() => parseCms(cmsFor(KEY.spki, SHARE, { ciphertext })))).toBe('too_large');
  });

  it.each([
    ['nothing', ''],
    ['text', Buffer.from('{"CiphertextForRecipient":"…"}').toString('hex')],
    ['a length beyond the end', '3084ffffffff'],
    ['an indefinite length in a primitive', '0480aa0000'],
    ['indefinite lengths in each other and no end', '3080'.repeat(1000)],
  ])('%s', (_what, hex) => {
    expect(['not_ber', 'trailing_bytes', 'not_enveloped_data']).toContain(
      problemOf(() => parseCms(Buffer.from(hex, 'hex'))),
    );
  });

  it('the key of another process, however alike', () => {
    expect(problemOf(() => openCms(cmsFor(keyPair(2048).spki, SHARE), KEY))).toBe('other_recipient');
  });

  it('a key that does not fit the identifier, a content key of another size, an altered content: all under one name', () => {
    const identifier = tlv(0x80, KEY.keyIdentifier);
    const otherKey = cmsFor(keyPair(2048).spki, SHARE, { recipient: { identifier } });
    const shortKey = cmsFor(KEY.spki, SHARE, { contentKey: randomBytes(16) });
    const problems = [otherKey, shortKey, withoutPadding()].map((envelope) => problemOf(() => openCms(envelope, KEY)));
    expect(problems).toEqual(['undecryptable', 'undecryptable', 'undecryptable']);
  });
});

/** As an altered content comes out, all but one time in 256: the last block does not end as PKCS #7 asks. */
function withoutPadding(): Buffer {
  const contentKey = randomBytes(32);
  const vector = randomBytes(16);
  const cipher = createCipheriv('aes-256-cbc', contentKey, vector).setAutoPadding(false);
  const ciphertext = Buffer.concat([cipher.update(Buffer.alloc(16)), cipher.final()]);
  return cmsFor(KEY.spki, SHARE, {
    contentKey,
    ciphertext,
    contentAlgorithm: tlv(0x30, AES_256_CBC, tlv(0x04, vector)),
  });
}

describe('whatever bytes come', () => {
  const mutation = fc.array(
    fc.record({ at: fc.nat(700), what: fc.constantFrom('replace', 'insert', 'remove'), byte: fc.nat(255) }),
    { minLength: 1, maxLength: 4 },
  );

  it('they are refused by name, or give parts that they contain', () => {
    let accepted = 0;
    fc.assert(
      fc.property(fc.constantFrom(...CMS_SHAPES), mutation, (shape, changes) => {
        const bytes = [...cmsFor(KEY.spki, SHARE, { shape })];
        for (const { at, what, byte } of changes) {
          bytes.splice(at % bytes.length, what === 'insert' ? 0 : 1, ...(what === 'remove' ? [] : [byte]));
        }
        const mutated = Buffer.from(bytes);
        if (problemOf(() => parseCms(mutated)) !== 'none') return;
        accepted += 1;
        const { keyIdentifier, encryptedKey, iv: vector, ciphertext } = parseCms(mutated);
        for (const part of [keyIdentifier, encryptedKey, vector]) expect(mutated.includes(part)).toBe(true);
        expect([keyIdentifier.length, encryptedKey.length, vector.length]).toEqual([32, 256, 16]);
        expect(ciphertext.length % 16).toBe(0);
      }),
      { numRuns: 3000 },
    );
    expect(accepted).toBeGreaterThan(0); // changes within the key or the content are no concern of the parser
  });

  it.each(CMS_SHAPES)('one bit of it changed, anywhere: refused by name, or other parts (%s)', (shape) => {
    const envelope = cmsFor(KEY.spki, randomBytes(1200), { shape });
    expect(changesThatShowNowhere(envelope)).toEqual([]);
  });

  it.skipIf(folder === undefined)('one bit of a captured one changed, anywhere: the same', () => {
    expect(changesThatShowNowhere(readFileSync(`${folder}/input_ber.bin`))).toEqual([]);
  });

  it('bytes that were never an envelope are refused by name', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
        expect(problemOf(() => parseCms(bytes))).not.toBe('none');
      }),
    );
  });
});

/** The bits that may be flipped without a refusal and without another part: `byte.bit`. */
function changesThatShowNowhere(envelope: Buffer): string[] {
  const honest = parseCms(envelope);
  const unnoticed: string[] = [];
  for (let at = 0; at < envelope.length * 8; at++) {
    const changed = Buffer.from(envelope);
    changed[at >> 3] = (changed[at >> 3] ?? 0) ^ (1 << (at & 7));
    problemOf(() => {
      const { keyIdentifier, encryptedKey, iv: vector, ciphertext } = parseCms(changed);
      const same =
        keyIdentifier.equals(honest.keyIdentifier) &&
        encryptedKey.equals(honest.encryptedKey) &&
        vector.equals(honest.iv) &&
        ciphertext.equals(honest.ciphertext);
      if (same) unnoticed.push(`${at >> 3}.${at & 7}`);
    });
  }
  return unnoticed;
}
