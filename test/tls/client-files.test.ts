// The files that say who is known: authorities, and Web3Signer's list of clients. What is not understood is refused,
// with its place.

import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_KNOWN_CLIENT_LINES, parseKnownClients, readKnownClientsFile } from '../../service/known-clients.ts';
import { MAX_CLIENT_CAS, parseClientCa } from '../../signer/tls/client-ca.ts';
import { commonNamesOf, readClientCertificate } from '../../signer/tls/client-certificate.ts';
import { makeCertificate } from '../support/certificates.ts';
import { Authority, issueSelfSigned } from '../support/client-certificates.ts';

const HEX = 'ab'.repeat(32);

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'client-files-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('a file of known clients', () => {
  it('has a name and a fingerprint a line, comments and empty lines', () => {
    const colons = 'CD'.repeat(32).match(/../g)?.join(':');
    const text = `# clients\n\n  teku ${HEX}\r\nssv\t${colons}\nteku ${HEX}\n`;
    expect(parseKnownClients(text, 'F')).toEqual([
      { commonName: 'teku', fingerprint: HEX },
      { commonName: 'ssv', fingerprint: 'cd'.repeat(32) },
    ]);
  });

  it.each([
    ['a fingerprint alone', HEX],
    ['a name alone', 'teku'],
    ['a shorter digest', `teku ${HEX.slice(2)}`],
    ['colons here and there', `teku ab:${HEX.slice(2)}`],
    ['a third word', `teku ${HEX} x`],
    ['a name that needs escapes', `te+ku ${HEX}`],
  ])('with %s is refused, with the line', (_what, line) => {
    expect(() => parseKnownClients(`ok ${'01'.repeat(32)}\n${line}\n`, 'F')).toThrow(
      'tls.known_clients: F line 2 is not',
    );
  });

  it('with one fingerprint of two names is refused: one certificate cannot be both', () => {
    expect(() => parseKnownClients(`a ${HEX}\nb ${HEX}`, 'F')).toThrow('F line 2 has the fingerprint of another name');
  });

  it('is bounded', () => {
    const lines = (count: number) =>
      Array.from({ length: count }, (_, index) => `n ${index.toString(16).padStart(64, '0')}`).join('\n');
    expect(parseKnownClients(lines(MAX_KNOWN_CLIENT_LINES), 'F')).toHaveLength(MAX_KNOWN_CLIENT_LINES);
    expect(() => parseKnownClients(lines(MAX_KNOWN_CLIENT_LINES + 1), 'F')).toThrow('is one more than');
  });

  it('that is not there is named', () => {
    expect(() => readKnownClientsFile(join(folder, 'none'))).toThrow(
      /^tls.known_clients: .*none cannot be read \(ENOENT\)/,
    );
  });
});

describe('a file of authorities', () => {
  it('may hold several, and says when the first of them ends', async () => {
    const [first, second] = [await Authority.root('first'), await Authority.root('second')];
    const { pem, notAfter } = parseClientCa(Buffer.from(`text\n${first.pem}\n${second.pem}\n`));
    expect(pem.toString()).toContain(second.pem);
    const ends = [first, second].map((one) => Date.parse(new X509Certificate(one.pem).validTo));
    expect(Date.parse(notAfter)).toBe(Math.min(...ends));
  });

  it('holds every authority above, because a chain that ends below its root vouches for nobody', async () => {
    const root = await Authority.root('root');
    const site = await root.intermediate('site');
    expect(parseClientCa(Buffer.from(`${site.pem}\n${root.pem}`)).pem.toString()).toContain(site.pem);
    expect(() => parseClientCa(Buffer.from(site.pem))).toThrow('holds certificate 1 without the authority above it');
    const other = await Authority.root('root');
    expect(() => parseClientCa(Buffer.from(`${other.pem}\n${site.pem}`))).toThrow('holds certificate 2 without');
  });

  it('refuses what is none', async () => {
    const { pem } = await Authority.root('first');
    const { cert } = await issueSelfSigned('CN=client');
    const of = (text: string) => () => parseClientCa(Buffer.from(text));
    expect(of('')).toThrow('does not hold a PEM certificate');
    expect(of(`${pem}\n${cert}`)).toThrow('holds as certificate 2 one that is no authority');
    expect(of('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----')).toThrow(
      'something else than a certificate',
    );
    expect(of(`${pem}\n`.repeat(MAX_CLIENT_CAS + 1))).toThrow('holds more than');
  });
});

describe('the subject of a certificate', () => {
  const read = (pem: string | Buffer) =>
    readClientCertificate(new X509Certificate(pem), { now: Date.now, isTrusted: () => false });

  it('is as openssl prints it in RFC 4514 order, also where a value looks like a name', async () => {
    const { cert } = await issueSelfSigned('C=CH, O="Ex, CN=root + Co", CN=teku+OU=site');
    const certificate = read(cert);
    expect(certificate.subject).toBe('OU=site+CN=teku,O=Ex\\, CN=root \\+ Co,C=CH');
    expect(commonNamesOf(certificate)).toEqual(['teku']);
  });

  it('is empty where there is none', () => {
    expect(commonNamesOf({ subject: '' })).toEqual([]);
    expect(read(readFileSync(makeCertificate(folder, 'plain').cert)).subject).toBe('CN=plain');
  });
});
