// A throw-away certificate authority shaped like that of AWS Nitro Enclaves. Test keys only, made for every process: no
// production code can trust them, because the root's digest belongs to the provider of documents.

import 'reflect-metadata';
import { createHash, type webcrypto } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  type Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

export interface Certified {
  readonly name: string;
  readonly certificate: Buffer;
  readonly keys: webcrypto.CryptoKeyPair;
  /** The last moment of its validity, milliseconds. */
  readonly expiresAt: number;
}

export interface CredentialOptions {
  readonly name: string;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly issuer?: Certified;
  readonly pathLength?: number | 'unbounded';
  readonly keyUsages?: KeyUsageFlags;
  readonly curve?: 'P-256' | 'P-384';
  readonly hash?: 'SHA-256' | 'SHA-384';
  readonly extensions?: readonly Extension[];
}

export interface NsmPki {
  /** Root first, as in a document's `cabundle`: root, region, zone, instance. */
  readonly chain: readonly Certified[];
  readonly root: Certified;
  readonly rootFingerprint: string;
  /** @param at when its three hours begin, milliseconds */
  issueLeaf(moduleId: string, at: number): Promise<Certified>;
}

const LEAF_LIFE_MS = 3 * 3_600_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const CA_USAGES = KeyUsageFlags.digitalSignature | KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign;

/**
 * @param options.at the moment around which the authorities are valid (default: now)
 * @param options.root another one's root, for chains that differ below it
 */
export async function createNsmPki(options: { readonly at?: number; readonly root?: Certified } = {}): Promise<NsmPki> {
  const at = options.at ?? Date.now();
  const root = options.root ?? (await authority('test.nitro-enclaves', 'unbounded', undefined, at, 3650 * DAY_MS));
  const region = await authority('2478724f.us-test-1.test.nitro-enclaves', 2, root, at, 20 * DAY_MS);
  const zone = await authority('be3589a5.zonal.us-test-1.test.nitro-enclaves', 1, region, at, 6 * DAY_MS);
  const instance = await authority('i-0123456789abcdef0.us-test-1.test.nitro-enclaves', 0, zone, at, DAY_MS);
  return {
    chain: [root, region, zone, instance],
    root,
    rootFingerprint: createHash('sha256').update(root.certificate).digest('hex'),
    issueLeaf: (moduleId, from) =>
      createCredential({
        name: `${moduleId}.us-test-1.aws`,
        issuer: instance,
        notBefore: from - 3000,
        notAfter: from + LEAF_LIFE_MS,
      }),
  };
}

/** One certificate and its fresh key; what a test asks for goes in, sensible or not. */
export async function createCredential(options: CredentialOptions): Promise<Certified> {
  const { name, notBefore, notAfter, issuer, pathLength, curve = 'P-384', hash = 'SHA-384' } = options;
  const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: curve }, true, ['sign', 'verify']);
  const isAuthority = pathLength !== undefined;
  const usages = options.keyUsages ?? (isAuthority ? CA_USAGES : KeyUsageFlags.digitalSignature);
  const certificate = await X509CertificateGenerator.create({
    subject: distinguishedName(name),
    issuer: distinguishedName(issuer?.name ?? name),
    notBefore: new Date(notBefore),
    notAfter: new Date(notAfter),
    publicKey: keys.publicKey,
    signingKey: (issuer?.keys ?? keys).privateKey,
    signingAlgorithm: { name: 'ECDSA', hash },
    extensions: [
      new BasicConstraintsExtension(isAuthority, pathLength === 'unbounded' ? undefined : pathLength, true),
      new KeyUsagesExtension(usages, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      ...(issuer === undefined ? [] : [await AuthorityKeyIdentifierExtension.create(issuer.keys.publicKey)]),
      ...(options.extensions ?? []),
    ],
  });
  const expiresAt = certificate.notAfter.getTime();
  return { name, certificate: Buffer.from(certificate.rawData), keys, expiresAt };
}

function authority(
  name: string,
  pathLength: number | 'unbounded',
  issuer: Certified | undefined,
  at: number,
  lifeMs: number,
): Promise<Certified> {
  return createCredential({
    name,
    pathLength,
    ...(issuer === undefined ? {} : { issuer }),
    notBefore: at - DAY_MS,
    notAfter: at + lifeMs,
  });
}

/** Of an empty one: no name at all, which RFC 5280 allows. */
function distinguishedName(commonName: string): string {
  return commonName === '' ? '' : `C=US, O=Amazon, OU=AWS, CN=${commonName}`;
}
