// `operator verify` as an auditor runs it: what is refused before anything is looked at, and running enclaves under the
// authority of the emulator. The exit codes are those of specification/operating.md#exit-codes.

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { keyBinding } from '../../common/attestation/contract.ts';
import { extendedOnce } from '../../common/formats/register.ts';
import { createIdentity } from '../../enclave/ratls/identity.ts';
import { testPcr } from '../../rehearsal/nsm/emulator.ts';
import { createNsmPki } from '../../rehearsal/nsm/pki.ts';
import { cannedSigner } from './canned-signer.ts';
import { honestRoute, makeEnclave, startRatlsServer } from './ratls-server.ts';
import { closeServers, folder, KNOWN, OTHER, PCR0, pki, servers, start, verifyUnderRoot } from './verify-set-up.ts';

it('1: reference values that leave the configuration open are refused before anything is looked at', async () => {
  const pcrs = join(folder, 'fetched-pcrs.json'); // as `eif build --fetch-config` writes it
  writeFileSync(pcrs, JSON.stringify({ measurements: { PCR0: testPcr(0).toString('hex'), PCR17: OTHER } }));
  const asked = join(folder, 'no-evidence');
  for (const given of [
    ['--pcrs', pcrs],
    ['--pcr', PCR0],
  ]) {
    const { code, stdout, stderr } = await verifyUnderRoot(asked, ...given);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('PCR16 is missing: the image would be accepted with any configuration');
    expect(stderr).toContain('or say --any-configuration');
    expect((await verifyUnderRoot(asked, ...given, '--any-configuration')).stderr).toContain('cannot be read');
    expect((await verifyUnderRoot(asked, ...given, '--pcr', `16=${OTHER}`)).stderr).toContain('cannot be read');
  }
});

it('a PCR16 that is given counts, whatever else is said', async () => {
  const server = await start(await makeEnclave({ pki }));
  const { code, stderr } = await verifyUnderRoot(server.url, ...KNOWN, '--pcr', `16=${OTHER}`);
  expect(code).toBe(6);
  expect(stderr).toContain('wrong_pcr: PCR16');
});

it('the configuration as a file is compared whole, and what is unsafe in it is said first', async () => {
  const enclave = await makeEnclave({ pki, pcrs: { 16: Buffer.alloc(48) } });
  const config = join(folder, 'unsafe.yaml');
  const text = [
    'tee: { platform: nitro, nitro: { unsafe_parent_writes_tables: true } }',
    'static_auth: { tokens: [{ secret: TEST-secret-in-the-configuration, policies: [all] }], anonymous: { policies: [all] } }',
    'anti_slashing: { backend: postgres, url: "postgres://signer:TEST-secret-in-the-configuration@db.example/slashing" }',
    '',
  ].join('\n');
  writeFileSync(config, text);
  await enclave.nsm.extendPcr(16, createHash('sha384').update(text).digest());
  await enclave.nsm.lockPcr(16);
  const identity = await createIdentity({ nsm: enclave.nsm, clock: { now: Date.now }, validitySeconds: 3600 });
  const server = await startRatlsServer(identity, cannedSigner, honestRoute(enclave.nsm, identity));
  servers.push(server);
  const page = join(folder, 'unsafe.html');
  const given = ['--pcr', PCR0, '--config', config];
  const { code, stdout } = await verifyUnderRoot(server.url, ...given, '--report', page);
  expect(code).toBe(14);
  expect(stdout).toMatch(/^UNSAFE +the configuration says unsafe_parent_writes_tables/);
  expect(readFileSync(page, 'utf8')).toMatch(/<h1>[^<]*<\/h1>\s*<section class="box bad">\s*<h2>✘ UNSAFE<\/h2>/);
  const asJson = await verifyUnderRoot(server.url, ...given, '--json');
  const parentReads = ['static_auth.tokens', 'static_auth.anonymous', 'anti_slashing.url (its password)'];
  const unsafe = { parent_writes_tables: true, parent_reads: parentReads };
  expect(JSON.parse(asJson.stdout)).toMatchObject({ verdict: 'partly_compared', ...unsafe });
  expect(stdout).toMatch(/^the parent reads +static_auth\.tokens, static_auth\.anonymous, anti_slashing\.url/m);
  const judgedAgain = await verifyUnderRoot(page);
  expect(judgedAgain.stdout).toMatch(/^the page +says what its evidence/m);
  const said = stdout + asJson.stdout + judgedAgain.stdout + readFileSync(page, 'utf8');
  expect(said).not.toContain('TEST-secret-in-the-configuration');

  writeFileSync(config, `${text}# another byte\n`);
  const other = await verifyUnderRoot(server.url, ...given);
  expect([other.code, other.stderr]).toEqual([6, expect.stringContaining('wrong_pcr: PCR16')]);
  writeFileSync(config, 'tee:\n  platform: nitro\n');
  expect((await verifyUnderRoot(server.url, ...given)).stdout).not.toMatch(/UNSAFE|the parent reads/);
  const both = await verifyUnderRoot(server.url, ...given, '--pcr', `16=${OTHER}`);
  expect([both.code, both.stderr]).toEqual([1, expect.stringContaining('both say what PCR16 is')]);
});

it('a file is judged by a clock that may be behind only when no time is given', async () => {
  // its leaf begins 197 s from now
  const { identity } = await makeEnclave({ pki, clock: { now: () => Date.now() + 200_000 } });
  const file = join(folder, 'ahead.pem');
  writeFileSync(file, identity.cert);
  expect((await verifyUnderRoot(file, ...KNOWN)).code).toBe(14);
  const now = new Date().toISOString();
  const strict = await verifyUnderRoot(file, ...KNOWN, '--at', now);
  expect(strict.code).toBe(5);
  expect(strict.stderr).toContain('not_yet_valid: ');
});

