// Commands to an enclave: with reference values the peer is attested before anything of a request is sent, and nothing
// else will do. Each refusal has its code and its exit code, and neither the request nor the token has arrived.

import { getEventListeners, once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CEREMONY_PCR, CONFIGURATION_PCR, keyBinding } from '../../enclave/api/attestation.ts';
import { createNsm } from '../../enclave/tee/nsm/client.ts';
import { createIdentity } from '../../enclave/tee/ratls/identity.ts';
import { createAttestedCertificate, generateCertificateKey, privateKeyPem } from '../../enclave/tee/ratls/x509.ts';
import { extendedOnce } from '../../formats/register.ts';
import { parseRegisters } from '../../operator/attestation/policy.ts';
import { connectAttested } from '../../operator/connect.ts';
import { createNsmEmulator, type NsmEmulatorOptions, testPcr } from '../../rehearsal/nsm/emulator.ts';
import { createNsmPki } from '../../rehearsal/nsm/pki.ts';
import { makeCertificate } from '../support/certificates.ts';
import { cannedSigner } from './canned-signer.ts';
import {
  honestRoute,
  makeEnclave,
  type NonceRoute,
  type RatlsServer,
  type ServerIdentity,
  startRatlsServer,
} from './ratls-server.ts';
import { type Outcome, runWithRoot } from './run-operator.ts';
import { runShell } from './transcript.ts';

const TOKEN = 'sr_mgmt_attested_test';
const OTHER = 'ab'.repeat(48);
const PCR0 = `0=${testPcr(0).toString('hex')}`;
/** An enclave of any configuration: PCR16 is not asked for. */
const KNOWN = `--pcr ${PCR0} --any-configuration`;
const CONFIGURATION = Buffer.alloc(48, 0x16);
const CEREMONY = Buffer.alloc(48, 0x17);
const HOUR_MS = 3_600_000;

const pki = await createNsmPki();
let folder: string;
let servers: RatlsServer[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-attested-'));
});
afterEach(async () => {
  await Promise.all(servers.map((server) => server.close()));
  servers = [];
});
afterAll(() => rmSync(folder, { recursive: true }));

async function start(identity: ServerIdentity, route: NonceRoute): Promise<RatlsServer> {
  const server = await startRatlsServer(identity, cannedSigner, route);
  servers.push(server);
  return server;
}

/** An honest enclave, but for its NSM's options. */
async function startEnclave(options: NsmEmulatorOptions = {}): Promise<RatlsServer> {
  const { identity, nonceRoute } = await makeEnclave({ pki, ...options });
  return start(identity, nonceRoute);
}

function status(
  server: Pick<RatlsServer, 'url'>,
  flags = KNOWN,
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const argv = `status --signer-url ${server.url} ${flags}`.trim().split(' ');
  return runWithRoot(argv, {
    rootFingerprint: pki.rootFingerprint,
    env: { SVC_OPERATOR_TOKEN: 'env:MINE', MINE: TOKEN, ...env },
  });
}

/** Refused with this code, before a request. */
async function expectRefusal(server: RatlsServer, exitCode: 5 | 6, code: string, flags?: string): Promise<Outcome> {
  const outcome = await status(server, flags);
  expect(outcome.stderr).toContain(`${code}: `);
  expect(outcome).toMatchObject({ code: exitCode, stdout: '' });
  expectUntouched(server);
  return outcome;
}

/** Only the nonce route was asked, if anything. */
function expectUntouched(server: RatlsServer): void {
  expect(server.received).toEqual([]);
  expect(server.bytes()).not.toMatch(/authorization|bearer|chamber|sr_mgmt/i);
  expect(server.bytes().replaceAll(/GET \/api\/v1\/attestation\?nonce=[0-9a-f]{64} HTTP\/1.1\r\n/g, '')).not.toMatch(
    /HTTP\/1/,
  );
}

