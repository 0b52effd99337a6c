// Evidence that is refused: each refusal has its code and its exit code, and neither the request nor the token has
// arrived.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { keyBinding } from '../../common/attestation/contract.ts';
import { createNsm } from '../../enclave/nsm/client.ts';
import { createAttestedCertificate, generateCertificateKey, privateKeyPem } from '../../enclave/ratls/identity.ts';
import { createNsmEmulator, testPcr } from '../../rehearsal/nsm/emulator.ts';
import { createNsmPki } from '../../rehearsal/nsm/pki.ts';
import { makeCertificate } from '../support/certificates.ts';
import {
  expectRefusal,
  expectUntouched,
  folder,
  HOUR_MS,
  KNOWN,
  OTHER,
  pki,
  start,
  startEnclave,
  status,
} from './attested-set-up.ts';
import { honestRoute, makeEnclave, type RatlsServer } from './ratls-server.ts';

describe('evidence that is not authentic: exit 5', () => {
  it('a plain self-signed certificate, whoever trusts it', async () => {
    const { cert, key } = makeCertificate(folder, 'plain');
    const { nonceRoute } = await makeEnclave({ pki });
    const plain = { cert: readFileSync(cert, 'utf8'), key: readFileSync(key), spki: Buffer.alloc(0) };
    await expectRefusal(await start(plain, nonceRoute), 5, 'no_evidence');
  });

  it('nor over TLS 1.2, which binds no document to a connection: exit 2, before any evidence', async () => {
    const { identity } = await makeEnclave({ pki });
    const old = createTlsServer({ cert: identity.cert, key: identity.key, maxVersion: 'TLSv1.2' });
    old.on('tlsClientError', () => undefined).listen(0, '127.0.0.1');
    await once(old, 'listening');
    const url = `https://127.0.0.1:${(old.address() as AddressInfo).port}`;
    const { code, stderr } = await status({ url }, KNOWN);
    expect(stderr).toContain('it does not speak the version of TLS that is needed');
    expect(code).toBe(2);
    old.close();
  });

  it('another root', async () => {
    await expectRefusal(await startEnclave({ pki: await createNsmPki() }), 5, 'untrusted_root');
  });

  it('an old document', async () => {
    const server = await startEnclave({ timestamp: Date.now() - 2 * HOUR_MS });
    await expectRefusal(server, 5, 'stale', `${KNOWN} --max-age 3600`);
    // Old enough to be shown in a certificate, too old for an answer.
    await expectRefusal(server, 5, 'stale');
  });

  it("a certificate whose evidence's chain has ended", async () => {
    const then = Date.now() - 4 * HOUR_MS;
    const { identity } = await makeEnclave({
      pki: await createNsmPki({ at: then, root: pki.root }),
      clock: { now: () => then },
    });
    const { nonceRoute } = await makeEnclave({ pki });
    await expectRefusal(await start(identity, nonceRoute), 5, 'expired');
  });

  it('a document of another key, in a certificate of a thief', async () => {
    const { identity, nonceRoute } = await makeEnclave({ pki });
    const key = await generateCertificateKey();
    const validity = { notBefore: Date.now() - HOUR_MS, notAfter: Date.now() + HOUR_MS };
    const cert = await createAttestedCertificate({ key, document: identity.document, ...validity });
    const thief = { cert, key: privateKeyPem(key), spki: key.spki };
    await expectRefusal(await start(thief, nonceRoute), 5, 'wrong_key');
  });

  it('a fresh document of another key', async () => {
    const { identity } = await makeEnclave({ pki });
    const { nonceRoute } = await makeEnclave({ pki });
    await expectRefusal(await start(identity, nonceRoute), 5, 'wrong_key');
  });

  it('a replayed nonce: a document of an earlier connection', async () => {
    const { identity, nonceRoute } = await makeEnclave({ pki });
    let kept: Buffer | undefined;
    const server = await start(identity, async (nonce, socket) => {
      kept ??= (await nonceRoute(nonce, socket)) as Buffer;
      return kept;
    });
    expect((await status(server)).code).toBe(0);
    const again = await start(identity, async () => kept ?? 500);
    await expectRefusal(again, 5, 'relayed');
  });

  it('a relayed connection: the document is fresh and of the right key, and of another connection', async () => {
    const { identity, nonceRoute } = await makeEnclave({ pki });
    const enclave = await start(identity, nonceRoute);
    // Whoever has the key asks the enclave over a connection of its own.
    const relay = await start(identity, (nonce) => askEnclave(enclave, nonce));
    await expectRefusal(relay, 5, 'relayed');
    expect(enclave.connections).toHaveLength(1);
  });

  it('a fresh document without a nonce, and none at all', async () => {
    const { identity, nsm } = await makeEnclave({ pki });
    const bare = await start(identity, () => nsm.attest({ userData: keyBinding(identity.spki) }));
    await expectRefusal(bare, 5, 'relayed');
    const nothing = await start(identity, async () => Buffer.from('OK'));
    await expectRefusal(nothing, 5, 'malformed_document');
    const absent = await start(identity, async () => 404);
    expect(await status(absent)).toMatchObject({ code: 2, stdout: '' });
    expectUntouched(absent);
    const endless = await start(identity, async () => Buffer.alloc(1 << 20));
    expect(await status(endless)).toMatchObject({ code: 2, stdout: '' });
    expectUntouched(endless);
  });
});

describe('authentic evidence of somebody else: exit 6', () => {
  it('another image', async () => {
    const server = await startEnclave();
    const { stderr } = await expectRefusal(
      server,
      6,
      'wrong_pcr',
      `--pcr 0=${OTHER} --pcr 8=${OTHER} --any-configuration`,
    );
    expect(stderr).toContain(`wrong_pcr: PCR0 is ${testPcr(0).toString('hex')}, expected ${OTHER}`);
    expect(stderr).toContain('wrong_pcr: PCR8 is');
    // Not even the nonce route was asked: the certificate was enough.
    expect(server.bytes()).toBe('');
  });

  it('a debug image', async () => {
    await expectRefusal(await startEnclave({ debugMode: true }), 6, 'debug');
  });

  it('a certificate of the right image in front of another one', async () => {
    const { identity } = await makeEnclave({ pki });
    const other = createNsm((await createNsmEmulator({ pki, pcrs: { 0: Buffer.alloc(48, 9) } })).exchange);
    const server = await start(identity, honestRoute(other, identity));
    await expectRefusal(server, 6, 'wrong_pcr');
  });
});

/** Over a connection of its own, whose peer is not verified. */
async function askEnclave(enclave: RatlsServer, nonce: Buffer): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const url = `${enclave.url}/api/v1/attestation?nonce=${nonce.toString('hex')}`;
  request(url, { rejectUnauthorized: false }, async (response) => resolve(Buffer.concat(await response.toArray())))
    .on('error', reject)
    .end();
  return promise;
}
