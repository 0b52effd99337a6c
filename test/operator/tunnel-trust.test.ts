// Whom the tunnel speaks to: an enclave that is away is waited for, one that is another gets nothing, and clocks that
// differ are put right.

import { describe, expect, it } from 'vitest';
import { AttestationFailure } from '../../operator/attestation/attestation-failure.ts';
import { createNsmPki } from '../../rehearsal/nsm/pki.ts';
import { ownAddress } from '../support/own-address.ts';
import { makeEnclave } from './ratls-server.ts';
import { ask } from './running-tunnel.ts';
import { dropAll, echo, enclave, freePort, pki, startServer, startTunnel, TOKEN } from './tunnel-set-up.ts';

const HOUR_MS = 3_600_000;
const QUICK = { unverified: { firstMs: 2, mostMs: 10 } };

describe('an enclave that is not there', () => {
  it('is waited for: 503 meanwhile, and served again when it is back', async () => {
    const server = await startServer();
    const tunnel = await startTunnel(server);
    expect((await ask(tunnel, '/')).status).toBe(200);
    await server.close();
    const down = await ask(tunnel, '/');
    expect([502, 503]).toContain(down.status);
    expect(await ask(tunnel, '/')).toMatchObject({ status: 503, json: { reason: 'enclave_unreachable' } });
    const again = tunnel.logged('is verified again');
    await startServer(echo, enclave, Number(new URL(server.url).port));
    await again;
    expect((await ask(tunnel, '/')).status).toBe(200);
  });

  it('is waited for from the start', async () => {
    const port = await freePort();
    const tunnel = await startTunnel({ url: `https://${ownAddress(5)}:${port}` });
    expect(await ask(tunnel, '/')).toMatchObject({ status: 503, json: { reason: 'enclave_unreachable' } });
    const verified = tunnel.logged('is verified again');
    await startServer(echo, enclave, port);
    await verified;
    expect((await ask(tunnel, '/')).status).toBe(200);
  });
});

describe('an enclave that is another one', () => {
  it('from the start: the tunnel never listens, and no token is sent', async () => {
    const server = await startServer(echo, await makeEnclave({ pki, pcrs: { 0: Buffer.alloc(48, 9) } }));
    const tunnel = await startTunnel(server);
    expect(tunnel.url).toBe('');
    expect(await tunnel.ended).toMatchObject({ exitCode: 6, failures: [{ code: 'wrong_pcr', pcr: 0 }] });
    expect(server.bytes()).toBe('');
  });

  it.each([
    ['another image', 6, 'wrong_pcr', () => makeEnclave({ pki, pcrs: { 0: Buffer.alloc(48, 9) } })],
    ['another authority', 5, 'untrusted_root', async () => makeEnclave({ pki: await createNsmPki() })],
  ] as const)(
    'later: %s is refused, and asked again; five times in a row end everything',
    async (_, exitCode, code, make) => {
      const server = await startServer();
      const tunnel = await startTunnel(server, { pauses: QUICK });
      expect((await ask(tunnel, '/')).status).toBe(200);
      server.rotate(await make());
      dropAll(server);
      const before = server.received.length;
      await ask(tunnel, '/secret').catch(() => undefined); // refused, or cut off with the listener
      const failure = await tunnel.ended;
      expect(failure).toBeInstanceOf(AttestationFailure);
      expect(failure).toMatchObject({ exitCode });
      const refusals = tunnel.lines.filter((line) => line.includes('is not verified'));
      expect(refusals.map((line) => /(\d) of 5 in a row/.exec(line)?.[1])).toEqual(['1', '2', '3', '4']);
      expect(refusals[0]).toContain(`(${code}: `);
      expect(server.received).toHaveLength(before);
      await expect(ask(tunnel, '/')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    },
  );

  it('for a moment: what needs a connection is refused meanwhile, nothing is sent, and it is served again', async () => {
    const server = await startServer();
    const tunnel = await startTunnel(server, { pauses: QUICK });
    for (let turn = 0; turn < 4; turn++) {
      const refused = tunnel.logged('1 of 5 in a row');
      server.rotate(await makeEnclave({ pki, pcrs: { 0: Buffer.alloc(48, 9) } }));
      dropAll(server);
      const reply = await ask(tunnel, `/secret/${turn}`);
      expect(reply).toMatchObject({ status: 503, json: { reason: 'enclave_unverified' } });
      await refused;
      const again = tunnel.logged('is verified again');
      server.rotate(enclave);
      await again;
      expect((await ask(tunnel, `/${turn}`)).status).toBe(200);
    }
    expect(server.received.map(({ path }) => path)).toEqual(['/0', '/1', '/2', '/3']);
  });

  it('a rotated certificate of the same image is verified and used', async () => {
    const server = await startServer();
    const tunnel = await startTunnel(server);
    await ask(tunnel, '/');
    const next = await makeEnclave({ pki });
    server.rotate(next);
    dropAll(server);
    expect((await ask(tunnel, '/')).status).toBe(200);
    expect(server.connections).toHaveLength(2);
    expect(server.bytes().match(/GET \/api\/v1\/attestation/g)).toHaveLength(2);
  });

  it('a connection whose evidence has ended is not used again', async () => {
    const server = await startServer();
    let skewMs = 0;
    const tunnel = await startTunnel(server, { pauses: QUICK }, () => Date.now() + skewMs);
    await ask(tunnel, '/');
    skewMs = 4 * HOUR_MS;
    await ask(tunnel, '/late').catch(() => undefined);
    expect(await tunnel.ended).toMatchObject({ exitCode: 5, failures: [{ code: 'expired' }] });
    expect(server.received.map(({ path }) => path)).toEqual(['/']);
  });
});

describe('a clock that is behind', () => {
  it('by five seconds is no reason to refuse, nor by almost five minutes', async () => {
    for (const behindMs of [5000, 290_000]) {
      const tunnel = await startTunnel(await startServer(), {}, () => Date.now() - behindMs);
      expect((await ask(tunnel, '/')).status).toBe(200);
    }
  });

  it('by more is waited for, without end, from the start and later: nothing is sent meanwhile', async () => {
    const server = await startServer();
    let behindMs = 400_000;
    const tunnel = await startTunnel(server, { pauses: QUICK }, () => Date.now() - behindMs);
    const unverified = () => tunnel.lines.filter((line) => /not_yet_valid: .*look at the clocks/.test(line)).length;
    await expect.poll(unverified).toBeGreaterThan(6);
    expect(await ask(tunnel, '/')).toMatchObject({ status: 503, json: { reason: 'enclave_unverified' } });
    expect(server.bytes()).not.toContain(TOKEN);
    const again = tunnel.logged('is verified again');
    behindMs = 0;
    await again;
    expect((await ask(tunnel, '/')).status).toBe(200);
  });
});
