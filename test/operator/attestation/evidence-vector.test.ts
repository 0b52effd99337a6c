// The vector that the specification hands to other verifiers (docs/specification/evidence.md, test vectors): each value
// is worked out again here, and the certificate and the fresh document are judged as the operator's program judges
// them.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import {
  CMW_EVIDENCE,
  connectionNonce,
  DOCUMENT_MEDIA_TYPE,
  keyBinding,
} from '../../../common/attestation/contract.ts';
import { parseReferenceFile } from '../../../common/attestation/reference-file.ts';
import { verifyDocument } from '../../../common/attestation/verify.ts';
import { encodeCbor } from '../../../common/formats/cbor.ts';
import { extendedOnce } from '../../../common/formats/register.ts';
import { verifyCertificate } from '../../../operator/attestation/certificate-evidence.ts';

interface Vector {
  readonly judged_at: string;
  readonly test_root_sha256: string;
  readonly registers: Readonly<Record<string, string>>;
  readonly configuration: { readonly text: string; readonly sha384: string; readonly pcr16: string };
  readonly ceremony: { readonly sha384: string; readonly pcr17: string };
  readonly certificate: Readonly<Record<'der' | 'spki' | 'user_data' | 'document', string>>;
  readonly connection: Readonly<Record<'client_nonce' | 'exported' | 'nonce' | 'document', string>>;
}

const vector = JSON.parse(readFileSync(new URL('../../vectors/evidence-v1.json', import.meta.url), 'utf8')) as Vector;
const { certificate, connection, configuration, ceremony } = vector;

const options = {
  provider: { name: 'the test authority', rootSha256: vector.test_root_sha256 },
  at: Date.parse(vector.judged_at),
  maxAgeSeconds: 10_800,
  referenceValues: parseReferenceFile(
    Buffer.from(
      JSON.stringify({
        measurements: Object.fromEntries(
          Object.entries(vector.registers).map(([index, value]) => [`PCR${index}`, value]),
        ),
      }),
    ),
  ),
};

function bytes(text: string): Buffer {
  return Buffer.from(text, 'hex');
}

function sha384(...parts: readonly Uint8Array[]): string {
  return createHash('sha384').update(Buffer.concat(parts)).digest('hex');
}

it('a register that was extended once is the hash of 48 zero bytes and the digest', () => {
  expect(sha384(Buffer.from(configuration.text))).toBe(configuration.sha384);
  expect(sha384(Buffer.alloc(48), bytes(configuration.sha384))).toBe(configuration.pcr16);
  expect(extendedOnce(bytes(ceremony.sha384)).toString('hex')).toBe(ceremony.pcr17);
});

it('user_data is the tag and the hash of the TLS key', () => {
  const binding = `${Buffer.from('strongroom ra-tls v1\0').toString('hex')}${sha384(bytes(certificate.spki))}`;
  expect(certificate.user_data).toBe(binding);
  expect(keyBinding(bytes(certificate.spki)).toString('hex')).toBe(binding);
});

it('the nonce of a connection is the hash of what the client chose and what the connection exports', () => {
  const hash = createHash('sha256').update(bytes(connection.client_nonce)).update(bytes(connection.exported));
  expect(hash.digest('hex')).toBe(connection.nonce);
  expect(connectionNonce(bytes(connection.client_nonce), bytes(connection.exported)).toString('hex')).toBe(
    connection.nonce,
  );
});

it('the certificate carries its document as a record of RFC 9999, and is expected', () => {
  const record = encodeCbor([DOCUMENT_MEDIA_TYPE, bytes(certificate.document), CMW_EVIDENCE]);
  expect(bytes(certificate.der).includes(record)).toBe(true);
  const { verdict, evidence } = verifyCertificate(bytes(certificate.der), options);
  expect(verdict.failures).toEqual([]);
  expect(verdict.expected).toBe(true);
  expect(evidence?.document.toString('hex')).toBe(certificate.document);
});

it('the fresh document is expected with its nonce, and with no other', () => {
  const asked = { ...options, expectedUserData: bytes(certificate.user_data) };
  const nonce = bytes(connection.nonce);
  expect(verifyDocument(bytes(connection.document), { ...asked, nonce }).expected).toBe(true);
  const other = verifyDocument(bytes(connection.document), { ...asked, nonce: nonce.map((byte) => byte ^ 1) });
  expect(other.failures.map(({ code }) => code)).toEqual(['nonce_mismatch']);
});
