// Extensions of X.509 certificates, which node:crypto does not show: the one file through which the ASN.1 packages enter the CLI. What
// cannot be read, or is there twice, is refused; which extensions are critical and handled by nobody is told (RFC 5280 §4.2).

import { AsnConvert } from '@peculiar/asn1-schema';
import {
  BasicConstraints,
  Certificate,
  id_ce_basicConstraints,
  id_ce_keyUsage,
  KeyUsage,
  KeyUsageFlags,
} from '@peculiar/asn1-x509';
import { demand, EvidenceError } from './failure.ts';

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

function parse<T>(der: Uint8Array, type: new () => T): T {
  try {
    return AsnConvert.parse(der, type);
  } catch {
    throw new EvidenceError({ code: 'malformed_certificate', detail: 'its structure cannot be read' });
  }
}
