// Documents for one connection: fresh, bound to that connection by its TLS exporter and to the certificate it was
// served with. Whoever relays one gets nothing that verifies.

import { randomBytes, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls, { type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connectionNonce, EXPORTER_BYTES, EXPORTER_LABEL, keyBinding } from '../../common/attestation/contract.ts';
import { type EvidenceVerdict, verifyDocument } from '../../common/attestation/verify.ts';
import { testPcr } from '../../rehearsal/nsm/emulator.ts';
import { makeCertificate } from '../support/certificates.ts';
import { connectRatls, handshake, proxyHeaderFrom, RATLS_PORT, type RatlsClient } from '../support/ratls-client.ts';
import { type RatlsSigner, startRatlsSigner } from '../support/ratls-signer.ts';

const PATH = '/api/v1/attestation';
const NO_CONTEXT = Buffer.alloc(0);

let signer: RatlsSigner;
let client: RatlsClient;
let nonce: Buffer;

beforeEach(async () => {
  signer = await startRatlsSigner();
  client = await connectRatls(signer.parent);
  nonce = randomBytes(32);
});

afterEach(async () => {
  await client.close();
  await signer.close();
});

function ask(value: string = nonce.toString('hex')) {
  return client.get(`${PATH}?nonce=${value}`);
}

function exporterOf(socket: TLSSocket): Buffer {
  return socket.exportKeyingMaterial(EXPORTER_BYTES, EXPORTER_LABEL, NO_CONTEXT);
}

/** As a client judges a document: by its own end of the connection, and the key it was shown. */
function verify(document: Buffer, exported: Buffer, certificate: Buffer): EvidenceVerdict {
  const spki = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' });
  return verifyDocument(document, {
    provider: { name: 'test', rootSha256: signer.emulator.rootFingerprint },
    at: signer.clock.now(),
    maxAgeSeconds: 60,
    nonce: connectionNonce(nonce, exported),
    expectedUserData: keyBinding(spki),
    referenceValues: new Map([[0, [testPcr(0).toString('hex')]]]),
  });
}

describe('a document asked for over RA-TLS', () => {
  it('is fresh, and of this connection and the certificate it was served with; nobody has to say who he is', async () => {
    signer.clock.advance(600);
    const answer = await ask();
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      'content-type': 'application/aws-nitro-document',
      'cache-control': 'no-store',
    });
    expect(verify(answer.body, exporterOf(client.socket), client.certificate)).toMatchObject({
      authentic: true,
      expected: true,
    });
  });

  it('is of the certificate that the connection was served with, also after a rotation', async () => {
    await signer.rotate();
    const { body } = await ask();
    expect(verify(body, exporterOf(client.socket), client.certificate)).toMatchObject({
      authentic: true,
      expected: true,
    });
  });

  it('does not verify for another connection of the same client', async () => {
    const { body } = await ask();
    const other = await connectRatls(signer.parent);
    const verdict = verify(body, exporterOf(other.socket), other.certificate);
    expect(verdict).toMatchObject({ authentic: false, failures: [{ code: 'nonce_mismatch' }] });
    await other.close();
  });

  it('does not verify behind a relay, which ends TLS itself and asks in its own name', async () => {
    const relay = await startRelay();
    const victim = await handshake(relay.connect());
    const certificate = victim.getPeerX509Certificate()?.raw ?? Buffer.alloc(0);
    const exported = exporterOf(victim);
    victim.write(nonce);
    const document = Buffer.concat(await Array.fromAsync(victim as AsyncIterable<Buffer>));
    expect(verify(document, exporterOf(client.socket), client.certificate)).toMatchObject({
      authentic: true,
      expected: true,
    });
    expect(verify(document, exported, certificate)).toMatchObject({
      authentic: false,
      failures: [{ code: 'nonce_mismatch' }],
    });
    await relay.close();
  });

  /** Shows a certificate of its own, takes a nonce and hands back the document that the signer gives it for that. */
  async function startRelay() {
    const folder = mkdtempSync(join(tmpdir(), 'relay-'));
    const files = makeCertificate(folder, 'relay');
    const server = tls.createServer({ cert: readFileSync(files.cert), key: readFileSync(files.key) }, (victim) => {
      victim.once('data', (asked: Buffer) => void ask(asked.toString('hex')).then(({ body }) => victim.end(body)));
    });
    const path = join(folder, 'relay.sock');
    server.listen(path);
    await once(server, 'listening');
    return {
      connect: () => connect(path),
      async close() {
        server.close();
        await once(server, 'close');
        rmSync(folder, { recursive: true });
      },
    };
  }
});

