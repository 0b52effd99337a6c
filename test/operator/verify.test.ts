// `operator verify` as an auditor runs it: real documents through the real program, which trusts AWS alone; running
// enclaves through the same program under the authority of the emulator. The exit codes are those of
// specification/operating.md#exit-codes.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { keyBinding } from '../../enclave/api/attestation.ts';
import { createIdentity } from '../../enclave/tee/ratls/identity.ts';
import { extendedOnce } from '../../formats/register.ts';
import { AWS_NITRO } from '../../operator/attestation/provider.ts';
import { testPcr } from '../../rehearsal/nsm/emulator.ts';
import { createNsmPki } from '../../rehearsal/nsm/pki.ts';
import { vectorPath } from '../support/vectors.ts';
import { cannedSigner } from './canned-signer.ts';
import { type Enclave, honestRoute, makeEnclave, type RatlsServer, startRatlsServer } from './ratls-server.ts';
import { runWithRoot } from './run-operator.ts';
import { runShell } from './transcript.ts';

const AWS_DOCUMENT = vectorPath('attestation/base-2026-indefinite-map.bin');
const AWS_PCR0 = '0=4b8d4cf2a99e05ce1b5bddaf9d21cb446eb0e606c5bebd1ebf02b473a22165f7b68b0bb0d1ac5a90f0311e493522cfab';
const ITS_TIME = '--at 2026-01-03T20:41:10Z';
const NONCE_DOCUMENT = vectorPath('attestation/evervault-valid-bytes.bin');
const PCR0 = `0=${testPcr(0).toString('hex')}`;
const OTHER = 'ab'.repeat(48);
const KNOWN = ['--pcr', PCR0, '--any-configuration'];

const pki = await createNsmPki();
let folder: string;
let servers: RatlsServer[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-verify-'));
});
afterEach(async () => {
  await Promise.all(servers.map((server) => server.close()));
  servers = [];
});
afterAll(() => rmSync(folder, { recursive: true }));

function verify(args: string) {
  return runShell(`strongroom operator verify ${args}`, { folder, env: {} });
}

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

it('a file is judged by a clock that may be behind only when no time is given', async () => {
  // its leaf begins 197 s from now
  const { identity } = await makeEnclave({ pki, clock: { now: () => Date.now() + 200_000 } });
  const file = join(folder, 'ahead.pem');
  writeFileSync(file, identity.cert);
  expect((await verifyUnderRoot(file, ...KNOWN)).code).toBe(0);
  const now = new Date().toISOString();
  const strict = await verifyUnderRoot(file, ...KNOWN, '--at', now);
  expect(strict.code).toBe(5);
  expect(strict.stderr).toContain('not_yet_valid: ');
});

function verifyUnderRoot(...args: string[]) {
  return runWithRoot(['verify', ...args], { rootFingerprint: pki.rootFingerprint });
}

async function start(enclave: Enclave): Promise<RatlsServer> {
  const server = await startRatlsServer(enclave.identity, cannedSigner, enclave.nonceRoute);
  servers.push(server);
  return server;
}

