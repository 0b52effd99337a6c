// The demonstrations are what a newcomer sees first: they run, and they show what they say.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { startSigner, tracked } from '../../rehearsal/signer.ts';
import { announcement } from '../guest/tools.ts';
import { addonForTests } from '../support/addon.ts';
import type { InterchangeFile } from '../support/interchange.ts';
import { findPython } from '../support/needs.ts';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

afterEach(() => {
  vi.unstubAllEnvs();
});

describe.skipIf(process.platform !== 'linux')('a signer of a test or a demonstration', () => {
  it('has no way to an AWS account: of the settings of AWS it sees only those it was given', async () => {
    vi.stubEnv('AWS_PROFILE', 'production');
    vi.stubEnv('AWS_IGNORE_CONFIGURED_ENDPOINT_URLS', 'true');
    vi.stubEnv('AWS_SESSION_TOKEN', 'of a real session');
    vi.stubEnv('AWS_CONFIG_FILE', '/nonexistent');
    // Root alone reads the environment of a process that cannot be dumped.
    const config = { server: { mlock: 'off' } };
    const signer = await startSigner({ config, env: { AWS_REGION: 'eu-central-1' } });
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
  it('make demo signs a vote of Gloas on Hoodi, refuses a second one, and leaves a world to try', async () => {
    const { stdout, tried } = await demonstrate('demo/demo.ts', 'build/demo', ['status', 'second-vote.json']);
    expect(stdout).toMatch(/== The answer: 200\n\{"signature":"0x[0-9a-f]{192}"\}/);
    expect(stdout).toMatch(
      /== The request: a vote on Hoodi, in Gloas[\s\S]*"current_version": "0x80000910"[\s\S]*"index": "1"/,
    );
    expect(stdout).toMatch(/"reason":"double_vote"/);
    expect(tried).toEqual([
      expect.stringMatching(/^state +Unsealed\n/),
      expect.stringMatching(/"reason":"double_vote".*\n412\n$/),
    ]);
  });

  it.skipIf(!addonForTests())(
    'make demo-distributed loses a signer, and the records of another, and no vote',
    async () => {
      const { stdout } = await run(join(ROOT, 'bin/pinned-node'), [join(ROOT, 'demo/distributed.ts')]);
      expect(stdout).toContain("the combined signature verifies against the validator's key: yes");
      expect(stdout).toMatch(
        /== A second vote for epoch \d+, of which signer 1 has lost its record[\s\S]*"double_vote"/,
      );
      expect(stdout).toMatch(/== Signer 4 stops again[\s\S]* 200 0x[0-9a-f]{58}…\n\n== It worked/);
    },
  );

  it.skipIf(process.platform !== 'linux')(
    'make demo-custody shows init, sealing, recovery, and leaves it',
    async () => {
      const { stdout, tried } = await demonstrate('demo/custody.ts', 'build/demo-custody', [
        ...[
          'operator status',
          'operator top',
          'auth policy get',
          'publicKeys',
          'keys import',
          'keys generate',
          '--withdrawal-address',
          'keys list',
          'keys delete',
        ],
        ...['operator seal', 'until strongroom', 'recover --table state-1', 'aws.env', 'kill -USR2', '/healthcheck'],
        'operator status',
      ]);
      expect(stdout).toMatch(/initialised: a new master key/);
      expect(stdout).toMatch(/BEGIN AGE ENCRYPTED FILE/);
      expect(stdout.match(/503 \{"code":503,"reason":"sealed"/g)).toHaveLength(2);
      expect(stdout).toMatch(/state +Unsealed/);
      expect(stdout).toMatch(
        findPython('cryptography') === undefined
          ? /^NOT judged here/m
          : /^docs\/examples\/verify_key\.py: 1\. made at \S+, generation 1; 2\. wrapped at \S+, generation 2; root_token at \S+, generation 1; expected: an accepted image made this master key/m,
      );
      expect(stdout).not.toMatch(/sr_(mgmt|client)_[\w-]{20}/);
      expect(tried).toEqual([
        expect.stringMatching(/^state +Unsealed\n/),
        expect.stringMatching(/\nkeys +up [\s\S]*\nother-keys +up /),
        expect.stringMatching(/^name +validator-client\n/),
        expect.stringMatching(/^\["0x[0-9a-f]{96}"\]$/),
        expect.stringMatching(/^imported +1$/m),
        expect.stringMatching(/^(0x[0-9a-f]{96}\n){2}/),
        expect.stringMatching(/^0x[0-9a-f]{96}\n/),
        expect.stringMatching(/^0x[0-9a-f]{96} dynamodb, active, loaded, since /m),
        expect.stringMatching(/^deleted +1$/m),
        expect.stringMatching(/^state +Sealed\n/),
        expect.stringMatching(/^state +Sealed\n[\s\S]*THIS REPLICA DOES NOT SIGN/m),
        expect.stringMatching(/^sealed: somebody sealed the fleet/),
        expect.stringMatching(
          /^deleted +the latch, SEAL_OVERRIDE\n.*\nsealed by +acc_\w+\nreason +trying it\n\nwhat is left:/,
        ),
        '',
        '',
        expect.stringMatching(/^state +Unsealed\n/),
      ]);
      const kept = JSON.parse(readFileSync(join(ROOT, 'build/demo-custody/deleted.json'), 'utf8')) as InterchangeFile;
      // What was imported, or what the fleet jumped to when it came back.
      const [vote] = kept.data.flatMap(({ signed_attestations }) => signed_attestations);
      expect(Number(vote?.target_epoch)).toBeGreaterThanOrEqual(421_801);
    },
  );

  it('make demo-enclave says which packages it installs, and what for', () => {
    const said = announcement(['qemu-system-x86', 'linux-image-cloud-amd64']);
    expect(said).toContain('qemu-system-x86: emulates the machine that the image boots on');
    expect(said).toContain('linux-image-cloud-amd64: the guest is made of it');
  });
});

/**
 * As `make … KEEP=1` runs it. Of what it prints to try, the lines with these words are run in the project's folder;
 * then it is stopped as it says.
 */
async function demonstrate(
  script: string,
  folder: string,
  asked: readonly string[],
): Promise<{ readonly stdout: string; readonly tried: readonly string[] }> {
  const env = { ...process.env, KEEP: '1' };
  const child = tracked(spawn(join(ROOT, 'bin/pinned-node'), [join(ROOT, script)], { cwd: ROOT, env }));
  const exited = once(child, 'exit');
  let stdout = '';
  const isKept = new Promise<void>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      if (stdout.includes(`kill $(cat ${folder}/pid)\n`)) resolve();
    });
  });
  const code = await Promise.race([isKept, exited.then(([failed]) => failed as number)]);
  if (code !== undefined) throw new Error(`it ended with ${code}: ${stdout.slice(-2000)}`);
  const lines = [...stdout.matchAll(/^ {2}\$ (.*)$/gm)].map(([, line = '']) => line);
  const [first = ''] = lines;
  expect(first).toBe(`. ${folder}/env`);
  const tried: string[] = [];
  for (const words of asked) {
    const line = lines.find((one) => one.includes(words)) ?? 'echo there is no such line';
    const looks = words === 'operator top' ? ' --once' : '';
    // A sealed signer's status ends with 3.
    tried.push((await run('sh', ['-c', `${first} && { ${line}${looks} || test $? = 3; }`], { cwd: ROOT })).stdout);
  }
  await run('sh', ['-c', `kill $(cat ${folder}/pid)`], { cwd: ROOT });
  expect(await exited).toEqual([0, null]);
  return { stdout, tried };
}
