// Client certificates for tests, of authorities made when they are needed: with chains, times and usages as a test
// wants them. Test keys only.

import 'reflect-metadata';
import { createHash, KeyObject, webcrypto } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 86_400_000;

export interface Issued {
  /** PEM, with the certificates of the authorities between it and the root. */
  readonly cert: string;
  /** PEM, PKCS#8. */
  readonly key: string;
  /** SHA-256, 64 hex digits. */
  readonly fingerprint: string;
  readonly spkiSha256: string;
}

export interface Wish {
  readonly notBefore?: Date;
  readonly notAfter?: Date;
  readonly usage?: 'client' | 'server' | 'none';
}

export class Authority {
  readonly pem: string;
  readonly #chain: readonly string[];
  readonly #certificate: X509Certificate;
  readonly #keys: webcrypto.CryptoKeyPair;

  private constructor(certificate: X509Certificate, keys: webcrypto.CryptoKeyPair, chain: readonly string[]) {
    this.#certificate = certificate;
    this.#keys = keys;
    this.#chain = chain;
    this.pem = certificate.toString('pem');
  }

  static async root(name: string): Promise<Authority> {
    const keys = await makeKeys();
    return new Authority(await selfSigned(`CN=${name}`, keys, {}, AUTHORITY), keys, []);
  }

  async intermediate(name: string, wish: Wish = {}): Promise<Authority> {
    const keys = await makeKeys();
    const certificate = await this.#sign(`CN=${name}`, keys, wish, AUTHORITY);
    return new Authority(certificate, keys, [certificate.toString('pem'), ...this.#chain]);
  }

  async issue(subject: string, wish: Wish = {}): Promise<Issued> {
    const keys = await makeKeys();
    return issued(await this.#sign(subject, keys, wish, leafExtensions(wish)), keys, this.#chain);
  }

  #sign(
    subject: string,
    keys: webcrypto.CryptoKeyPair,
    wish: Wish,
    extensions: readonly Extension[],
  ): Promise<X509Certificate> {
    return X509CertificateGenerator.create({
      ...times(wish),
      subject,
      issuer: this.#certificate.subject,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: ALGORITHM,
      extensions: [...extensions],
    });
  }
}

export async function issueSelfSigned(subject: string, wish: Wish = {}): Promise<Issued> {
  const keys = await makeKeys();
  return issued(await selfSigned(subject, keys, wish, leafExtensions(wish)), keys, []);
}

/** As the files that a signer or curl reads. */
export function writeIssued(folder: string, name: string, { cert, key }: Issued): { cert: string; key: string } {
  const paths = { cert: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) };
  writeFileSync(paths.cert, cert);
  writeFileSync(paths.key, key);
  return paths;
}

const AUTHORITY: readonly Extension[] = [
  new BasicConstraintsExtension(true, undefined, true),
  new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
];

function leafExtensions({ usage = 'client' }: Wish): readonly Extension[] {
  if (usage === 'none') return [new BasicConstraintsExtension(false)];
  const purpose = usage === 'client' ? ExtendedKeyUsage.clientAuth : ExtendedKeyUsage.serverAuth;
  return [new BasicConstraintsExtension(false), new ExtendedKeyUsageExtension([purpose])];
}

function makeKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

function selfSigned(
  name: string,
  keys: webcrypto.CryptoKeyPair,
  wish: Wish,
  extensions: readonly Extension[],
): Promise<X509Certificate> {
  return X509CertificateGenerator.createSelfSigned({
    ...times(wish),
    name,
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [...extensions],
  });
}

function times({ notBefore, notAfter }: Wish): { readonly notBefore: Date; readonly notAfter: Date } {
  const now = Date.now();
  return { notBefore: notBefore ?? new Date(now - DAY_MS), notAfter: notAfter ?? new Date(now + DAY_MS) };
}

function issued(certificate: X509Certificate, keys: webcrypto.CryptoKeyPair, chain: readonly string[]): Issued {
  const digest = (bytes: ArrayBuffer): string => createHash('sha256').update(Buffer.from(bytes)).digest('hex');
  return {
    cert: [certificate.toString('pem'), ...chain].join('\n'),
    key: String(KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' })),
    fingerprint: digest(certificate.rawData),
    spkiSha256: digest(certificate.publicKey.rawData),
  };
}
