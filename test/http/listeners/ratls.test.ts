// The RA-TLS listener with real TLS clients over Unix sockets: who gets in, with what evidence, and what happens to
// everybody else.

import { once } from 'node:events';
import http from 'node:http';
import { describe, expect, it } from 'vitest';
import { closeGracefully } from '../../../signer/http/listeners/listen.ts';
import { connectRatls, handshake, proxyHeaderFrom, RATLS_PORT } from '../../support/ratls-client.ts';
import { FREE_TOKEN } from '../../support/ratls-signer.ts';
import { closed } from '../../support/streams.ts';
import {
  certificateOf,
  connectionsAre,
  connectRaw,
  HOUR,
  refusals,
  restart,
  sendsAndIsCutOff,
  signer,
  verdictOn,
} from './ratls-set-up.ts';

/** That the signer cut it off is told as this or that error, by how far it was. */
async function isCutOff(attempt: Promise<unknown>): Promise<void> {
  await expect(attempt).rejects.toMatchObject({ code: expect.stringMatching(/^(ECONNRESET|EPIPE|ERR_STREAM_.*)$/) });
}

describe('a client of the RA-TLS listener', () => {
  it('gets TLS 1.3 and a certificate whose evidence is authentic, expected and of this very key', async () => {
    const client = await connectRatls(signer.parent);
    expect(client.socket.getProtocol()).toBe('TLSv1.3');
    expect(client.socket.alpnProtocol).toBe('http/1.1');
    expect(verdictOn(client.certificate)).toMatchObject({ authentic: true, expected: true });
    const answer = await client.get('/upcheck');
    expect([answer.status, answer.body.toString()]).toEqual([200, 'OK']);
    await client.close();
    await connectionsAre(0);
    expect(signer.refused).toEqual([]);
  });

  it('with TLS 1.2 gets none', async () => {
    const raw = await signer.parent.connect(RATLS_PORT);
    raw.write(proxyHeaderFrom('203.0.113.7'));
    const old = handshake(raw, { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' });
    await expect(old).rejects.toMatchObject({ code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' });
    await connectionsAre(0);
    expect(refusals('handshake')).toBe(1);
  });

  it('that speaks only another protocol than HTTP/1.1 gets none', async () => {
    const raw = await signer.parent.connect(RATLS_PORT);
    raw.write(proxyHeaderFrom('203.0.113.7'));
    await expect(handshake(raw, { ALPNProtocols: ['h2'] })).rejects.toThrow(/alert no application protocol/);
    await connectionsAre(0);
    expect(refusals('handshake')).toBe(1);
  });

  it('never resumes a session: each connection shows its evidence', async () => {
    const first = await connectRatls(signer.parent);
    const sessions: Buffer[] = [];
    first.socket.on('session', (session) => sessions.push(session));
    await first.get('/upcheck');
    await first.get('/upcheck');
    await first.close();
    expect(sessions.length).toBeGreaterThan(0); // OpenSSL names a session even where none is kept
    for (const session of sessions) {
      const again = await connectRatls(signer.parent, { tls: { session } });
      expect(again.socket.isSessionReused()).toBe(false);
      expect(again.certificate).toEqual(first.certificate);
      await again.close();
    }
  });
});

describe('rotation', () => {
  it('shows new connections a new key, and drops none that is open', async () => {
    const before = await connectRatls(signer.parent);
    await before.get('/upcheck');
    signer.clock.advance(HOUR);
    await signer.rotate();
    const after = await connectRatls(signer.parent);
    expect(after.certificate.equals(before.certificate)).toBe(false);
    expect(verdictOn(after.certificate)).toMatchObject({ authentic: true, expected: true });
    expect((await before.get('/upcheck')).status).toBe(200);
    expect(signer.listener.connections()).toBe(2);
    await Promise.all([before.close(), after.close()]);
  });

  it('in the middle of a handshake does not break it', async () => {
    const raw = await signer.parent.connect(RATLS_PORT);
    raw.write(proxyHeaderFrom('203.0.113.7'));
    await connectionsAre(1);
    await signer.rotate();
    const socket = await handshake(raw);
    expect(verdictOn(certificateOf(socket))).toMatchObject({ authentic: true });
    socket.destroy();
  });

  it('that fails leaves the identity in force until its evidence ends, and then no new connection', async () => {
    const open = await connectRatls(signer.parent);
    await open.get('/upcheck');
    signer.device = () => Promise.reject(Object.assign(new Error('gone'), { code: 'EIO' }));
    signer.clock.advance(2 * HOUR);
    await signer.rotate();
    const still = await connectRatls(signer.parent);
    expect(verdictOn(still.certificate)).toMatchObject({ authentic: true });
    await still.close();

    signer.clock.advance(HOUR);
    await isCutOff(connectRatls(signer.parent));
    expect(refusals('no_evidence')).toBe(1);
    expect((await open.get('/upcheck')).status).toBe(200);
    await open.close();

    signer.device = undefined;
    await signer.rotate();
    const again = await connectRatls(signer.parent);
    expect(verdictOn(again.certificate)).toMatchObject({ authentic: true, expected: true });
    await again.close();
  });
});

describe('a handshake', () => {
  it('that does not end in time is cut off', async () => {
    await restart({ limits: { handshakeTimeoutMs: 1 } });
    await sendsAndIsCutOff(proxyHeaderFrom('203.0.113.7'));
    await connectionsAre(0);
    expect(signer.refused).toEqual(['handshake']);
  });

  it('with garbage is refused', async () => {
    const raw = await connectRaw();
    raw.resume();
    raw.write(Buffer.concat([proxyHeaderFrom('203.0.113.7'), Buffer.from('GET /upcheck HTTP/1.1\r\nHost: x\r\n\r\n')]));
    await once(raw, 'close');
    await connectionsAre(0);
    expect(signer.refused).toEqual(['handshake']);
  });

  it('whose client stops sending is ended', async () => {
    const raw = await signer.parent.connect(RATLS_PORT);
    raw.resume();
    raw.end(proxyHeaderFrom('203.0.113.7'));
    await once(raw, 'close');
    await connectionsAre(0);
    expect(signer.refused).toEqual(['handshake']);
  });
});

describe('the limit of connections', () => {
  it('cuts off the next one at once, for 2,000 of them, and serves those it has admitted', async () => {
    await restart({ maxConnections: 2 });
    const [first, second] = [await connectRatls(signer.parent), await connectRatls(signer.parent)];
    const authorization = `Bearer ${FREE_TOKEN}`;
    for (const one of [first, second])
      expect((await one.get('/api/v1/eth2/highWatermark', { authorization })).status).toBe(200);
    const attempts = Array.from({ length: 20 }, async () => {
      for (let round = 0; round < 100; round++) await sendsAndIsCutOff();
    });
    await Promise.all(attempts);
    expect(refusals('limit')).toBe(2000);
    expect(signer.listener.connections()).toBe(2);
    expect((await first.get('/upcheck')).status).toBe(200);
    await second.close();
    await connectionsAre(1);
    const third = await connectRatls(signer.parent);
    expect((await third.get('/upcheck')).status).toBe(200);
    await Promise.all([first.close(), third.close()]);
  });

  it('counts connections that have not got as far as TLS', async () => {
    await restart({ maxConnections: 1 });
    const silent = (await connectRaw()).resume();
    await connectionsAre(1);
    const next = await connectRatls(signer.parent);
    await closed(silent);
    expect((await next.get('/upcheck')).status).toBe(200);
    expect(refusals('displaced')).toBe(1);
    await next.close();
  });
});

describe('requests over RA-TLS', () => {
  it.each([
    ['do not end', 'GET /upcheck HTTP/1.1\r\nHost: x\r\n'],
    ['do not begin', ''],
  ])('whose headers %s are cut off, as on any other listener', async (_what, text) => {
    await restart({ limits: { headersTimeoutMs: 1 } });
    const client = await connectRatls(signer.parent);
    client.socket.on('error', () => undefined).resume();
    if (text !== '') client.socket.write(text);
    await expect.poll(() => signer.listener.connections()).toBe(0);
    client.socket.destroy();
  });

  it('that are cut off so are over also for a client that does not hang up', async () => {
    await restart({ limits: { headersTimeoutMs: 1000 } });
    const raw = await signer.parent.connect(RATLS_PORT);
    raw.write(proxyHeaderFrom('203.0.113.7'));
    const socket = await handshake(raw); // half-open, as every stream of the transport
    socket.resume().write('GET /upcheck HTTP/1.1\r\n');
    await once(socket, 'end');
    expect(socket.writable).toBe(true);
    await expect.poll(() => signer.listener.connections()).toBe(0);
    socket.destroy();
  });

  it('that are not HTTP are answered in the shape of every other error', async () => {
    const client = await connectRatls(signer.parent);
    client.socket.write('\0\0\0\r\n\r\n');
    const answer = Buffer.concat(await Array.fromAsync(client.socket as AsyncIterable<Buffer>)).toString();
    expect(answer).toMatch(/^HTTP\/1\.1 400 .*"reason":"malformed_request"/s);
    await connectionsAre(0);
  });
});

describe('closing', () => {
  it('ends what is idle and what is not HTTP yet, and takes nobody new', async () => {
    const idle = await connectRatls(signer.parent);
    await idle.get('/upcheck');
    const silent = await signer.parent.connect(RATLS_PORT);
    silent.on('error', () => undefined).resume();
    await connectionsAre(2);
    expect(await closeGracefully([signer.listener], 60)).toBe(true);
    expect(signer.listener.connections()).toBe(0);
    await expect(signer.parent.connect(RATLS_PORT)).rejects.toMatchObject({ code: 'ECONNRESET' });
  });

  it('waits for a request that is under way', async () => {
    const client = await connectRatls(signer.parent);
    const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    signer.device = async (request) => {
      onAsked();
      await held;
      return signer.emulator.exchange(request);
    };
    const answer = client.get(`/api/v1/attestation?nonce=${'00'.repeat(16)}`);
    await asked;
    const ended = closeGracefully([signer.listener], 60);
    release();
    expect((await answer).status).toBe(200);
    expect(await ended).toBe(true);
  });

  it('cuts what is open when the time is over', async () => {
    const client = await connectRatls(signer.parent);
    const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
    signer.device = () => {
      onAsked();
      return new Promise(() => undefined);
    };
    const answer = isCutOff(client.get(`/api/v1/attestation?nonce=${'00'.repeat(16)}`));
    await asked;
    expect(await closeGracefully([signer.listener], 0)).toBe(false);
    await answer;
  });
});

it('the plain routes of an HTTP server are not there without TLS', async () => {
  const raw = await signer.parent.connect(RATLS_PORT);
  const agent = new http.Agent();
  agent.createConnection = () => raw;
  const request = http.get({ agent, path: '/upcheck', host: 'signer' });
  await expect(once(request, 'response')).rejects.toMatchObject({ code: 'ECONNRESET' });
  await connectionsAre(0);
  expect(signer.refused).toEqual(['proxy_header']);
});
