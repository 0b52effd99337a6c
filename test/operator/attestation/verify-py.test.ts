// docs/examples/verify.py, which was written from docs/specification/evidence.md alone: it gives every case of the test
// vectors the verdict, the step and the codes that `operator verify` gives, and real documents the same exit code. What
// two implementations agree on, the page says.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AWS_NITRO } from '../../../common/attestation/contract.ts';
import { findPython } from '../../support/needs.ts';
import { vectorPath } from '../../support/vectors.ts';
import { runWithRoot } from '../run-operator.ts';
import { readVectors, VECTORS_FILE } from './verification-vectors.ts';

const PROGRAM = fileURLToPath(new URL('../../../docs/examples/verify.py', import.meta.url));
const MAX_LINES = 400;
const FILES = {
  'none.json': '{"a": 1}',
  'list.json': '[1]',
  'broken.json': 'PCR0',
  'number.json': `{"measurements": {"PCR0": ${'1'.repeat(96)}}}`,
  'twice.json': `{"measurements": {"PCR0": "${'a1'.repeat(48)}", "PCR0": "${'a2'.repeat(48)}"}}`,
  'document.bin': 'nothing',
};
const python = findPython('cryptography');
/** The folder of the programs stays as it is. */
const ENV = { PATH: process.env['PATH'] ?? '', PYTHONDONTWRITEBYTECODE: '1' };

function run(...args: string[]) {
  return spawnSync(python ?? '', [PROGRAM, ...args], { encoding: 'utf8', env: ENV });
}

it(`has less than ${MAX_LINES} lines`, () => {
  expect(readFileSync(PROGRAM, 'utf8').split('\n').length - 1).toBeLessThan(MAX_LINES);
});

