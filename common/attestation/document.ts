// Nitro attestation documents as bytes (specification/evidence.md#document). One encoding is accepted, so that nothing
// outside the signature can be varied.

import { type KeyObject, verify as verifySignature } from 'node:crypto';
import { bounded } from '../command-line/text.ts';
import { CborError, type CborValue, decodeCbor, encodeCbor } from '../formats/cbor.ts';
import { PCR_BYTES } from '../formats/register.ts';
import { MAX_DOCUMENT_FIELD_BYTES, PCR_COUNT } from './contract.ts';
import { demand, EvidenceError, type FailureCode } from './failure.ts';

/** The NSM's answers are no longer (specification/enclave.md#nsm). */
export const MAX_DOCUMENT_BYTES = 0x3000;
const MAX_CERTIFICATE_BYTES = 1024;
const MAX_BUNDLE_CERTIFICATES = 8;
const MAX_MODULE_ID_CHARACTERS = 256;
/** The year 9999: RFC 3339 has no later time. */
export const MAX_TIMESTAMP_MS = 253_402_300_799_999;

/** RFC 9052 §4.2, table 2 of §9: COSE_Sign1 is tag 18, in one byte. */
const COSE_SIGN1_TAG = 18;
const TAG_HEAD = 0xc0 | COSE_SIGN1_TAG;
/** RFC 9053 §2.1: {1: -35}, ES384. */
const ES384_HEADER = encodeCbor(new Map([[1, -35]]));
/** r ‖ s of P-384 (RFC 9053 §2.1). */
const SIGNATURE_BYTES = 96;

export interface CoseSign1 {
  readonly protectedHeader: Buffer;
  readonly payload: Buffer;
  readonly signature: Buffer;
}

export interface AttestationDocument {
  readonly moduleId: string;
  readonly timestamp: number;
  readonly pcrs: ReadonlyMap<number, Buffer>;
  readonly certificate: Buffer;
  readonly cabundle: readonly Buffer[];
  readonly publicKey: Buffer | undefined;
  readonly userData: Buffer | undefined;
  readonly nonce: Buffer | undefined;
}

export function readCoseSign1(bytes: Uint8Array): CoseSign1 {
  demand(bytes.length <= MAX_DOCUMENT_BYTES, 'malformed_document', `more than ${MAX_DOCUMENT_BYTES} bytes`);
  const decoded = decode(bytes, 'malformed_document', { tag: COSE_SIGN1_TAG });
  const parts = Array.isArray(decoded) ? (decoded as readonly CborValue[]) : []; // of four: see the encoding below
  const [protectedHeader, unprotectedHeader, payload, signature] = parts;
  const isSign1 =
    Buffer.isBuffer(protectedHeader) &&
    unprotectedHeader instanceof Map &&
    Buffer.isBuffer(payload) &&
    Buffer.isBuffer(signature);
  demand(isSign1, 'malformed_document', 'not an array of two headers, payload and signature');
  demand(
    protectedHeader.equals(ES384_HEADER),
    'wrong_algorithm',
    'the protected header is not exactly {1: -35} (ES384)',
  );
  demand(unprotectedHeader.size === 0, 'malformed_document', 'the unprotected header is not empty');
  demand(
    signature.length === SIGNATURE_BYTES,
    'malformed_document',
    `the signature is not of ${SIGNATURE_BYTES} bytes`,
  );
  // Nothing outside of the signed bytes may be written in another way (RFC 8949 §4.2.1).
  const untagged = bytes[0] === TAG_HEAD ? bytes.subarray(1) : bytes;
  const canonical = encodeCbor([protectedHeader, new Map(), payload, signature]);
  demand(canonical.equals(untagged), 'malformed_document', 'not in the deterministic encoding');
  return { protectedHeader, payload, signature };
}

export function readPayload(payload: Buffer): AttestationDocument {
  const decoded = decode(payload, 'malformed_payload');
  demand(decoded instanceof Map, 'malformed_payload', 'not a map');
  const fields = decoded as Fields;
  const unknown = [...fields.keys()].find((name) => !FIELDS.has(name));
  demand(unknown === undefined, 'malformed_payload', `the field ${bounded(String(unknown), 60)} is not known`);
  demand(fields.get('digest') === 'SHA384', 'malformed_payload', 'digest is not SHA384');
  return {
    moduleId: readModuleId(fields.get('module_id')),
    timestamp: readTimestamp(fields.get('timestamp')),
    pcrs: readRegisters(fields.get('pcrs')),
    certificate: readCertificate(fields.get('certificate'), 'certificate'),
    cabundle: readBundle(fields.get('cabundle')),
    publicKey: readOptional(fields, 'public_key', 1),
    userData: readOptional(fields, 'user_data', 0),
    nonce: readOptional(fields, 'nonce', 0),
  };
}

