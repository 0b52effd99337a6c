// The product stands on its own sources: a tree without test/ runs the ceremony's commands, and stand-ins are loaded
// for a rehearsal and for nothing else.

import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
/** What belongs to nobody's sources, and what is not copied on purpose. */
const LEFT_OUT = ['node_modules', 'build', 'test'];
const RECIPIENT = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p';

let tree: string;
let ceremony: string;

beforeAll(() => {
  tree = mkdtempSync(join(tmpdir(), 'strongroom-without-tests-'));
  for (const name of readdirSync(ROOT)) {
    if (name.startsWith('.') || LEFT_OUT.includes(name)) continue;
    cpSync(join(ROOT, name), join(tree, name), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
  if (existsSync(join(ROOT, 'build'))) symlinkSync(join(ROOT, 'build'), join(tree, 'build'));
  ceremony = join(tree, 'ceremony.yaml');
  const arn = (n: number): string =>
    `arn:aws:kms:eu-central-1:111122223333:key/${String(n).repeat(8)}-1111-4111-8111-111111111111`;
  const keys = [1, 2].map((n) => `  - arns: ["${arn(n)}"]`).join('\n');
  writeFileSync(
    ceremony,
    `generation: 1\nkms_threshold: 1\nkms_keys:\n${keys}\nroot_token_recipients: [${RECIPIENT}]\n`,
  );
});
afterAll(() => {
  rmSync(tree, { recursive: true, force: true });
});

function strongroom(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(join(tree, 'bin/strongroom'), args, { encoding: 'utf8' });
  return { status, stdout, stderr };
}

describe('a tree without test/', () => {
  it.each([
    [['ceremony', '--help'], /rehearse +Run the entire first boot/],
    [['ceremony', 'rehearse', '--help'], /Usage: strongroom ceremony rehearse FILE/],
    [['operator', '--help'], /strongroom operator/],
    [['eif', '--help'], /strongroom eif/],
    [['parent-proxy', '--help'], /parent-proxy/],
    [['server', '--help'], /--config/],
    [['slashing', '--help'], /strongroom slashing/],
    [['setup', '--help'], /strongroom setup/],
    [['web3signer', '--help'], /strongroom web3signer/],
  ])('answers %j', (args, text) => {
    expect(strongroom(...args)).toMatchObject({ status: 0, stdout: expect.stringMatching(text), stderr: '' });
  });

  it.skipIf(process.platform !== 'linux' || process.arch !== 'x64')('rehearses a ceremony', () => {
    const result = strongroom('ceremony', 'rehearse', ceremony);
    expect(result).toMatchObject({ status: 0, stderr: '' });
    expect(result.stdout).toMatch(/the rehearsal is over/i);
  });

  it('without rehearsal/ too, has every command but that one', () => {
    rmSync(join(tree, 'rehearsal'), { recursive: true });
    expect(strongroom('ceremony', '--help')).toMatchObject({ status: 0, stderr: '' });
    expect(strongroom('ceremony', 'plan', ceremony)).toMatchObject({ status: 0 });
    expect(strongroom('ceremony', 'rehearse', ceremony).status).not.toBe(0);
  });
});