describe('who asks wrongly', () => {
  it.each([
    ['no nonce', PATH],
    ['an empty one', `${PATH}?nonce=`],
    ['15 bytes', `${PATH}?nonce=${'00'.repeat(15)}`],
    ['65 bytes', `${PATH}?nonce=${'00'.repeat(65)}`],
    ['half a byte too many', `${PATH}?nonce=${'00'.repeat(16)}0`],
    ['what is not hex', `${PATH}?nonce=${'0g'.repeat(16)}`],
    ['a prefix', `${PATH}?nonce=0x${'00'.repeat(16)}`],
    ['two nonces', `${PATH}?nonce=${'00'.repeat(16)}&nonce=${'00'.repeat(16)}`],
  ])('with %s gets 400, and the NSM is not asked', async (_what, path) => {
    const asked = signer.emulator.operations.length;
    const answer = await client.get(path);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body.toString())).toMatchObject({
      reason: 'malformed_parameter',
      message: expect.stringContaining('16 to 64 bytes in hex'),
    });
    expect(signer.emulator.operations).toHaveLength(asked);
  });

  it('on another listener gets 404', async () => {
    const answer = await signer.app.inject(`${PATH}?nonce=${'00'.repeat(32)}`);
    expect(answer.statusCode).toBe(404);
    expect(answer.json()).toMatchObject({ reason: 'not_found', message: expect.stringContaining('RA-TLS') });
  });

  it.each([16, 64])('may choose %i bytes', async (length) => {
    nonce = randomBytes(length);
    const answer = await ask(nonce.toString('hex').toUpperCase());
    expect(verify(answer.body, exporterOf(client.socket), client.certificate)).toMatchObject({ authentic: true });
  });
});

it('asked for by who went away before it was his turn is nobody’s fault', async () => {
  const first = 'POST / HTTP/1.1\r\nHost: signer\r\nExpect: nonsense\r\nContent-Length: 2\r\n\r\n{}';
  const second = `GET ${PATH}?nonce=${nonce.toString('hex')} HTTP/1.1\r\nHost: signer\r\n\r\n`;
  for (let turns = 0; turns < 10; turns++) {
    const raw = await signer.parent.connect(RATLS_PORT);
    raw.write(proxyHeaderFrom('203.0.113.7'));
    const leaving = await handshake(raw);
    leaving.write(first + second);
    for (let turn = 0; turn < turns % 5; turn++) await new Promise(setImmediate); // now or a little later
    leaving.destroy();
  }
  await expect.poll(() => signer.listener.connections()).toBe(1);
  expect(signer.log.lines.filter(({ level }) => level === 'error')).toEqual([]);
});