describe('an enclave that is who it should be', () => {
  it('is asked, over the connection that was verified', async () => {
    const server = await startEnclave();
    const outcome = await status(server);
    expect(outcome).toMatchObject({ code: 0, stderr: '' });
    expect(outcome.stdout).toContain('Unsealed');
    expect(server.connections).toHaveLength(1);
    expect(server.received).toMatchObject([{ path: '/api/v1/chamber/status', authorization: `Bearer ${TOKEN}` }]);
    expect(server.bytes().indexOf('/api/v1/attestation?nonce=')).toBeLessThan(server.bytes().indexOf('authorization'));
  });

  it('with configuration and ceremony measured', async () => {
    const emulator = await createNsmEmulator({ pki });
    const nsm = createNsm(emulator.exchange);
    for (const [index, digest] of [
      [CONFIGURATION_PCR, CONFIGURATION],
      [CEREMONY_PCR, CEREMONY],
    ] as const) {
      await nsm.extendPcr(index, digest);
      await nsm.lockPcr(index);
    }
    const identity = await createIdentity({ nsm, clock: { now: Date.now }, validitySeconds: 3600 });
    const server = await start(identity, honestRoute(nsm, identity));
    const [right16, right17] = [extendedOnce(CONFIGURATION), extendedOnce(CEREMONY)].map((value) =>
      value.toString('hex'),
    );
    expect((await expectRefusal(server, 6, 'wrong_pcr', `--pcr ${PCR0} --pcr 16=${OTHER}`)).stderr).toContain(
      'PCR16 is',
    );
    expect((await expectRefusal(server, 6, 'wrong_pcr', `${KNOWN} --pcr 17=${OTHER}`)).stderr).toContain('PCR17 is');
    expect((await status(server, `--pcr ${PCR0} --pcr 16=${right16} --pcr 17=${right17}`)).code).toBe(0);
  });

  it('by a file, a variable, a profile', async () => {
    const server = await startEnclave();
    const config = join(folder, 'config');
    mkdirSync(join(config, 'strongroom'), { recursive: true });
    writeFileSync(
      join(config, 'strongroom', 'pcrs.json'),
      JSON.stringify({ measurements: { PCR0: [OTHER, testPcr(0).toString('hex')] } }),
    );
    writeFileSync(
      join(config, 'strongroom', 'operator.yaml'),
      `profiles:\n  default:\n    pcrs: pcrs.json\n    any_configuration: true\n    pcr: { 8: ${testPcr(8).toString('hex')} }\n  other:\n    pcrs: pcrs.json\n    any_configuration: true\n    pcr: { 8: [${OTHER}] }\n`,
      { mode: 0o600 },
    );
    expect((await status(server, '', { SVC_OPERATOR_PCR: PCR0, SVC_OPERATOR_ANY_CONFIGURATION: 'true' })).code).toBe(0);
    expect((await status(server, `--any-configuration --pcrs ${join(config, 'strongroom', 'pcrs.json')}`)).code).toBe(
      0,
    );
    expect((await status(server, '', { XDG_CONFIG_HOME: config })).code).toBe(0);
    expect((await status(server, '--profile other', { XDG_CONFIG_HOME: config })).code).toBe(6);
  });

  it('while its NSM is busy is asked again, a few times', async () => {
    const { identity, nonceRoute } = await makeEnclave({ pki });
    let asked = 0;
    const server = await start(identity, (nonce, socket) =>
      ++asked < 3 ? Promise.resolve(503) : nonceRoute(nonce, socket),
    );
    expect((await status(server)).code).toBe(0);
    const busy = await start(identity, async () => 503);
    const { code, stderr } = await status(busy);
    expect(stderr).toContain('the enclave is too busy to attest itself');
    expect(code).toBe(2);
    expectUntouched(busy);
  });
});

describe('a connection', () => {
  it('that was closed is let go of by the signal that would have ended it', async () => {
    const server = await startEnclave();
    const ending = new AbortController();
    const attestation = {
      provider: { name: 'the test authority', rootSha256: pki.rootFingerprint },
      referenceValues: parseRegisters([PCR0]),
      maxAgeSeconds: 10_800,
      now: Date.now,
    };
    const { socket } = await connectAttested({ url: new URL(server.url), attestation }, ending.signal);
    expect(getEventListeners(ending.signal, 'abort')).toHaveLength(1);
    socket.destroy();
    await once(socket, 'close');
    expect(getEventListeners(ending.signal, 'abort')).toHaveLength(0);
  });
});

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

describe('reference values and ordinary TLS do not mix', () => {
  it('a certificate of a trusted authority does not stand in for evidence', async () => {
    const { cert, key } = makeCertificate(folder, 'trusted');
    const server = await start(
      { cert: readFileSync(cert, 'utf8'), key: readFileSync(key), spki: Buffer.alloc(0) },
      async () => 404,
    );
    const { code, stderr } = await status(server, `${KNOWN} --tls-ca ${cert}`);
    expect(code).toBe(1);
    expect(stderr).toContain(
      '--tls-ca is for an ordinary certificate, but an enclave is known by its reference values',
    );
    expect(server.connections).toEqual([]);
  });

  it.each([
    ['--pcr 16=ab', 'PCR16: a value is not 48 bytes of hex'],
    [`--pcr 16=${OTHER}`, 'PCR0 is missing'],
    [`--pcr 0=${'00'.repeat(48)}`, 'zeros are what an enclave in debug mode has'],
    [`--pcr 32=${OTHER}`, 'does not name a register'],
    [`--pcr ${OTHER}`, 'does not name a register'],
    ['--pcrs nowhere.json', 'cannot be read (ENOENT)'],
    [`${KNOWN} --max-age 0`, '--max-age is a whole number of seconds'],
    ['--max-age 60', '--max-age is about evidence: it needs --pcrs or --pcr'],
    ['--any-configuration', '--any-configuration is about evidence: it needs --pcrs or --pcr'],
    [`--pcr ${PCR0}`, '--pcr: PCR16 is missing: the image would be accepted with any configuration'],
    [`${KNOWN} --allow-plaintext-signer --signer-url http://127.0.0.1:1`, 'without TLS nobody is attested'],
  ])('wrong usage, and no connection: %s', async (flags, message) => {
    const argv = ['status', ...flags.split(' ')];
    const { code, stderr } = await runWithRoot(argv, { rootFingerprint: pki.rootFingerprint });
    expect(stderr).toContain(message);
    expect(code).toBe(1);
  });

  it('the program itself trusts AWS alone: the test authority is unknown to it', async () => {
    const server = await startEnclave();
    const env = { SVC_OPERATOR_TOKEN: TOKEN };
    const { code, stderr } = await runShell(`strongroom operator status --signer-url ${server.url} ${KNOWN}`, {
      folder,
      env,
    });
    expect(stderr).toContain('untrusted_root: ');
    expect(code).toBe(5);
    expectUntouched(server);
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