describe.runIf(AWS_DOCUMENT !== undefined)('a document of AWS in a file', () => {
  it('0: authentic and expected, at its time', async () => {
    const { code, stdout, stderr } = await verify(`${AWS_DOCUMENT} ${ITS_TIME} --any-configuration --pcr ${AWS_PCR0}`);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const shown of [
      'authentic and expected',
      '2026-01-03T20:40:25Z  2026-01-03T23:40:28Z  i-0368fa67e156d6d23-enc019b8596b1a9dad6.us-east-1.aws',
      `PCR0   ${AWS_PCR0.slice(2)}\n`,
      'PCR0      match      the image',
      "PCR4      unchecked  the parent's instance id",
      'user data   69553adc61d6e9fcdecbe1ea49bb2b52a60238e0',
    ])
      expect(stdout).toContain(shown);
    expect(stdout).toMatch(/\nverdict {2}authentic and expected\n$/);
    const prose = stdout.split('\n').filter((line) => !line.startsWith('PCR'));
    expect(Math.max(...prose.map((line) => line.length))).toBeLessThanOrEqual(100);
  });

  it('in base64, in hex, tagged; reference values as nitro-cli writes them', async () => {
    const document = readFileSync(AWS_DOCUMENT ?? '');
    writeFileSync(join(folder, 'base64'), `${document.toString('base64').replace(/(.{76})/g, '$1\n')}\n`);
    writeFileSync(join(folder, 'hex'), `${document.toString('hex')}\n`);
    writeFileSync(join(folder, 'tagged'), Buffer.concat([Buffer.of(0xd2), document]));
    const measurements = { HashAlgorithm: 'Sha384 { ... }', PCR0: AWS_PCR0.slice(2).toUpperCase() };
    writeFileSync(join(folder, 'pcrs.json'), JSON.stringify({ Measurements: measurements }));
    for (const file of ['base64', 'hex', 'tagged'])
      expect((await verify(`${file} ${ITS_TIME} --any-configuration --pcrs pcrs.json`)).code).toBe(0);
  });

  it('8: authentic, and no reference values: a code of its own, which wrong usage does not have', async () => {
    const { code, stdout, stderr } = await verify(`${AWS_DOCUMENT} ${ITS_TIME}`);
    expect(code).toBe(8);
    expect(stdout).toContain('authentic; no reference values given');
    expect(stderr).toContain('no_reference_values: ');
  });

  it.each<[string, string]>([
    ['today', `--any-configuration --pcr ${AWS_PCR0}`],
    ['after its leaf', `--at 2026-01-03T23:40:29Z --any-configuration --pcr ${AWS_PCR0}`],
    ['older than accepted', `--at 2026-01-03T21:41:10Z --max-age 3600 --any-configuration --pcr ${AWS_PCR0}`],
    ['without the nonce', `${ITS_TIME} --nonce 00112233 --any-configuration --pcr ${AWS_PCR0}`],
  ])('5: %s', async (_, args) => {
    const { code, stdout } = await verify(`${AWS_DOCUMENT} ${args}`);
    expect(code).toBe(5);
    expect(stdout).toMatch(/^the document: NOT authentic: everything below is unverified$/m);
    expect(stdout).toMatch(/\nverdict {2}NOT authentic: everything above is unverified\n$/);
    expect(stdout).toContain('PCR0      not evaluated  the image');
    expect(stdout).not.toMatch(/^PCR\d+ +(?:match|MISMATCH|unchecked)/m);
    const { stdout: json } = await verify(`${AWS_DOCUMENT} ${args} --json`);
    const results = JSON.parse(json).findings[0].document.pcrs.map(({ result }: { result: string }) => result);
    expect(new Set(results)).toEqual(new Set(['not_evaluated']));
  });

  it('5: an expired one without reference values too, and what is no document', async () => {
    expect((await verify(`${AWS_DOCUMENT}`)).code).toBe(5);
    writeFileSync(join(folder, 'nothing'), 'nothing of the kind');
    expect((await verify('nothing')).code).toBe(5);
    writeFileSync(join(folder, 'empty'), '');
    expect((await verify('empty')).code).toBe(5);
  });

  it('6: another image, as JSON', async () => {
    const { code, stdout } = await verify(`${AWS_DOCUMENT} ${ITS_TIME} --any-configuration --pcr 0=${OTHER} --json`);
    expect(code).toBe(6);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({ verdict: 'not_expected', authentic: true, expected: false });
    expect(report.findings[0].failures).toMatchObject([{ code: 'wrong_pcr', pcr: 0 }]);
    expect(report.findings[0].steps.map((step: { result: string }) => step.result).join()).toBe(
      'passed,passed,passed,passed,passed,not_asked,passed,failed',
    );
    expect(report.findings[0].document.pcrs[0]).toMatchObject({ pcr: 0, result: 'mismatch', accepted: [OTHER] });
    expect(report.findings[0].chain).toHaveLength(5);
  });

  it('6: debug mode, whatever is asked for', async () => {
    const debug = vectorPath('attestation/evervault-debug-2023.bin');
    const { code, stderr } = await verify(`${debug} --at 2022-10-12T13:50:07Z --any-configuration --pcr 0=${OTHER}`);
    expect(code).toBe(6);
    expect(stderr).toContain('debug: PCR0 is zero');
    expect((await verify(`${debug} --at 2022-10-12T13:50:07Z`)).code).toBe(6);
  });

  it('from standard input', async () => {
    const given = [...ITS_TIME.split(' '), '--any-configuration', '--pcr', AWS_PCR0];
    const stdin = readFileSync(AWS_DOCUMENT ?? '');
    const root = { rootFingerprint: AWS_NITRO.rootSha256 };
    const { code, stdout } = await runWithRoot(['verify', '-', ...given], { ...root, stdin });
    expect(code).toBe(0);
    expect(stdout).toContain('evidence   standard input\n');
    const large = await runWithRoot(['verify', '-', ...given], { ...root, stdin: Buffer.alloc(65_537) });
    expect(large).toMatchObject({ code: 1, stdout: '' });
    expect(large.stderr).toContain('standard input is larger than 65536 bytes');
  });

  it('wraps to a terminal of 80 columns, registers in two halves', async () => {
    const root = { rootFingerprint: AWS_NITRO.rootSha256, columns: 80 };
    const given = [...ITS_TIME.split(' '), '--any-configuration', '--pcr', AWS_PCR0];
    const { stdout } = await runWithRoot(['verify', AWS_DOCUMENT ?? '', ...given], root);
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(stdout).toContain(`PCR0   ${AWS_PCR0.slice(2, 50)}\n       ${AWS_PCR0.slice(50)}\n`);
  });

  it('the nonce that it carries', async () => {
    const at = '--at 2022-10-13T08:58:03Z';
    const { stdout } = await verify(`${NONCE_DOCUMENT} ${at} --json`);
    const [{ document }] = JSON.parse(stdout).findings;
    const pcr = `--any-configuration --pcr 0=${document.pcrs[0].value}`;
    expect((await verify(`${NONCE_DOCUMENT} ${at} ${pcr} --nonce ${document.nonce}`)).code).toBe(0);
  });

  it.each([
    ['--at yesterday', '--at is not a time of RFC 3339'],
    ['--nonce xyz', '--nonce is hex'],
    ['--pcr 1=ab', 'PCR1: a value is not 48 bytes of hex'],
    ['--max-age 1h', '--max-age is a whole number of seconds'],
  ])('1: wrong usage: %s', async (args, message) => {
    const { code, stdout, stderr } = await verify(`${AWS_DOCUMENT} ${args}`);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(message);
  });
});

