// Where the guest's master key comes from, judged on this side by verify_key.py alone: what the attested status showed
// after the first boot, after the upgrade and after the rotation.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { encodeHex } from '../../../common/formats/hex.ts';
import { publicNetwork } from '../../../signer/sign/networks.ts';
import { findPython } from '../../support/needs.ts';
import { NotApplicable, type OutsideCheck } from '../suite.ts';
import type { Appliance } from './image.ts';
import { TABLES } from './settings.ts';

const PROGRAM = fileURLToPath(new URL('../../../docs/examples/verify_key.py', import.meta.url));
const NETWORK = encodeHex(publicNetwork('mainnet').genesisValidatorsRoot);
const NOT_EXPECTED = 6;

type Images = Readonly<Record<'first' | 'upgraded' | 'rotated', Appliance>>;

export function keyIsProven({ first, upgraded, rotated }: Images): OutsideCheck {
  const made = /^1\. made at .*, generation 1$/m;
  return {
    name: 'verify_key.py proves the master key after first boot, upgrade and rotation, and refuses it of other images',
    check(lines) {
      const python = findPython('cryptography');
      if (python === undefined) throw new NotApplicable('there is no Python with the package cryptography');
      const judge = (name: string, images: readonly Appliance[], ceremony: Appliance) =>
        judgedBy(python, statusIn(lines, name), rootIn(lines), { images, ceremony });
      for (const [name, images, ceremony] of [
        ['first', [first], first],
        ['upgraded', [first], first],
        ['rotated', [first, rotated], rotated],
      ] as const) {
        const { status, stdout, stderr } = judge(name, images, ceremony);
        assert.equal(status, 0, `${name}: ${stdout}${stderr}`);
        assert.match(stdout, made);
      }
      assert.match(judge('rotated', [first, rotated], rotated).stdout, /^2\. wrapped at .*, generation 2$/m);
      assert.equal(judge('first', [upgraded], first).status, NOT_EXPECTED);
      assert.equal(judge('rotated', [first], rotated).status, NOT_EXPECTED);
      assert.equal(judge('rotated', [first, rotated], first).status, NOT_EXPECTED);
    },
  };
}

/** What the guest's operator command printed. */
function statusIn(lines: readonly string[], name: string): string {
  const head = `evidence: ${name} `;
  const parts = lines.filter((line) => line.startsWith(head)).map((line) => line.slice(head.length).trim());
  assert(parts.length > 0, `the guest shows no evidence of ${name}`);
  return Buffer.from(parts.join(''), 'base64').toString('utf8');
}

function rootIn(lines: readonly string[]): string {
  const found = lines.map((line) => /nsm-cuse root ([0-9a-f]{64})/.exec(line)?.[1]).find((root) => root !== undefined);
  assert(found !== undefined, 'the guest names no root of its NSM');
  return found;
}

function judgedBy(
  python: string,
  status: string,
  root: string,
  { images, ceremony }: { readonly images: readonly Appliance[]; readonly ceremony: Appliance },
) {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-evidence-'));
  try {
    const written = (name: string, content: string | Buffer): string => {
      writeFileSync(join(folder, name), content);
      return join(folder, name);
    };
    const args = [PROGRAM, written('status.json', status), '--test-root', root, '--ceremony', ceremony.ceremonyDigest];
    const pcrs = images.flatMap(({ measurements }, at) => ['--pcrs', written(`pcrs-${at}.json`, measurements)]);
    return spawnSync(python, [...args, ...pcrs, '--deployment', TABLES.state, '--network', NETWORK], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] ?? '', PYTHONDONTWRITEBYTECODE: '1' },
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}
