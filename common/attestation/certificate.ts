// X.509 certificates of evidence, read byte by byte in the one form of specification/evidence.md#certificates: no two
// verifiers differ in what they can read.

import { createPublicKey, type KeyObject, verify as verifySignature } from 'node:crypto';
import { demand, EvidenceError, type FailureCode } from './failure.ts';

export interface Certificate {
  readonly der: Buffer;
  /** Milliseconds since the epoch, both inside the validity. */
  readonly notBefore: number;
  readonly notAfter: number;
  readonly issuer: Buffer;
  readonly subject: Buffer;
  readonly spki: Buffer;
  readonly isCriticalUnknown: boolean;
  /** RFC 5280 §4.2.1.9; undefined when absent. */
  readonly basicConstraints: { readonly ca: boolean; readonly pathLength: number | undefined } | undefined;
  /** RFC 5280 §4.2.1.3; undefined when absent. */
  readonly keyUsage: { readonly digitalSignature: boolean; readonly keyCertSign: boolean } | undefined;
  readonly subjectKeyIdentifier: Buffer | undefined;
  readonly authorityKeyIdentifier: Buffer | undefined;
  readonly cmw: Buffer | undefined;
  readonly algorithm: Buffer;
  readonly signed: Buffer;
  readonly signature: Buffer;
}

/** Each with the one algorithm that signs with it (RFC 5480, RFC 5758). */
type KeyKind = 'P-384' | 'P-256';

const POINT = 0x04; // uncompressed
const KINDS = {
  'P-384': {
    spki: Buffer.from('3076301006072a8648ce3d020106052b81040022036200', 'hex'),
    algorithm: Buffer.from('300a06082a8648ce3d040303', 'hex'),
    hash: 'sha384',
  },
  'P-256': {
    spki: Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex'),
    algorithm: Buffer.from('300a06082a8648ce3d040302', 'hex'),
    hash: 'sha256',
  },
} as const satisfies Record<KeyKind, object>;

export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  version: 0xa0,
  extensions: 0xa3,
  keyIdentifier: 0x80,
} as const;

const BASIC_CONSTRAINTS = '551d13';
const KEY_USAGE = '551d0f';
const SUBJECT_KEY_IDENTIFIER = '551d0e';
const AUTHORITY_KEY_IDENTIFIER = '551d23';
/** 1.3.6.1.5.5.7.1.35, RFC 9999. */
const CMW = '2b06010505070123';

const TRUE = 0xff;
const VERSION_3 = Buffer.of(TAG.integer, 1, 2);
const DIGITAL_SIGNATURE = 0x80;
const KEY_CERT_SIGN = 0x04;

interface Value {
  readonly tag: number;
  readonly content: Buffer;
  readonly der: Buffer;
}

/** @throws EvidenceError malformed_certificate: also for DER with bytes after it */
export function readCertificate(bytes: Uint8Array): Certificate {
  const der = Buffer.from(bytes);
  const [signed, outer, bits, ...others] = valuesIn(only(der, TAG.sequence).content);
  form(signed?.tag === TAG.sequence && bits?.tag === TAG.bits && others.length === 0, 'its three parts');
  const [version, serial, algorithm, issuer, validity, subject, spki, extensions, ...more] = valuesIn(signed.content);
  const inOrder = [version, serial, algorithm, issuer, validity, subject, spki].map((value) => value?.tag);
  const { sequence } = TAG;
  const expected = [TAG.version, TAG.integer, sequence, sequence, sequence, sequence, sequence];
  form(more.length === 0 && expected.every((tag, at) => tag === inOrder[at]), 'its members');
  form(version?.content.equals(VERSION_3) === true, 'it is not of version 3');
  form(algorithm?.der.equals(derOf(outer)) === true, 'it names two signature algorithms');
  form(bits.content[0] === 0, 'its signature');
  const [notBefore = 0, notAfter, ...times] = valuesIn(contentOf(validity)).map(readTime);
  form(notAfter !== undefined && times.length === 0, 'its validity');
  return {
    ...{ der, notBefore, notAfter, issuer: derOf(issuer), subject: derOf(subject), spki: derOf(spki) },
    ...readExtensions(extensions),
    ...{ algorithm: derOf(outer), signed: signed.der, signature: bits.content.subarray(1) },
  };
}

/** Undefined unless the key and the signature's algorithm are of this kind. */
export function certificateKey({ spki, algorithm }: Certificate, kind: KeyKind): KeyObject | undefined {
  const { spki: head, algorithm: signedWith } = KINDS[kind];
  const isOfKind =
    spki.subarray(0, head.length).equals(head) && // which says how long it is
    spki[head.length] === POINT &&
    algorithm.equals(signedWith);
  if (!isOfKind) return undefined;
  try {
    return createPublicKey({ key: spki, format: 'der', type: 'spki' });
  } catch {
    return undefined; // not a point of the curve
  }
}

export function isSignedWith({ signed, signature }: Certificate, key: KeyObject, kind: KeyKind): boolean {
  try {
    return verifySignature(KINDS[kind].hash, signed, key, signature);
  } catch {
    return false;
  }
}

type Extensions = Pick<
  Certificate,
  'isCriticalUnknown' | 'basicConstraints' | 'keyUsage' | 'subjectKeyIdentifier' | 'authorityKeyIdentifier' | 'cmw'
>;

