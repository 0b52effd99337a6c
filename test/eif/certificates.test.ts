// The enclave's certificate authorities: Amazon's and the added ones, each once; what is no authority is refused by its
// file and place.

import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { caBundle } from '../../eif/certificates.ts';
import { makeCertificate } from '../support/certificates.ts';
import { signingPair } from './signing-pair.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-ca-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const pems = (bundle: Buffer): string[] =>
  bundle.toString().match(/-----BEGIN[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
const bundleWith = (...added: [string, string | Buffer][]): Buffer =>
  caBundle(process.execPath, new Map(added.map(([name, pem]) => [name, Buffer.from(pem)])));

describe('the bundle', () => {
  it('has the five roots from Node.js’s own list, and what is added behind them', () => {
    const amazon = pems(bundleWith());
    expect(amazon).toHaveLength(5);
    const known = rootCertificates.map((pem) => new X509Certificate(pem).fingerprint256);
    for (const pem of amazon) expect(known).toContain(new X509Certificate(pem).fingerprint256);
    const { cert } = makeCertificate(folder, 'database');
    const added = readFileSync(cert, 'utf8').trim();
    expect(pems(bundleWith(['database.pem', added]))).toEqual([...amazon, added]);
  });

  it('has no certificate twice, and no text of the files', () => {
    const { cert } = makeCertificate(folder, 'twice');
    const added = readFileSync(cert, 'utf8');
    const bundle = bundleWith(
      ['a.pem', `a comment\n${added}${added}`],
      ['b.pem', added],
      ['c.pem', pems(bundleWith())[0] ?? ''],
    );
    expect(pems(bundle)).toHaveLength(6);
    expect(bundle.toString()).not.toContain('a comment');
  });

  it('refuses a file without certificates, one that cannot be read, and a certificate of no authority', () => {
    expect(() => bundleWith(['a.pem', 'nothing'])).toThrow('--ca a.pem has no certificate in PEM');
    const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----';
    expect(() => bundleWith(['a.pem', broken])).toThrow('--ca a.pem: certificate 1 cannot be read');
    const leaf = signingPair({ authority: false }).certificatePem;
    expect(() => bundleWith(['a.pem', leaf])).toThrow('--ca a.pem: certificate 1 is not of a certificate authority');
  });
});