describe('a running enclave', () => {
  it('14: the certificate, then a document of this connection; no token is sent', async () => {
    const server = await start(await makeEnclave({ pki }));
    const { code, stdout } = await verifyUnderRoot(server.url, ...KNOWN, '--json');
    expect(code).toBe(14);
    const { verdict, expected, findings } = JSON.parse(stdout);
    expect({ verdict, expected }).toEqual({ verdict: 'partly_compared', expected: false });
    expect(findings.map(({ evidence }: { evidence: string }) => evidence)).toEqual(['certificate', 'fresh_document']);
    for (const { steps } of findings) for (const { result } of steps) expect(result).toBe('passed');
    expect(server.received).toEqual([]);
  });

  it('0 only when configuration and ceremony were compared too; 14 says which was not', async () => {
    const [configuration, ceremony] = [Buffer.alloc(48, 0x16), Buffer.alloc(48, 0x17)];
    const enclave = await makeEnclave({ pki, pcrs: { 16: Buffer.alloc(48), 17: Buffer.alloc(48) } });
    await enclave.nsm.extendPcr(16, configuration);
    await enclave.nsm.lockPcr(16);
    await enclave.nsm.extendPcr(17, ceremony);
    await enclave.nsm.lockPcr(17);
    const identity = await createIdentity({ nsm: enclave.nsm, clock: { now: Date.now }, validitySeconds: 3600 });
    const server = await startRatlsServer(identity, cannedSigner, honestRoute(enclave.nsm, identity));
    servers.push(server);
    const sixteen = ['--pcr', `16=${extendedOnce(configuration).toString('hex')}`];
    const seventeen = ['--pcr', `17=${extendedOnce(ceremony).toString('hex')}`];
    for (const [asked, open] of [
      [[], ['PCR16 (configuration)', 'PCR17 (ceremony)']],
      [sixteen, ['PCR17 (ceremony)']],
      [[...sixteen, ...seventeen], []],
    ] as const) {
      const { code, stdout, stderr } = await verifyUnderRoot(server.url, ...KNOWN, ...asked, '--json');
      expect(code).toBe(open.length > 0 ? 14 : 0);
      for (const register of open) expect(stderr).toContain(`not compared: ${register}: no reference value`);
      const { compared, not_compared: rest } = JSON.parse(stdout) as Record<'compared' | 'not_compared', string[]>;
      expect(rest).toEqual(open.map((register) => `${register}: no reference value says what it should be`));
      expect(compared).toContain('the TLS key');
      const { stdout: table } = await verifyUnderRoot(server.url, ...KNOWN, ...asked);
      expect(/^NOT compared /m.test(table)).toBe(open.length > 0);
    }
  });

  it('6, 8 and 5: reported all the same', async () => {
    const server = await start(await makeEnclave({ pki }));
    const other = await verifyUnderRoot(server.url, '--pcr', `0=${OTHER}`, '--any-configuration');
    expect(other.code).toBe(6);
    expect(other.stdout).toContain(
      'the fresh document, bound to this connection: authentic, and NOT what was expected',
    );
    expect((await verifyUnderRoot(server.url)).code).toBe(8);
    const stranger = await start(await makeEnclave({ pki: await createNsmPki() }));
    const { code, stdout } = await verifyUnderRoot(stranger.url, ...KNOWN);
    expect(code).toBe(5);
    expect(stdout).toContain('FAILED: untrusted_root');
    expect(stranger.bytes()).toBe('');
  });

  it('5: a relayed connection, whatever the certificate proves', async () => {
    const { nsm, identity } = await makeEnclave({ pki });
    const elsewhere = honestRoute(nsm, { spki: (await makeEnclave({ pki })).identity.spki });
    for (const [route, code] of [
      [() => nsm.attest({ userData: keyBinding(identity.spki), nonce: Buffer.alloc(32) }), 'relayed'],
      [elsewhere, 'wrong_key'],
    ] as const) {
      const server = await startRatlsServer(identity, cannedSigner, route);
      servers.push(server);
      for (const asked of [KNOWN, ['--pcr', `0=${OTHER}`, '--any-configuration'], []]) {
        const found = await verifyUnderRoot(server.url, ...asked, '--json');
        expect({ asked, code: found.code }).toEqual({ asked, code: 5 });
        expect(found.stderr).toContain(`${code}: `);
        expect(JSON.parse(found.stdout)).toMatchObject({ verdict: 'not_authentic', authentic: false, expected: false });
      }
    }
  });

  it('2: nobody there; 1: a time for it, or a URL that is none', async () => {
    const server = await start(await makeEnclave({ pki }));
    await closeServers();
    expect((await verifyUnderRoot(server.url, ...KNOWN)).code).toBe(2);
    expect((await verifyUnderRoot(server.url, '--at', '2026-01-01T00:00:00Z')).code).toBe(1);
    expect((await verifyUnderRoot('http://127.0.0.1:1')).code).toBe(1);
  });

  it('its certificate in a file is judged with its key', async () => {
    const { identity } = await makeEnclave({ pki });
    writeFileSync(join(folder, 'attested.pem'), identity.cert);
    const { code, stdout } = await verifyUnderRoot(join(folder, 'attested.pem'), ...KNOWN);
    expect(code).toBe(14);
    expect(stdout).toContain('binding    passed  user_data is of the TLS key');
    const at = new Date(identity.expiresAt + 1000).toISOString();
    expect((await verifyUnderRoot(join(folder, 'attested.pem'), ...KNOWN, '--at', at)).code).toBe(5);
    writeFileSync(join(folder, 'two.pem'), identity.cert + identity.cert);
    expect((await verifyUnderRoot(join(folder, 'two.pem'), ...KNOWN)).code).toBe(1);
  });
});
