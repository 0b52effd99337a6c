// `operator verify` of documents in files, as an auditor runs it: real documents of AWS through the real program. The
// exit codes are those of specification/operating.md#exit-codes.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AWS_NITRO } from '../../common/attestation/contract.ts';
import { someOf } from '../support/scale.ts';
import { vectorPath } from '../support/vectors.ts';
import { runWithRoot } from './run-operator.ts';
import { folder, OTHER, verify } from './verify-set-up.ts';

const AWS_DOCUMENT = vectorPath('attestation/base-2026-indefinite-map.bin');
const AWS_PCR0 = '0=4b8d4cf2a99e05ce1b5bddaf9d21cb446eb0e606c5bebd1ebf02b473a22165f7b68b0bb0d1ac5a90f0311e493522cfab';
const NONCE_DOCUMENT = vectorPath('attestation/evervault-valid-bytes.bin');
const ITS_TIME = '--at 2026-01-03T20:41:10Z';

describe.runIf(AWS_DOCUMENT !== undefined)('a document of AWS in a file', () => {
  it('14: authentic and expected in what was compared, at its time', async () => {
    const { code, stdout, stderr } = await verify(`${AWS_DOCUMENT} ${ITS_TIME} --any-configuration --pcr ${AWS_PCR0}`);
    expect(code).toBe(14);
    expect(stderr).toContain('not compared: PCR17 (ceremony): the document does not have it');
    expect(stderr).toContain('not compared: the TLS key: a bare document names the key of no connection');
    for (const shown of [
      'the document: authentic, and expected only in what was compared',
      '2026-01-03T20:40:25Z  2026-01-03T23:40:28Z  i-0368fa67e156d6d23-enc019b8596b1a9dad6.us-east-1.aws',
      `PCR0   ${AWS_PCR0.slice(2)}\n`,
      'PCR0      match      the image',
      "PCR4      unchecked  the parent's instance id",
      'user data   69553adc61d6e9fcdecbe1ea49bb2b52a60238e0',
    ])
      expect(stdout).toContain(shown);
    expect(stdout).toMatch(/\nverdict +authentic, and expected only in what was compared\n$/);
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
    for (const file of someOf(['base64', 'hex', 'tagged'], 2))
      expect((await verify(`${file} ${ITS_TIME} --any-configuration --pcrs pcrs.json`)).code).toBe(14);
  });

  it('8: authentic, and no reference values: a code of its own, which wrong usage does not have', async () => {
    const { code, stdout, stderr } = await verify(`${AWS_DOCUMENT} ${ITS_TIME}`);
    expect(code).toBe(8);
    expect(stdout).toContain('authentic; no reference values given');
    expect(stderr).toContain('no_reference_values: ');
  });

  const UNBELIEVED: readonly [string, string][] = [
    ['today', `--any-configuration --pcr ${AWS_PCR0}`],
    ['after its leaf', `--at 2026-01-03T23:40:29Z --any-configuration --pcr ${AWS_PCR0}`],
    ['older than accepted', `--at 2026-01-03T21:41:10Z --max-age 3600 --any-configuration --pcr ${AWS_PCR0}`],
    ['without the nonce', `${ITS_TIME} --nonce 00112233 --any-configuration --pcr ${AWS_PCR0}`],
  ];
  it.each(someOf(UNBELIEVED, 3))('5: %s', async (_, args) => {
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

  it('1: text that is no evidence, which says how it begins; other bytes are judged', async () => {
    writeFileSync(join(folder, 'text'), 'hello, this is\nnot evidence');
    const { code, stdout, stderr } = await verify('text');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('text is neither a document nor a PEM certificate: it is text that begins with "hello,"');
    writeFileSync(join(folder, 'text'), '84  # an array: “COSE”\n');
    expect((await verify('text')).stderr).toContain('it is text that begins with "84"');
    writeFileSync(join(folder, 'bytes'), Buffer.from('hello, this is\0not evidence'));
    expect((await verify('bytes')).code).toBe(5);
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
    expect(code).toBe(14);
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
    expect((await verify(`${NONCE_DOCUMENT} ${at} ${pcr} --nonce ${document.nonce}`)).code).toBe(14);
  });

  const WRONG_USAGE = [
    ['--at yesterday', '--at is not a time of RFC 3339'],
    ['--nonce xyz', '--nonce is hex'],
    ['--pcr 1=ab', 'PCR1: a value is not 48 bytes of hex'],
    ['--max-age 1h', '--max-age is a whole number of seconds'],
  ] as const;
  it.each(someOf(WRONG_USAGE, 2))('1: wrong usage: %s', async (args, message) => {
    const { code, stdout, stderr } = await verify(`${AWS_DOCUMENT} ${args}`);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(message);
  });
});
