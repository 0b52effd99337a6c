// TLS on the way to the signer: whose certificates the CLI trusts, which name it compares, and that nothing in the
// environment changes that.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeCertificate, makeExpiredCertificate } from '../support/certificates.ts';
import { cannedSigner } from './canned-signer.ts';
import { folder, openssl, operator, start, startWithTls } from './connection-set-up.ts';

describe('TLS', () => {
  it('a self-signed certificate is trusted when it is named, and only then', async () => {
    const { url, received } = await startWithTls('named');
    const trusted = await operator(`status --signer-url ${url} --tls-ca named.crt`);
    expect(trusted).toMatchObject({ code: 0, stderr: '' });
    expect(received).toHaveLength(1);
    const untrusted = await operator(`status --signer-url ${url}`);
    expect(untrusted.code).toBe(2);
    expect(untrusted.stderr).toContain('its certificate is self-signed and not trusted');
    expect(untrusted.stderr).toContain('--tls-ca FILE');
    expect(received).toHaveLength(1);
  });

  it('nothing in the environment switches the verification off', async () => {
    const { url, received } = await startWithTls('environment');
    const { code, stderr } = await operator(`status --signer-url ${url}`, { NODE_TLS_REJECT_UNAUTHORIZED: '0' });
    expect(code).toBe(2);
    expect(stderr).toContain('not trusted');
    expect(received).toEqual([]);
  });

  it('the authorities of --tls-ca replace the public ones; another certificate is not enough', async () => {
    const { url, received } = await startWithTls('one');
    makeCertificate(folder, 'another');
    const { code } = await operator(`status --signer-url ${url} --tls-ca another.crt`);
    expect(code).toBe(2);
    expect(received).toEqual([]);
  });

  it('the name in the certificate is compared with the URL, or with --tls-server-name', async () => {
    const { url, received } = await startWithTls('names');
    const byAddress = url.replace('localhost', '127.0.0.1');
    const other = await operator(`status --signer-url ${url} --tls-ca names.crt --tls-server-name signer.example`);
    expect(other.code).toBe(2);
    expect(other.stderr).toContain(
      'its certificate is for DNS:localhost, IP Address:127.0.0.1, not for signer.example',
    );
    expect(received).toEqual([]);
    for (const args of [byAddress, `${byAddress} --tls-server-name localhost`]) {
      expect((await operator(`status --signer-url ${args} --tls-ca names.crt`)).code).toBe(0);
    }
  });

  it('an address as --tls-server-name is compared like a name, and no token goes to another one', async () => {
    const { url, received } = await startWithTls('addresses');
    for (const address of ['203.0.113.9', '2001:db8::9']) {
      const other = await operator(`status --signer-url ${url} --tls-ca addresses.crt --tls-server-name ${address}`);
      expect(other.stderr).toContain(`its certificate is for DNS:localhost, IP Address:127.0.0.1, not for ${address}`);
      expect(other.code).toBe(2);
    }
    expect(received).toEqual([]);
    const same = await operator(`status --signer-url ${url} --tls-ca addresses.crt --tls-server-name 127.0.0.1`);
    expect(same.code).toBe(0);
  });

  it('a certificate of an authority of its own, and one that has expired', async () => {
    openssl(
      'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test-authority -keyout ca.key -out ca.crt',
    );
    openssl(
      'req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=leaf -keyout leaf.key -out leaf.csr',
    );
    writeFileSync(join(folder, 'leaf.ext'), 'subjectAltName=DNS:localhost\n');
    openssl('x509 -req -in leaf.csr -CA ca.crt -CAkey ca.key -extfile leaf.ext -set_serial 1 -days 2 -out leaf.crt');
    const good = await start(cannedSigner, { cert: join(folder, 'leaf.crt'), key: join(folder, 'leaf.key') });
    expect((await operator(`status --signer-url ${good.url} --tls-ca ca.crt`)).code).toBe(0);
    const unknown = await operator(`status --signer-url ${good.url}`);
    expect(unknown.stderr).toContain('its certificate is not signed by a trusted authority');
    const expired = await start(cannedSigner, await makeExpiredCertificate(folder, 'expired'));
    const { code, stderr } = await operator(`status --signer-url ${expired.url} --tls-ca expired.crt`);
    expect(code).toBe(2);
    expect(stderr).toContain('its certificate has expired');
    expect(expired.received).toEqual([]);
  });

  it('plain HTTP at a TLS URL and TLS at a plain one are told apart', async () => {
    const plain = await start(cannedSigner);
    const tls = await startWithTls('both');
    const toPlain = await operator(`status --signer-url ${plain.url.replace('http:', 'https:')}`);
    expect(toPlain.stderr).toContain('it does not speak TLS at this port');
    const toTls = await operator(`status --signer-url ${tls.url.replace('https:', 'http:')} --allow-plaintext-signer`);
    expect([toPlain.code, toTls.code]).toEqual([2, 2]);
  });
});