function readExtensions(value: Value | undefined): Extensions {
  form(value === undefined || value.tag === TAG.extensions, 'its members');
  const list = value === undefined ? [] : valuesIn(only(value.content, TAG.sequence).content).map(readExtension);
  const values = new Map(list.map(({ oid, content }) => [oid, content]));
  form(values.size === list.length, 'an extension is there twice');
  const read = <T>(oid: string, reader: (content: Buffer) => T): T | undefined => {
    const content = values.get(oid);
    return content === undefined ? undefined : reader(content);
  };
  return {
    isCriticalUnknown: list.some(({ oid, critical }) => critical && oid !== BASIC_CONSTRAINTS && oid !== KEY_USAGE),
    basicConstraints: read(BASIC_CONSTRAINTS, readConstraints),
    keyUsage: read(KEY_USAGE, readUsage),
    subjectKeyIdentifier: read(SUBJECT_KEY_IDENTIFIER, (content) => only(content, TAG.octets).content),
    authorityKeyIdentifier: read(AUTHORITY_KEY_IDENTIFIER, readAuthorityKey),
    cmw: values.get(CMW),
  };
}

function readExtension({ tag, content }: Value) {
  form(tag === TAG.sequence, 'an extension');
  const [oid, ...rest] = valuesIn(content);
  const critical = rest.length === 2;
  const [flag, value] = critical ? rest : [undefined, rest[0]];
  const isFlag = flag === undefined || (flag.tag === TAG.boolean && flag.content.equals(Buffer.of(TRUE)));
  const isExtension = oid?.tag === TAG.oid && isFlag && value?.tag === TAG.octets && rest.length <= 2;
  form(isExtension, 'an extension');
  return { oid: contentOf(oid).toString('hex'), critical, content: contentOf(value) };
}

function readConstraints(content: Buffer): NonNullable<Certificate['basicConstraints']> {
  const [ca, length, ...more] = valuesIn(only(content, TAG.sequence).content);
  if (ca === undefined) return { ca: false, pathLength: undefined };
  form(ca.tag === TAG.boolean && ca.content.equals(Buffer.of(TRUE)) && more.length === 0, 'basicConstraints');
  if (length === undefined) return { ca: true, pathLength: undefined };
  const [pathLength = 0x80, ...bytes] = length.content;
  form(length.tag === TAG.integer && bytes.length === 0 && pathLength < 0x80, 'pathLenConstraint');
  return { ca: true, pathLength };
}

/** A list of named bits ends with one that is set (X.690 §11.2.2). */
function readUsage(content: Buffer): NonNullable<Certificate['keyUsage']> {
  const [unused = 8, first = 0, ...more] = only(content, TAG.bits).content;
  const last = more.at(-1) ?? first;
  form(unused < 8 && more.length <= 1 && last % (2 << unused) === 1 << unused, 'keyUsage');
  return { digitalSignature: (first & DIGITAL_SIGNATURE) !== 0, keyCertSign: (first & KEY_CERT_SIGN) !== 0 };
}

/** RFC 5280 §4.2.1.1: issuer and serial number, which may stand behind it, are not read. */
function readAuthorityKey(content: Buffer): Buffer | undefined {
  const [first] = valuesIn(only(content, TAG.sequence).content);
  return first?.tag === TAG.keyIdentifier ? first.content : undefined;
}

/** RFC 5280 §4.1.2.5: `YYMMDDHHMMSSZ` of 1950 to 2049, or `YYYYMMDDHHMMSSZ`. */
function readTime({ tag, content }: Value): number {
  const text = content.toString('latin1');
  const century = tag === TAG.utcTime ? (text < '50' ? '20' : '19') : '';
  const [, ...parts] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(century + text) ?? [];
  const [year = 0, month = 0, ...rest] = parts.map(Number);
  const time = Date.UTC(year, month - 1, ...rest);
  const isTime = (tag === TAG.utcTime || tag === TAG.generalizedTime) && year >= 1950;
  form(isTime && new Date(time).toISOString().replace(/\D/g, '') === `${parts.join('')}000`, 'its validity');
  return time;
}

function only(bytes: Buffer, tag: number): Value {
  const [value, ...more] = valuesIn(bytes);
  form(value?.tag === tag && more.length === 0, 'it is not one value of DER');
  return value;
}

/** Every length is definite and in its shortest form (X.690 §10.1). */
export function valuesIn(bytes: Buffer, code: FailureCode = 'malformed_certificate'): readonly Value[] {
  const values: Value[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [tag = 0, length = 0] = bytes.subarray(at);
    const digits = length < 0x80 ? 0 : length - 0x80;
    const start = at + 2 + digits;
    const long = digits === 1 || digits === 2 ? bytes.subarray(at + 2, start) : Buffer.alloc(0);
    const size = digits === 0 ? length : long.length === digits ? long.readUIntBE(0, digits) : 0;
    const isShort = length < 0x80 || (size >= 0x80 && size >= 1 << (8 * (digits - 1)));
    demand(isShort && start + size <= bytes.length, code, 'its structure cannot be read');
    values.push({ tag, content: bytes.subarray(start, start + size), der: bytes.subarray(at, start + size) });
    at = start + size;
  }
  return values;
}

function contentOf(value: Value | undefined): Buffer {
  return value?.content ?? Buffer.alloc(0);
}

function derOf(value: Value | undefined): Buffer {
  return value?.der ?? Buffer.alloc(0);
}

function form(condition: boolean, what: string): asserts condition {
  if (!condition) throw new EvidenceError({ code: 'malformed_certificate', detail: `not of the known form: ${what}` });
}
