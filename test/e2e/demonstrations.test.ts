// The demonstrations are what a newcomer sees first: they run, and they show what they say.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { startSigner } from '../../rehearsal/signer.ts';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

function demonstrate(script: string): Promise<{ stdout: string }> {
  return run(join(ROOT, 'bin/pinned-node'), [join(ROOT, script)], { cwd: ROOT });
}

afterEach(() => {
  vi.unstubAllEnvs();
});

describe.skipIf(process.platform !== 'linux')('a signer of a test or a demonstration', () => {
  it('has no way to an AWS account: of the settings of AWS it sees only those it was given', async () => {
    vi.stubEnv('AWS_PROFILE', 'production');
    vi.stubEnv('AWS_IGNORE_CONFIGURED_ENDPOINT_URLS', 'true');
    vi.stubEnv('AWS_SESSION_TOKEN', 'of a real session');
    vi.stubEnv('AWS_CONFIG_FILE', '/nonexistent');
    const signer = await startSigner({ env: { AWS_REGION: 'eu-central-1' } });
    const environment = readFileSync(`/proc/${signer.pid}/environ`, 'utf8').split('\0');
    await signer.stop();
    expect(environment.filter((setting) => setting.startsWith('AWS_')).sort()).toEqual([
      'AWS_CONFIG_FILE=/dev/null',
      'AWS_EC2_METADATA_DISABLED=true',
      'AWS_REGION=eu-central-1',
      'AWS_SHARED_CREDENTIALS_FILE=/dev/null',
    ]);
  });
});

describe('demonstrations', () => {
  it('make demo signs a vote of Gloas on Hoodi and shows a slashable second vote refused', async () => {
    const { stdout } = await demonstrate('demo/demo.ts');
    expect(stdout).toMatch(/== The answer: 200\n\{"signature":"0x[0-9a-f]{192}"\}/);
    expect(stdout).toMatch(
      /== The request: a vote on Hoodi, in Gloas[\s\S]*"current_version": "0x80000910"[\s\S]*"index": "1"/,
    );
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
});