describe('the NSM', () => {
  it('is asked for two at a time; who loops from two addresses delays the others by one turn each, and refuses nobody', async () => {
    const { calls, step } = holdDevice();
    const loops = await Promise.all(
      [...Array(14)].map((_, at) => connectRatls(signer.parent, { from: `198.51.100.${at % 2}` })),
    );
    const greedy = loops.map((each) => askOver(each));
    await expect.poll(() => calls()).toBe(2);
    const honest = await Promise.all(
      [...Array(10)].map((_, at) => connectRatls(signer.parent, { from: `203.0.113.${at}` })),
    );
    let answered = 0;
    const asked = honest.map((each) => askOver(each).finally(() => (answered += 1)));
    await expect.poll(() => signer.attestationsWaiting()).toBe(22);
    expect(calls()).toBe(2);
    for (let turn = 0; turn < 14; turn++) await step();
    await expect.poll(() => answered).toBe(10);
    expect(signer.attestationsWaiting()).toBe(8);
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(Array(10).fill(200));
    for (let turn = 0; turn < 10; turn++) await step();
    expect((await Promise.all(greedy)).every(({ status }) => status === 200)).toBe(true);
    await Promise.all([...loops, ...honest].map((each) => each.close()));
  });

  it('makes four documents for a connection; then 503 closes it, and another connection gets one', async () => {
    for (let made = 0; made < 4; made++) expect((await ask()).status).toBe(200);
    const refused = await ask();
    expect(refused).toMatchObject({ status: 503, headers: { connection: 'close', 'retry-after': '1' } });
    expect(JSON.parse(refused.body.toString())).toMatchObject({
      reason: 'overloaded',
      message: expect.stringContaining('this connection has had its documents: open another one'),
    });
    await client.close();
    client = await connectRatls(signer.parent);
    expect((await ask()).status).toBe(200);
    expect(signer.attestations).toEqual([...Array(4).fill('ok'), 'connection_limit', 'ok']);
  });

  it('does not count against a connection what it was not given', async () => {
    signer.device = () => Promise.reject(new Error('a fault'));
    for (let failed = 0; failed < 6; failed++) expect((await ask()).status).toBe(503);
    signer.device = undefined;
    expect((await ask()).status).toBe(200);
  });

  it('is not asked for who went away while waiting', async () => {
    const { calls, step } = holdDevice();
    const others = await Promise.all([1, 2].map((at) => connectRatls(signer.parent, { from: `198.51.100.${at}` })));
    const first = others.map((each) => askOver(each));
    await expect.poll(() => calls()).toBe(2);
    const leaving = ask().catch(() => undefined);
    await expect.poll(() => signer.attestationsWaiting()).toBe(1);
    await client.close();
    await leaving;
    await expect.poll(() => signer.attestationsWaiting()).toBe(0);
    expect(signer.attestations).toEqual(['client_closed']);
    await step();
    await step();
    await Promise.all(first);
    expect(calls()).toBe(0);
    await Promise.all(others.map((each) => each.close()));
  });

  /** Every call waits for its step. The device has one at a time; the others that run wait before it. */
  function holdDevice() {
    const held: (() => void)[] = [];
    signer.device = async (request) => {
      await new Promise<void>((resolve) => held.push(resolve));
      return signer.emulator.exchange(request);
    };
    return {
      calls: () => signer.attestationsRunning(),
      async step() {
        await expect.poll(() => held.length).toBeGreaterThan(0);
        held.shift()?.();
      },
    };
  }

  function askOver(each: RatlsClient) {
    return each.get(`${PATH}?nonce=${nonce.toString('hex')}`);
  }

  it('that fails is 503 attestation_unavailable, and its words go to the log only', async () => {
    signer.device = () => Promise.reject(Object.assign(new Error('secret detail'), { code: 'EIO' }));
    const answer = await ask();
    expect(answer.status).toBe(503);
    expect(answer.headers['retry-after']).toBe('1');
    expect(JSON.parse(answer.body.toString())).toMatchObject({ reason: 'attestation_unavailable' });
    expect(answer.body.toString()).not.toContain('secret detail');
    expect(JSON.stringify(signer.log.lines)).toContain('secret detail');
  });
});

it('the route is in the OpenAPI document', async () => {
  const document = (await signer.app.inject('/api/openapi.json')).json() as { readonly paths: object };
  expect(document.paths).toHaveProperty([PATH, 'get', 'responses', '200', 'content', 'application/aws-nitro-document']);
  expect(document.paths).toHaveProperty([PATH, 'get', 'parameters', '0', 'name'], 'nonce');
});
