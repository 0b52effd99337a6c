// The two sides of RA-TLS together: the enclave's own listener, behind PROXY headers over the transport of the host,
// and the operator's connections and tunnel in front of it.

import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseRegisters } from '../../common/attestation/reference-file.ts';
import { type AttestedPeer, connectAttested, examine } from '../../operator/connect.ts';
import { testPcr } from '../../rehearsal/nsm/emulator.ts';
import { proxyHeaderFrom, RATLS_PORT } from '../support/ratls-client.ts';
import { FREE_TOKEN, type RatlsSigner, startRatlsSigner } from '../support/ratls-signer.ts';
import { ask, type RunningTunnel, startTunnel } from './running-tunnel.ts';

const KEYS = '/api/v1/eth2/highWatermark';
const PCR0 = `0=${testPcr(0).toString('hex')}`;

let signer: RatlsSigner;
let ingress: Awaited<ReturnType<typeof startIngress>>;

beforeEach(async () => {
  signer = await startRatlsSigner();
  ingress = await startIngress();
});
afterEach(async () => {
  await ingress.close();
  await signer.close();
});

/** As the parent does it: a header with the peer's address, then the peer's bytes. */
async function startIngress() {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    client.on('error', () => undefined);
    void signer.parent.connect(RATLS_PORT).then((socket) => {
      socket.on('error', () => undefined);
      socket.on('close', () => client.destroy());
      client.on('close', () => socket.destroy());
      socket.write(proxyHeaderFrom('203.0.113.7'));
      client.pipe(socket).pipe(client);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `https://127.0.0.1:${(server.address() as { port: number }).port}`,
    async close() {
      server.close();
      await once(server, 'close');
    },
  };
}

function peer(pcr0 = PCR0): AttestedPeer {
  const provider = { name: 'the test authority', rootSha256: signer.emulator.rootFingerprint };
  const attestation = {
    provider,
    referenceValues: parseRegisters([pcr0]),
    maxAgeSeconds: 10_800,
    now: signer.clock.now,
  };
  return { url: new URL(ingress.url), attestation };
}

async function withTunnel(use: (tunnel: RunningTunnel) => Promise<void>): Promise<void> {
  const rootFingerprint = signer.emulator.rootFingerprint;
  const tunnel = await startTunnel({ url: ingress.url, token: FREE_TOKEN, rootFingerprint, now: signer.clock.now });
  try {
    await use(tunnel);
  } finally {
    tunnel.stop();
  }
  expect(await tunnel.ended).toBeUndefined();
}

describe("the enclave's own listener", () => {
  it('attests itself to the operator, in its certificate and for the connection', async () => {
    const ending = new AbortController();
    const { socket, expiresAt } = await connectAttested(peer(), ending.signal);
    expect(expiresAt).toBe(signer.rotation.current()?.expiresAt);
    socket.destroy();
    const evidence = await examine(peer(), ending.signal);
    expect([evidence.certificate.expected, evidence.fresh?.expected]).toEqual([true, true]);
  });

  it('is refused as another image, with the register that differs', async () => {
    const attempt = connectAttested(peer(`0=${'ab'.repeat(48)}`), new AbortController().signal);
    await expect(attempt).rejects.toMatchObject({ exitCode: 6, failures: [{ code: 'wrong_pcr', pcr: 0 }] });
  });

  it('serves validator clients through the tunnel, and goes on through a rotation', async () => {
    await withTunnel(async (tunnel) => {
      const answered = { status: 200, json: {} }; // the token is taken
      expect(await ask(tunnel, KEYS)).toMatchObject(answered);
      const before = signer.rotation.current()?.fingerprint;
      await signer.rotate();
      expect(signer.rotation.current()?.fingerprint).not.toBe(before);
      expect(await ask(tunnel, KEYS)).toMatchObject(answered); // the connection that was verified goes on
      signer.listener.closeAllConnections();
      await expect.poll(() => signer.listener.connections()).toBe(0);
      await expect.poll(async () => (await ask(tunnel, KEYS)).status).toBe(200);
    });
  });

  it('refuses through the tunnel in its own words', async () => {
    await withTunnel(async (tunnel) => {
      const sign = await ask(tunnel, '/api/v1/eth2/sign/0xab', { method: 'POST' }, '{}');
      expect(sign).toMatchObject({ status: 403, json: { reason: 'denied' } });
    });
  });
});