/** RFC 9052 §4.4, over Sig_structure without external data. @throws EvidenceError */
export function checkDocumentSignature({ protectedHeader, payload, signature }: CoseSign1, leafKey: KeyObject): void {
  const signed = encodeCbor(['Signature1', protectedHeader, Buffer.alloc(0), payload]);
  const genuine = verifySignature('sha384', signed, { key: leafKey, dsaEncoding: 'ieee-p1363' }, signature);
  demand(genuine, 'bad_signature', 'the key of the certificate did not sign this payload');
}

type Fields = ReadonlyMap<string | number | bigint, CborValue>;

const FIELDS: ReadonlySet<string | number | bigint> = new Set([
  ...['module_id', 'digest', 'timestamp', 'pcrs', 'certificate', 'cabundle'],
  ...['public_key', 'user_data', 'nonce'],
]);

function decode(bytes: Uint8Array, code: FailureCode, options: { readonly tag?: number } = {}): CborValue {
  try {
    return decodeCbor(bytes, options);
  } catch (error) {
    if (error instanceof CborError) throw new EvidenceError({ code, detail: error.message });
    throw error;
  }
}

function readModuleId(value: CborValue | undefined): string {
  const text = typeof value === 'string' ? value : '';
  const characters = [...text].length;
  const valid = characters >= 1 && characters <= MAX_MODULE_ID_CHARACTERS;
  demand(valid, 'malformed_payload', `module_id is not a text of 1 to ${MAX_MODULE_ID_CHARACTERS} characters`);
  return text;
}

function readTimestamp(value: CborValue | undefined): number {
  const valid = typeof value === 'number' && value > 0 && value <= MAX_TIMESTAMP_MS;
  demand(valid, 'malformed_payload', 'timestamp is not a time in milliseconds');
  return value;
}

function readRegisters(value: CborValue | undefined): ReadonlyMap<number, Buffer> {
  demand(value instanceof Map && value.size >= 1, 'malformed_payload', 'pcrs is not a map of registers');
  return new Map(
    [...(value as Fields)].map(([index, register]) => {
      const known = typeof index === 'number' && index >= 0 && index < PCR_COUNT;
      demand(known, 'malformed_payload', `pcrs has a register other than 0 to ${PCR_COUNT - 1}`);
      const whole = Buffer.isBuffer(register) && register.length === PCR_BYTES;
      demand(whole, 'malformed_payload', `PCR${index} is not of ${PCR_BYTES} bytes`);
      return [index, register];
    }),
  );
}

function readBundle(value: CborValue | undefined): readonly Buffer[] {
  const valid = Array.isArray(value) && value.length >= 1 && value.length <= MAX_BUNDLE_CERTIFICATES;
  demand(valid, 'malformed_payload', `cabundle is not a list of 1 to ${MAX_BUNDLE_CERTIFICATES} certificates`);
  return (value as readonly CborValue[]).map((entry) => readCertificate(entry, 'cabundle'));
}

function readCertificate(value: CborValue | undefined, field: string): Buffer {
  const valid = Buffer.isBuffer(value) && value.length >= 1 && value.length <= MAX_CERTIFICATE_BYTES;
  demand(valid, 'malformed_payload', `${field}: a certificate is not of 1 to ${MAX_CERTIFICATE_BYTES} bytes`);
  return value;
}

function readOptional(fields: Fields, name: string, minBytes: number): Buffer | undefined {
  const value = fields.get(name) ?? undefined;
  if (value === undefined) return undefined;
  const valid = Buffer.isBuffer(value) && value.length >= minBytes && value.length <= MAX_DOCUMENT_FIELD_BYTES;
  demand(valid, 'malformed_payload', `${name} is not of ${minBytes} to ${MAX_DOCUMENT_FIELD_BYTES} bytes`);
  return value;
}
