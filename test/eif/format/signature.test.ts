// An image's signature: an independent reader finds PCR0 signed by the certificate's key, and every other content is
// told apart.

import { createHash, generateKeyPairSync, sign, verify, X509Certificate } from 'node:crypto';
import { Decoder, Encoder } from 'cbor-x';
import { beforeAll, describe, expect, it } from 'vitest';
import { checkImageSignature, type ImageSigner, readSigner, signImage } from '../../../eif/format/signature.ts';
import { readSignatureRecord, SignatureShapeError } from '../../../eif/format/signature-record.ts';
import { signingPair } from '../signing-pair.ts';

const PCR0 = createHash('sha384').update('image').digest();

let signer: ImageSigner;
let keyPem: Buffer;
let certificatePem: Buffer;

beforeAll(() => {
  ({ keyPem, certificatePem } = signingPair());
  signer = readSigner(keyPem, certificatePem);
});

/** COSE and CBOR by a library, in the shape of AWS's own tools. */
function written(
  pcr0: Buffer,
  change: { header?: Buffer; register?: number; key?: ImageSigner['key']; certificate?: Buffer } = {},
): Buffer {
  const encoder = new Encoder({ mapsAsObjects: false, useRecords: false, tagUint8Array: false, variableMapSize: true });
  const header = change.header ?? encoder.encode(new Map([[1, -35]]));
  const payload = encoder.encode(
    new Map<string, unknown>([
      ['register_index', change.register ?? 0],
      ['register_value', [...pcr0]],
    ]),
  );
  const signed = encoder.encode(['Signature1', header, Buffer.alloc(0), payload]);
  const signature = sign('sha384', signed, { key: change.key ?? signer.key, dsaEncoding: 'ieee-p1363' });
  const cose = encoder.encode([header, new Map(), payload, signature]);
  return encoder.encode([
    new Map([
      ['signing_certificate', [...(change.certificate ?? certificatePem)]],
      ['signature', [...cose]],
    ]),
  ]);
}

describe('a signature', () => {
  it('is read and verified by an independent CBOR reader and ECDSA over RFC 9052’s structure', () => {
    const decoder = new Decoder({ mapsAsObjects: false });
    const [entry] = decoder.decode(signImage(PCR0, signer)) as [Map<string, number[]>];
    expect([...entry.keys()]).toEqual(['signing_certificate', 'signature']);
    const certificate = new X509Certificate(Buffer.from(entry.get('signing_certificate') ?? []));
    const [header, unprotected, payload, signature] = decoder.decode(Buffer.from(entry.get('signature') ?? [])) as [
      Buffer,
      Map<unknown, unknown>,
      Buffer,
      Buffer,
    ];
    expect(decoder.decode(header)).toEqual(new Map([[1, -35]]));
    expect(unprotected.size).toBe(0);
    expect(decoder.decode(payload)).toEqual(
      new Map<string, unknown>([
        ['register_index', 0],
        ['register_value', [...PCR0]],
      ]),
    );
    const encoder = new Encoder({ useRecords: false, tagUint8Array: false });
    const signed = encoder.encode(['Signature1', Buffer.from(header), Buffer.alloc(0), Buffer.from(payload)]);
    const key = { key: certificate.publicKey, dsaEncoding: 'ieee-p1363' } as const;
    expect(verify('sha384', signed, key, Buffer.from(signature))).toBe(true);
  });

  it('is valid for its image, whoever wrote its CBOR', () => {
    for (const section of [signImage(PCR0, signer), written(PCR0)]) {
      const check = checkImageSignature(section, PCR0);
      expect(check.valid && check.certificate.raw.equals(signer.certificate.raw)).toBe(true);
    }
  });

  it('is not valid for another image, under another key, of another register or algorithm', () => {
    const other = createHash('sha384').update('another').digest();
    const stranger = generateKeyPairSync('ec', { namedCurve: 'secp384r1' }).privateKey;
    const problem = (section: Buffer): unknown => checkImageSignature(section, PCR0);
    expect(problem(written(other))).toMatchObject({ valid: false, problem: 'it signs another image' });
    expect(problem(written(PCR0, { key: stranger }))).toMatchObject({
      valid: false,
      problem: expect.stringContaining('not made by'),
    });
    expect(problem(written(PCR0, { register: 1 }))).toMatchObject({
      valid: false,
      problem: expect.stringContaining('shape'),
    });
    expect(problem(written(PCR0, { header: Buffer.from('a10126', 'hex') }))).toMatchObject({
      valid: false,
      problem: expect.stringContaining('P-384'),
    });
  });

  it('is not valid with a certificate whose key cannot be read', () => {
    const der = Buffer.from(signer.certificate.raw);
    const point = der.indexOf(Buffer.from('03620004', 'hex')); // BIT STRING of an uncompressed point of P-384
    der[point + 3] = 0x05;
    const certificate = Buffer.from(
      `-----BEGIN CERTIFICATE-----\n${der.toString('base64').replaceAll(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
    );
    expect(() => new X509Certificate(certificate).publicKey).toThrow();
    const problem = 'the key of its certificate cannot be read';
    expect(checkImageSignature(written(PCR0, { certificate }), PCR0)).toMatchObject({ valid: false, problem });
  });

  it('that is cut off or changed anywhere is not valid', () => {
    const section = signImage(PCR0, signer);
    for (let length = 0; length < section.length; length += 7) {
      expect(() => readSignatureRecord(section.subarray(0, length))).toThrow(SignatureShapeError);
      expect(checkImageSignature(section.subarray(0, length), PCR0).valid).toBe(false);
    }
    const payload = section.length - 200;
    for (let at = payload; at < section.length; at += 3) {
      const changed = Buffer.from(section);
      changed[at] = (section[at] ?? 0) ^ 1;
      expect(checkImageSignature(changed, PCR0).valid, `byte ${at}`).toBe(false);
    }
    expect(checkImageSignature(Buffer.concat([section, Buffer.alloc(1)]), PCR0).valid).toBe(false);
  });
});

describe('signing refuses', () => {
  it('a key of another curve, a key that is none, a certificate of another key', () => {
    const p256 = generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey;
    const pem = (key: typeof p256): Buffer => Buffer.from(key.export({ type: 'pkcs8', format: 'pem' }));
    expect(() => readSigner(pem(p256), certificatePem)).toThrow('not of the curve P-384');
    expect(() => readSigner(Buffer.from('no key'), certificatePem)).toThrow('no private key in PEM');
    expect(() => readSigner(keyPem, Buffer.from('no certificate'))).toThrow('no X.509 certificate');
    const { certificatePem: another } = signingPair();
    expect(() => readSigner(keyPem, another)).toThrow('of another key');
  });
});
