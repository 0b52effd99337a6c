// The demonstrations are what a newcomer sees first: they run, and they show what they say.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { runStrongroom } from '../support/signer.ts';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

function demonstrate(script: string): Promise<{ stdout: string }> {
  return run(join(ROOT, 'bin/pinned-node'), [join(ROOT, script)], { cwd: ROOT });
}

describe('demonstrations', () => {
  it('make demo signs an attestation and shows a slashable second vote refused', async () => {
    const { stdout } = await demonstrate('demo/demo.ts');
    expect(stdout).toMatch(/== The answer: 200\n\{"signature":"0x[0-9a-f]{192}"\}/);
    expect(stdout).toMatch(/"reason":"double_vote"/);
    expect(stdout).toMatch(/Go on from here/);
  });

  it.skipIf(process.platform !== 'linux')('make demo-custody shows init, sealing and recovery', async () => {
    const { stdout } = await demonstrate('demo/custody.ts');
    expect(stdout).toMatch(/initialised: a new master key/);
    expect(stdout).toMatch(/BEGIN AGE ENCRYPTED FILE/);
    expect(stdout.match(/503 \{"code":503,"reason":"sealed"/g)).toHaveLength(2);
    expect(stdout).toMatch(/state +Unsealed/);
    expect(stdout).not.toMatch(/sr_(mgmt|client)_[\w-]{20}/);
  });

  it.skipIf(process.platform !== 'linux')('a rehearsal runs the ceremony, and every line of it says so', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'strongroom-rehearsal-'));
    const file = join(folder, 'ceremony.yaml');
    const arn = (n: number): string =>
      `arn:aws:kms:eu-central-1:111122223333:key/${String(n).repeat(8)}-1111-4111-8111-111111111111`;
    const keys = [1, 2, 3].map((n) => `  - arns: ["${arn(n)}"]`).join('\n');
    const recipient = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p';
    writeFileSync(file, `generation: 1\nkms_threshold: 2\nkms_keys:\n${keys}\nroot_token_recipients: [${recipient}]\n`);
    const result = await runStrongroom(['ceremony', 'rehearse', file]);
    rmSync(folder, { recursive: true });
    expect(result).toMatchObject({ code: 0, stderr: '' });
    for (const line of result.stdout.trimEnd().split('\n')) expect(line).toMatch(/^REHEARSAL/);
    expect(result.stdout).toMatch(/unsealed without .*11111111-/);
    expect(result.stdout).toMatch(/needs 2 of its 3 custody keys and 1 served/);
  });
});
