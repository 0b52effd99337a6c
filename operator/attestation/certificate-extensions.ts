// Extensions of X.509 certificates, which node:crypto does not show: the one file through which the ASN.1 packages
// enter the CLI. What cannot be read, or is there twice, is refused; which extensions are critical and handled by
// nobody is told (RFC 5280 §4.2).

import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  BasicConstraints,
  Certificate,
  id_ce_basicConstraints,
  id_ce_keyUsage,
  KeyUsage,
  KeyUsageFlags,
} from '@peculiar/asn1-x509';
import { demand, EvidenceError, type FailureCode } from './failure.ts';

export interface CertificateExtensions {
  /** RFC 5280 §4.2.1.9; undefined when absent. */
  readonly basicConstraints: { readonly ca: boolean; readonly pathLength: number | undefined } | undefined;
  /** RFC 5280 §4.2.1.3; undefined when absent. */
  readonly keyUsage: { readonly digitalSignature: boolean; readonly keyCertSign: boolean } | undefined;
  /** OIDs that are critical and neither of the two. */
  readonly unhandledCritical: readonly string[];
  /** Contents by OID. */
  readonly values: ReadonlyMap<string, Buffer>;
}

const HANDLED: readonly string[] = [id_ce_basicConstraints, id_ce_keyUsage];

/** @throws EvidenceError malformed_certificate */
export function readExtensions(der: Uint8Array): CertificateExtensions {
  const extensions = parse(der, Certificate).tbsCertificate.extensions ?? [];
  const values = new Map(extensions.map(({ extnID, extnValue }) => [extnID, Buffer.from(extnValue.buffer)]));
  demand(values.size === extensions.length, 'malformed_certificate', 'an extension is there twice');
  return {
    basicConstraints: readConstraints(values.get(id_ce_basicConstraints)),
    keyUsage: readUsage(values.get(id_ce_keyUsage)),
    unhandledCritical: extensions
      .filter(({ extnID, critical }) => critical && !HANDLED.includes(extnID))
      .map(({ extnID }) => extnID),
    values,
  };
}

/** The content of an OCTET STRING with nothing after it. @throws EvidenceError malformed_evidence */
export function readOctetString(der: Uint8Array): Buffer {
  const value = parse(der, OctetString, 'malformed_evidence');
  const canonical = Buffer.from(AsnConvert.serialize(value));
  demand(canonical.equals(der), 'malformed_evidence', 'not one OCTET STRING in DER');
  return Buffer.from(value.buffer);
}

function readConstraints(value: Buffer | undefined): CertificateExtensions['basicConstraints'] {
  if (value === undefined) return undefined;
  const { cA, pathLenConstraint } = parse(value, BasicConstraints);
  return { ca: cA, pathLength: pathLenConstraint };
}

function readUsage(value: Buffer | undefined): CertificateExtensions['keyUsage'] {
  if (value === undefined) return undefined;
  const flags = parse(value, KeyUsage).toNumber();
  return {
    digitalSignature: (flags & KeyUsageFlags.digitalSignature) !== 0,
    keyCertSign: (flags & KeyUsageFlags.keyCertSign) !== 0,
  };
}

function parse<T>(der: Uint8Array, type: new () => T, code: FailureCode = 'malformed_certificate'): T {
  try {
    return AsnConvert.parse(der, type);
  } catch {
    throw new EvidenceError({ code, detail: 'its structure cannot be read' });
  }
}
