// The life of a signer in an enclave on one machine: the program as an image runs it, the parent proxy as an instance
// runs it, stand-ins behind its declared egress. What is asked of it goes over attested TLS, with the registers that an
// operator would have written down.

import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ceremonyDigest, parseCeremony } from '../../ceremony/definition.ts';
import { extendedOnce } from '../../common/formats/register.ts';
import { testPcr } from '../../rehearsal/nsm/emulator.ts';
import { type AttestedClient, attested, registersOf } from '../support/attested-client.ts';
import type { Parent } from '../support/enclave-parent.ts';
import type { EnclaveProcess } from '../support/enclave-process.ts';
import { type EnclaveWorld, startEnclaveWorld } from '../support/enclave-world.ts';
import { attestation, call, randaoReveal } from '../support/requests.ts';

const OPERATIONS = { rules: [{ effect: 'allow' }] };

let world: EnclaveWorld;
let parent: Parent;
let enclave: EnclaveProcess;
let client: AttestedClient | undefined;

beforeAll(async () => {
  world = await startEnclaveWorld();
});
afterAll(() => world.close());

async function startParent(): Promise<void> {
  parent = await world.startParent();
}

async function end(): Promise<void> {
  await client?.close();
  await enclave.kill();
  await parent.close();
}

/** Power on, and connect as the operator would. */
async function start(): Promise<AttestedClient> {
  enclave = await world.startEnclave();
  await parent.readyToSign();
  client = await attested(parent.tlsUrl, world.pki, registersOf(enclave.nsm));
  return client;
}

async function signerToken(root: string): Promise<string> {
  const { call: ask } = client as AttestedClient;
  await ask('/api/v1/auth/policies', { token: root, body: { name: 'everything', ...OPERATIONS } });
  const { status, json } = await ask('/api/v1/auth/tokens', { token: root, body: { policies: ['everything'] } });
  expect(status).toBe(201);
  return String(json['token']);
}

const sign = (publicKey: string, token: string, body: unknown) =>
  (client as AttestedClient).call(`/api/v1/eth2/sign/${publicKey}`, { token, body });

