// Certificates part by part, so that each may be as no generator writes it, signed all the same by whom a test names.
// Test keys only.

import { KeyObject, sign, type webcrypto } from 'node:crypto';

/** DER of each part; null: it is left out. `extensions`: of each Extension. */
export interface Parts {
  readonly version: Buffer | null;
  readonly serial: Buffer;
  readonly algorithm: Buffer;
  readonly issuer: Buffer;
  readonly validity: Buffer;
  readonly subject: Buffer;
  readonly spki: Buffer;
  readonly extensions: readonly Buffer[];
  /** Behind the extensions, within what is signed. */
  readonly after: Buffer;
  readonly outer: Buffer;
  readonly unusedBits: number;
}

export function tlv(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  const { length } = content;
  const digits = length < 0x80 ? [] : length < 0x100 ? [length] : [length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, digits.length === 0 ? length : 0x80 | digits.length, ...digits), content]);
}

export const sequence = (...contents: readonly Uint8Array[]): Buffer => tlv(0x30, ...contents);
export const hexBytes = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

/** @param oid content of the object identifier, hex @param critical the DER of the flag, hex; '': none */
export function extension(oid: string, value: Uint8Array, critical = ''): Buffer {
  return sequence(tlv(0x06, hexBytes(oid)), hexBytes(critical), tlv(0x04, value));
}

export const CRITICAL = '0101ff';
export const OID = {
  basicConstraints: '551d13',
  keyUsage: '551d0f',
  subjectKeyIdentifier: '551d0e',
  authorityKeyIdentifier: '551d23',
  cmw: '2b06010505070123',
  unknown: '2b06010401868d1f01',
} as const;

export function partsOf(der: Buffer): Parts {
  const [signed, outer] = membersOf(der);
  const [version, serial, algorithm, issuer, validity, subject, spki, list] = membersOf(some(signed));
  return {
    ...{ version: some(version), serial: some(serial), algorithm: some(algorithm), issuer: some(issuer) },
    ...{ validity: some(validity), subject: some(subject), spki: some(spki) },
    ...{ extensions: membersOf(some(membersOf(some(list))[0])), outer: some(outer) },
    ...{ after: Buffer.alloc(0), unusedBits: 0 },
  };
}

export function signedPart(parts: Parts): Buffer {
  const { version, serial, algorithm, issuer, validity, subject, spki, extensions, after } = parts;
  const list = extensions.length === 0 ? Buffer.alloc(0) : tlv(0xa3, sequence(...extensions));
  const head = version ?? Buffer.alloc(0);
  return sequence(head, serial, algorithm, issuer, validity, subject, spki, list, after);
}

/** @param hash of the signature, whatever the parts name */
export function assemble(parts: Parts, key: webcrypto.CryptoKey, hash = 'sha384', signed = signedPart(parts)): Buffer {
  const signature = sign(hash, signed, KeyObject.from(key));
  return sequence(signed, parts.outer, tlv(0x03, Buffer.of(parts.unusedBits), signature));
}

/** Of just so many bytes: an extension that is not known fills it, and it is signed until its signature fits. */
export function sized(parts: Parts, key: webcrypto.CryptoKey, bytes: number, hash = 'sha384'): Buffer {
  for (let filling = 0, tries = 0; tries < 1000; tries++) {
    const value = extension(OID.unknown, Buffer.alloc(Math.max(0, filling)));
    const der = assemble(withExtension(parts, OID.unknown, value), key, hash);
    if (der.length === bytes) return der;
    filling += bytes - der.length;
  }
  throw new Error(`no certificate of ${bytes} bytes`);
}

/** In place of the extension with this identifier, which may be new; null removes it. */
export function withExtension(parts: Parts, oid: string, value: Buffer | null): Parts {
  const named = tlv(0x06, hexBytes(oid));
  const others = parts.extensions.filter((one) => !some(membersOf(one)[0]).subarray(0, named.length).equals(named));
  return { ...parts, extensions: value === null ? others : [...others, value] };
}

export function membersOf(der: Buffer): readonly Buffer[] {
  const values: Buffer[] = [];
  for (let at = extent(der, 0).start; at < der.length; ) {
    const { end } = extent(der, at);
    values.push(der.subarray(at, end));
    at = end;
  }
  return values;
}

function extent(der: Buffer, at: number): { readonly start: number; readonly end: number } {
  const length = der[at + 1] ?? 0;
  const digits = length < 0x80 ? 0 : length - 0x80;
  const start = at + 2 + digits;
  return { start, end: start + (digits === 0 ? length : der.readUIntBE(at + 2, digits)) };
}

function some(part: Buffer | undefined): Buffer {
  if (part === undefined) throw new Error('a certificate of another form');
  return part;
}