describe('a running enclave', () => {
  it('0: the certificate, then a document of this connection; no token is sent', async () => {
    const server = await start(await makeEnclave({ pki }));
    const { code, stdout } = await verifyUnderRoot(server.url, ...KNOWN, '--json');
    expect(code).toBe(0);
    const { verdict, findings } = JSON.parse(stdout);
    expect(verdict).toBe('expected');
    expect(findings.map(({ evidence }: { evidence: string }) => evidence)).toEqual(['certificate', 'fresh_document']);
    for (const { steps } of findings) for (const { result } of steps) expect(result).toBe('passed');
    expect(server.received).toEqual([]);
  });

  it('0: and says what was not asked: the configuration and the ceremony are not of the image', async () => {
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
      [[], 'PCR16 (configuration) and PCR17 (ceremony)'],
      [sixteen, 'PCR17 (ceremony)'],
      [[...sixteen, ...seventeen], undefined],
    ] as const) {
      const { code, stdout } = await verifyUnderRoot(server.url, ...KNOWN, ...asked);
      expect(code).toBe(0);
      const line = open === undefined ? undefined : `NOT asked  ${open}: no reference value says what it should be`;
      expect(stdout.split('\n').find((text) => text.startsWith('NOT asked'))).toBe(line);
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
    await server.close();
    servers = [];
    expect((await verifyUnderRoot(server.url, ...KNOWN)).code).toBe(2);
    expect((await verifyUnderRoot(server.url, '--at', '2026-01-01T00:00:00Z')).code).toBe(1);
    expect((await verifyUnderRoot('http://127.0.0.1:1')).code).toBe(1);
  });

  it('its certificate in a file is judged with its key', async () => {
    const { identity } = await makeEnclave({ pki });
    writeFileSync(join(folder, 'attested.pem'), identity.cert);
    const { code, stdout } = await verifyUnderRoot(join(folder, 'attested.pem'), ...KNOWN);
    expect(code).toBe(0);
    expect(stdout).toContain('binding    passed  user_data is of the TLS key');
    const at = new Date(identity.expiresAt + 1000).toISOString();
    expect((await verifyUnderRoot(join(folder, 'attested.pem'), ...KNOWN, '--at', at)).code).toBe(5);
    writeFileSync(join(folder, 'two.pem'), identity.cert + identity.cert);
    expect((await verifyUnderRoot(join(folder, 'two.pem'), ...KNOWN)).code).toBe(1);
  });
});
