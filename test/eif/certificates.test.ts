// The certificate authorities of an image: Amazon's for every host, and those named for one host, each once; what is no
// authority, or is for no host, is refused by its file and place.

import { X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { caBundle, readAuthorities } from '../../eif/certificates.ts';
import { makeCertificate } from '../support/certificates.ts';
import { signingPair } from './signing-pair.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-ca-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

it('Amazon’s five roots come from Node.js’s own list, and no other is for every host', () => {
  const amazon = caBundle(process.execPath)
    .toString()
    .match(/-----BEGIN[\s\S]+?-----END CERTIFICATE-----/g);
  expect(amazon).toHaveLength(5);
  const known = rootCertificates.map((pem) => new X509Certificate(pem).fingerprint256);
  for (const pem of amazon ?? []) expect(known).toContain(new X509Certificate(pem).fingerprint256);
});

describe('--ca', () => {
  const fileWith = (name: string, content: string | Buffer): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };

  it('names one host, in lower case, and each of its authorities once, without the text of the file', () => {
    const [one, other] = ['one', 'other'].map((name) => readFileSync(makeCertificate(folder, name).cert, 'utf8'));
    const file = fileWith('authorities.pem', `a comment\n${one}${one}${other}`);
    const { byHost, files } = readAuthorities([`DB.example.org=${file}`, `collector.example.org=${file}`]);
    expect([...byHost]).toEqual([
      ['db.example.org', [one, other]],
      ['collector.example.org', [one, other]],
    ]);
    expect([...files.keys()]).toEqual(['authorities.pem']);
  });

  it('takes a path with an equals sign', () => {
    const { cert } = makeCertificate(folder, 'a=b');
    expect([...readAuthorities([`db.example.org=${cert}`]).byHost.keys()]).toEqual(['db.example.org']);
  });

  it.each([
    ['FILE alone', (file: string) => [file], '--ca takes HOST=FILE'],
    ['no file', () => ['db.example.org='], '--ca takes HOST=FILE'],
    ['every host', (file: string) => [`*=${file}`], 'must be a host name'],
    ['hosts by a pattern', (file: string) => [`*.example.org=${file}`], 'must be a host name'],
    ['a name that ends in a dot', (file: string) => [`db.example.org.=${file}`], 'must be a host name'],
    ['a name that is not ASCII', (file: string) => [`bücher.example=${file}`], 'must be a host name'],
    ['a name with a port', (file: string) => [`db.example.org:5432=${file}`], 'must be a host name'],
    ['an address', (file: string) => [`127.0.0.1=${file}`], 'is an IP address'],
    ['what resolvers take for an address', (file: string) => [`0x7f.1=${file}`], 'ends in a number'],
    ['a host twice', (file: string) => [`a.example=${file}`, `A.example=${file}`], 'names the host a.example twice'],
    [
      'more than 16 hosts',
      (file: string) => Array.from({ length: 17 }, (_, at) => `h${at}.example=${file}`),
      'more than 16 hosts',
    ],
  ])('refuses %s', (_, given, reason) => {
    const { cert } = makeCertificate(folder, 'given');
    expect(() => readAuthorities(given(cert))).toThrow(reason);
  });

  it('refuses two files of one name', () => {
    const { cert } = makeCertificate(folder, 'same');
    mkdirSync(join(folder, 'deeper'));
    const other = makeCertificate(join(folder, 'deeper'), 'same').cert;
    expect(() => readAuthorities([`a.example=${cert}`, `b.example=${other}`])).toThrow('have the same name');
  });

  it('refuses a file without certificates, with too many, one that cannot be read, a certificate of no authority', () => {
    const read = (content: string | Buffer) => () => readAuthorities([`db.example.org=${fileWith('a.pem', content)}`]);
    expect(read('nothing')).toThrow('--ca a.pem has no certificate in PEM');
    const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
    expect(read(broken)).toThrow('--ca a.pem: certificate 1 cannot be read');
    expect(read(broken.repeat(65))).toThrow('--ca a.pem has more than 64 certificates');
    const leaf = signingPair({ authority: false }).certificatePem;
    expect(read(leaf)).toThrow('--ca a.pem: certificate 1 is not of a certificate authority');
  });
});