describe.runIf(python !== undefined)('verify.py', () => {
  it('gives every case of the vectors its verdict', () => {
    const { stdout, stderr, status } = run('--vectors', fileURLToPath(VECTORS_FILE));
    const stated = readVectors().cases.map(({ name, verdict, step, codes }) => ({ name, verdict, step, codes }));
    const summary = `${stated.length} cases, 0 judged otherwise than stated\n`;
    expect({ stderr, status }).toEqual({ stderr: summary, status: 0 });
    expect(JSON.parse(stdout)).toEqual(stated);
  });

  it('names the case whose verdict is not the one that the vectors state', () => {
    const vectors = JSON.parse(readFileSync(VECTORS_FILE, 'utf8')) as { cases: { name: string; verdict: string }[] };
    const [first] = vectors.cases;
    if (first === undefined) throw new Error('the vectors have no case');
    first.verdict = 'not_expected';
    const folder = mkdtempSync(join(tmpdir(), 'strongroom-vectors-'));
    try {
      writeFileSync(join(folder, 'altered.json'), JSON.stringify(vectors));
      const { stderr, status } = run('--vectors', join(folder, 'altered.json'));
      const summary = `${vectors.cases.length} cases, 1 judged otherwise than stated\n  ${first.name}\n`;
      expect({ stderr, status }).toEqual({ stderr: summary, status: 1 });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  describe('what is given wrong is said with its place and what to do', () => {
    let folder: string;
    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), 'strongroom-verify-'));
      for (const [name, content] of Object.entries(FILES)) writeFileSync(join(folder, name), content);
    });
    afterAll(() => rmSync(folder, { recursive: true }));

    it.each([
      [
        ['--pcrs', 'none.json'],
        /^verify\.py: --pcrs none\.json: no "measurements", or a member twice; see what it takes: .*--help$/m,
      ],
      [['--pcrs', 'list.json'], /^verify\.py: --pcrs list\.json: no "measurements", or a member twice; /],
      [['--pcrs', 'broken.json'], /^verify\.py: --pcrs broken\.json: not JSON \(.*\); see /],
      [['--pcrs', 'missing.json'], /^verify\.py: .*No such file or directory: 'missing\.json'/],
      [['--vectors', 'none.json'], /^verify\.py: --vectors none\.json: no "cases", or a member twice; see /],
      [['--nonce', 'xyz'], /^verify\.py: --nonce xyz: not hex: give the bytes /],
      [['--pcr', 'zz'], /^verify\.py: PCRzz is no register: .*--pcr N=HEX/],
      [['--pcr', '1\u0663=ab'], /^verify\.py: PCR1\u0663 is no register: /],
      [['--pcrs', 'number.json'], /^verify\.py: PCR0 is not 1 to 16 values of 48 bytes of hex/],
      [['--pcrs', 'twice.json'], /^verify\.py: --pcrs twice\.json: no "measurements", or a member twice; /],
      [['--pcr', '32=ab'], /^verify\.py: PCR32 is no register: /],
      [['--pcr', '0=ab'], /^verify\.py: PCR0 is not 1 to 16 values of 48 bytes of hex/],
      [['--at', 'today'], /^verify\.py: --at today: write a time with its zone: 2026-/],
      [['--at', '2026-13-03T20:41:07Z'], /^verify\.py: --at 2026-13-03T20:41:07Z: write a time with its zone/],
    ])('%j', (args, said) => {
      const { status, stderr } = spawnSync(python ?? '', [PROGRAM, 'document.bin', ...args], {
        cwd: folder,
        encoding: 'utf8',
        env: ENV,
      });
      expect(stderr).toMatch(said);
      expect({ status, lines: stderr.split('\n').length }).toEqual({ status: 1, lines: 2 });
    });

    it('evidence of more than 64 KiB is refused, and not cut', () => {
      const input = Buffer.alloc(65_537, 'a');
      const { status, stderr } = spawnSync(python ?? '', [PROGRAM], { input, encoding: 'utf8', env: ENV });
      expect([status, stderr]).toEqual([1, expect.stringContaining('more than 65536 bytes')]);
    });

    it('on a terminal it says that it waits for stdin', () => {
      // `script` makes the terminal.
      const input = '\x04';
      const { stdout } = spawnSync('script', ['-qec', `${python} ${PROGRAM}`, '/dev/null'], {
        encoding: 'utf8',
        input,
        env: ENV,
      });
      expect(stdout).toContain('verify.py: reading the evidence from this terminal, up to Ctrl-D');
      expect(run().stderr).toBe('');
    });
  });

  it('--help says what every flag is', () => {
    const { stdout } = run('--help');
    for (const flag of ['pcrs FILE', 'pcr N=HEX', 'at TIME', 'nonce HEX', 'vectors FILE', 'max-age SECONDS']) {
      expect(stdout).toMatch(new RegExp(`^ +--${flag}\\s+\\w+`, 'm'));
    }
    expect(stdout).toMatch(/^ +--any-configuration\s+\w+/m);
  });

  const document = vectorPath('attestation/base-2026-indefinite-map.bin');
  const at = ['--at', '2026-01-03T20:41:10Z'];
  const pcr0 = '4b8d4cf2a99e05ce1b5bddaf9d21cb446eb0e606c5bebd1ebf02b473a22165f7b68b0bb0d1ac5a90f0311e493522cfab';
  const asked = (hex: string) => ['--any-configuration', '--pcr', `0=${hex}`];

  it.runIf(document !== undefined).each<[string, readonly string[]]>([
    ['expected in what was compared', [...at, ...asked(pcr0)]],
    ['another image', [...at, ...asked('ab'.repeat(48))]],
    ['no reference values', at],
    ['expired', asked(pcr0)],
    ['another nonce', [...at, ...asked(pcr0), '--nonce', '00']],
    ['reference values without PCR16', [...at, '--pcr', `0=${pcr0}`]],
  ])('ends on a document of AWS as `operator verify` does: %s', async (_, args) => {
    const theirs = run(document ?? '', ...args);
    const ours = await runWithRoot(['verify', document ?? '', ...args], { rootFingerprint: AWS_NITRO.rootSha256 });
    expect(theirs.status).toBe(ours.code);
    expect(theirs.stdout.includes('NOT compared: PCR16, PCR17, the TLS key')).toBe(ours.code === 14);
  });
});