describe('a signer in an enclave', () => {
  let root: string;
  let token: string;
  let publicKey: string;
  let signature: string;

  describe('at each start', () => {
    beforeEach(startParent);
    afterEach(end);

    it('initialises itself at its first boot: what it measured is what the operator can compute', async () => {
      await start();
      const configuration = createHash('sha384').update(world.yaml()).digest();
      const ceremony = ceremonyDigest(parseCeremony(world.ceremony));
      expect(enclave.nsm.pcr(16)).toEqual({ value: extendedOnce(configuration), locked: true });
      expect(enclave.nsm.pcr(17)).toEqual({ value: extendedOnce(ceremony), locked: true });

      root = await world.custody.rootToken(world.stateTable);
      const { status, json } = await (client as AttestedClient).call('/api/v1/chamber/status', { token: root });
      expect(status).toBe(200);
      expect(json).toMatchObject({
        state: 'Unsealed',
        custody: { generation: 1, keys_reachable: 3 },
        tee: {
          platform: 'nitro',
          configuration_digest: configuration.toString('hex'),
          measurements: {
            0: testPcr(0).toString('hex'),
            1: testPcr(1).toString('hex'),
            2: testPcr(2).toString('hex'),
            8: testPcr(8).toString('hex'),
            16: extendedOnce(configuration).toString('hex'),
            17: extendedOnce(ceremony).toString('hex'),
          },
        },
      });

      token = await signerToken(root);
      const generated = await (client as AttestedClient).call('/api/v1/chamber/keys/generate-keys', {
        token,
        body: { count: 1 },
      });
      expect(generated.status).toBe(201);
      [{ pubkey: publicKey }] = generated.json['keys'] as [{ pubkey: string }];
      const signed = await sign(publicKey, token, attestation());
      expect(signed.status).toBe(200);
      signature = (await sign(publicKey, token, randaoReveal(3))).text;
      expect(signature).toMatch(/0x[0-9a-f]{192}/);
      expect((await sign(publicKey, token, attestation({ source: 9, target: 12 }))).status).toBe(412);
      // the master key, and the key
      expect(enclave.nsm.operations.filter((operation) => operation === 'GetRandom')).toHaveLength(2);
    });

    it('unseals at the next boot with shares that KMS encrypts to it alone', async () => {
      const before = world.custody.kms.calls.length;
      await start();
      const decrypts = world.custody.kms.calls.slice(before).filter(({ operation }) => operation === 'Decrypt');
      expect(decrypts.length).toBeGreaterThanOrEqual(2);
      expect(decrypts.every(({ document }) => document !== undefined)).toBe(true);
      expect((await sign(publicKey, token, randaoReveal(3))).text).toBe(signature);
      expect((await sign(publicKey, token, attestation({ source: 9, target: 12 }))).status).toBe(412);
    });

    it('is sealed over attested TLS, and stays so until the latch is gone', async () => {
      const { call: ask } = await start();
      const sealed = await ask('/api/v1/chamber/seal', { token: root, body: { reason: 'a test' } });
      expect(sealed).toMatchObject({ status: 200, json: { state: 'Sealed' } });
      expect((await sign(publicKey, token, attestation())).status).toBe(503);
      expect((await call(`${parent.probesUrl}/healthcheck`, { token: null })).status).toBe(503);
      await client?.close();
      await enclave.stop();

      enclave = await world.startEnclave();
      await parent.said('running sealed: nothing is signed');
      client = await attested(parent.tlsUrl, world.pki, registersOf(enclave.nsm));
      expect((await sign(publicKey, token, attestation())).status).toBe(503);
      await client.close();
      await enclave.stop();

      await world.custody.deleteRow(world.stateTable, 'SEAL_OVERRIDE');
      await parent.close();
      parent = await world.startParent();
      await start();
      expect((await sign(publicKey, token, randaoReveal(3))).text).toBe(signature);
    });
  });

  describe('that runs', () => {
    beforeAll(async () => {
      await startParent();
      await start();
    });
    afterAll(end);

    it('answers probes and metrics on their ports, and nothing else there', async () => {
      expect((await call(`${parent.probesUrl}/upcheck`, { token: null })).text).toBe('OK');
      expect((await call(`${parent.probesUrl}/healthcheck`, { token: null })).json).toMatchObject({ status: 'UP' });
      for (const path of [
        `/api/v1/eth2/sign/${publicKey}`,
        '/api/v1/chamber/status',
        '/api/v1/auth/tokens/lookup-self',
      ]) {
        expect((await call(`${parent.probesUrl}${path}`, { token: root })).status).toBe(404);
      }
      const { text } = await call(parent.metricsUrl, { token: null });
      expect(text).toMatch(/^svc_nsm_calls_total\{operation="ExtendPCR",outcome="ok"\} 2$/m);
      expect(text).toMatch(/^svc_nsm_calls_total\{operation="Attestation",outcome="ok"\} [1-9]/m);
      expect(text).toMatch(/^svc_egress_connections_total\{endpoint="1",outcome="connected"\} [1-9]/m);
      expect(text).toMatch(/^svc_tls_certificate_expiry_timestamp_seconds\{mode="ratls"\} [1-9]/m);
      expect(text).toMatch(/^svc_chamber_unsealed 1$/m);
    });

    it('takes no request before it is verified: a client with other registers goes away', async () => {
      const others = new Map([...registersOf(enclave.nsm), [16, ['ab'.repeat(48)]] as const]);
      await expect(attested(parent.tlsUrl, world.pki, others)).rejects.toThrow(/PCR16/);
    });

    it('tells its parent what it does and its console that it has started, and neither any secret', async () => {
      expect((await (client as AttestedClient).call('/api/v1/eth2/publicKeys', { token })).status).toBe(200);
      await enclave.stop();
      expect(parent.lines).toContainEqual(
        expect.objectContaining({ source: 'enclave', scope: 'public_keys', client_ip: '127.0.0.1', outcome: 'ok' }),
      );
      expect(enclave.console()).not.toContain('"audit":true'); // the parent gets the log; a console is slow
      const told = JSON.stringify(parent.lines);
      for (const text of [told, enclave.console()]) {
        expect(text).toContain('measured');
        for (const secret of ['TEST-secret-access-key', 'TEST-session-token', root, token]) {
          expect(text).not.toContain(secret);
        }
      }
    });

    it('ends gracefully when it is told to', async () => {
      expect(await enclave.stop()).toBe(0);
      expect(parent.lines.filter(({ source }) => source === 'enclave').map(({ msg }) => msg)).toContain('stopped');
    });
  });
});

describe('a start inside an enclave', () => {
  beforeEach(startParent);
  afterEach(end);

  it('takes the configuration that the image carries, and asks nobody for another', async () => {
    const baked = world.yaml({ logging: { level: 'debug' } });
    enclave = await world.startEnclave({ baked });
    await parent.said('ready');
    const configuration = createHash('sha384').update(baked).digest();
    expect(enclave.nsm.pcr(16).value).toEqual(extendedOnce(configuration));
    expect(parent.lines.some(({ msg }) => msg === 'the enclave took its configuration')).toBe(false);
  });

  it('is refused where somebody has measured before', async () => {
    enclave = await world.startEnclave();
    await parent.said('ready');
    await enclave.kill();
    const { nsm } = enclave;
    await parent.close();
    parent = await world.startParent();
    enclave = await world.startEnclave({ nsm });
    expect(await enclave.exited).toBe(1);
    expect(parent.lines.at(-1)).toMatchObject({
      msg: 'cannot start',
      error: expect.stringContaining('measurement: PCR16 was locked before this start'),
    });
  });
});
