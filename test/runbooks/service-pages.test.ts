// Pages about a signer as an ordinary service, word by word: README.md on a machine of its own, and guides that need a
// file or a signer only.

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startSigner } from '../../rehearsal/signer.ts';
import { addonForTests } from '../support/addon.ts';
import { FULL_ACCESS } from '../support/deployment.ts';
import { interchangeOf } from '../support/interchange.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { TEST_TOKEN } from '../support/requests.ts';
import { noOwnMachine, openOwnMachine } from './own-machine.ts';
import { type Block, blocksOf } from './page.ts';
import { writeScript } from './programs.ts';
import { rehearse, rehearseBlocks } from './rehearse.ts';
import { openWorld, ROOT } from './world.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sr-service-'));
  chmodSync(folder, 0o755);
});
afterEach(() => rmSync(folder, { recursive: true }));

const parts = (env: Readonly<Record<string, string>> = {}) => ({ folder, env, values: {}, programs: {} });
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const KEY = publicKeyOf(testSecret(1));
/** What the test does between the blocks of the page. */
const between = (like: Block, commands: string): Block => ({ ...like, kind: 'run', commands, shown: [] });
const ASK = `curl -sSf --retry 60 --retry-delay 1 --retry-all-errors -o up http://127.0.0.1:9000/healthcheck
curl -sS "http://any:$VALIDATOR_CLIENT_TOKEN@127.0.0.1:9000/api/v1/eth2/publicKeys"`;

/** The operator's default address has no signer; what it then says to add works. */
const LOOK = `! bin/strongroom operator status --token env:OPERATOR_TOKEN 2>said
cat said
bin/strongroom operator status --token env:OPERATOR_TOKEN $(sed -n 's/.* add //p' said)`;

it.skipIf(noOwnMachine())('README.md: its configuration starts with its key, and takes a record', async () => {
  const world = await openOwnMachine(parts());
  try {
    const at = (name: string): string => join(world.folder, name);
    mkdirSync(at('bin'));
    writeScript(at('bin'), 'strongroom', `#!/bin/sh\nexec '${ROOT}/bin/strongroom' "$@"\n`);
    writeScript(world.bin, 'sudo', '#!/bin/sh\nexec "$@"\n');
    const [configuration = '', descriptor = ''] = [...README.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(
      ([, yaml = '']) => yaml,
    );
    writeFileSync(at('strongroom.yaml'), configuration);
    writeFileSync(at('validator-1.yaml'), descriptor);
    writeFileSync(at('validator-1.json'), JSON.stringify(encryptKeystore(testSecret(1), 'a password')));
    writeFileSync(at('validator-1.password'), 'a password');
    writeFileSync(at('slashing_protection.json'), JSON.stringify(interchangeOf([KEY])));

    const [tried, prepare, record, start, ...others] = blocksOf('README.md', README).filter(
      ({ kind }) => kind === 'run',
    );
    if (tried === undefined || prepare === undefined || start === undefined || record === undefined)
      throw new Error('a block is gone');
    expect(others).toEqual([]);
    const rehearsed = await rehearseBlocks(
      [
        tried,
        prepare,
        record,
        between(start, 'cp validator-1.* /etc/strongroom/keys/'),
        { ...start, commands: `${start.commands.trimEnd()} > signer.log 2>&1 &` },
        between(start, ASK),
        between(start, LOOK),
      ],
      world,
    );
    expect(rehearsed.at(-2)?.output).toContain(`["${KEY}"]`);
    expect(rehearsed.at(-1)?.output).toMatch(/ add --signer-url http:[\s\S]*\nverdict {2}this replica signs\n/);
    expect(rehearsed[0]?.output).toContain('"reason":"double_vote"');
    expect(rehearsed[2]?.output).toContain('keys: 1\nblocks: 1\nattestations: 1\n');
  } finally {
    await world.close();
  }
});

it('docs/guides/clients.md: the fingerprint of a PKCS#12 file', async () => {
  const world = await openWorld(parts());
  try {
    const openssl = (...args: readonly string[]) => execFileSync('openssl', args, { cwd: world.folder, stdio: 'pipe' });
    openssl('req', '-x509', '-newkey', 'ed25519', '-nodes', '-keyout', 'key', '-out', 'cert', '-subj', '/CN=client');
    openssl('pkcs12', '-export', '-inkey', 'key', '-in', 'cert', '-out', 'client.p12', '-passout', 'pass:');
    // A person types the password of the file; here it is empty, and there is no terminal.
    const real = execFileSync('sh', ['-c', 'command -v openssl'], { encoding: 'utf8' }).trim();
    const typed = `[ "$1" != pkcs12 ] || set -- "$@" -passin pass:`;
    writeScript(world.bin, 'openssl', `#!/bin/sh\n${typed}\nexec ${real} "$@"\n`);
    const [fingerprint] = await rehearse('docs/guides/clients.md', world);
    expect(fingerprint?.output).toMatch(/^[0-9a-f]{64} {2}-$/m);
  } finally {
    await world.close();
  }
});

it('docs/guides/doctor.md: the way to a signer is examined', async () => {
  const signer = await startSigner({
    config: {
      static_auth: {
        policies: [{ name: 'watch', rules: [{ effect: 'allow', scopes: ['chamber_status', 'public_keys'] }] }],
        tokens: [{ secret: TEST_TOKEN, policies: ['watch'] }],
      },
    },
  });
  const world = await openWorld(parts({ SVC_OPERATOR_ALLOW_PLAINTEXT_SIGNER: 'true' }));
  try {
    const own = join(world.folder, '.config/strongroom');
    mkdirSync(own, { recursive: true });
    writeFileSync(join(own, 'token'), TEST_TOKEN, { mode: 0o600 });
    const profile = `profiles:\n  mainnet: { signer_url: "${signer.url}", token: "@${join(own, 'token')}" }\n`;
    writeFileSync(join(own, 'operator.yaml'), profile, { mode: 0o600 });
    const [doctor] = await rehearse('docs/guides/doctor.md', world);
    for (const check of ['settings', 'token holder', 'status']) expect(doctor?.output).toContain(check);
  } finally {
    await world.close();
    await signer.stop();
  }
});

it.skipIf(!addonForTests())(
  'guides/distributed-keys.md: a key becomes four shares, and records come first',
  async () => {
    const world = await openWorld(parts());
    const at = (name: string): string => join(world.folder, name);
    const shares = at('shares/participant-2');
    const keystores = { path: shares, passwords_path: shares };
    const config = { anti_slashing: { path: at('slashing.sqlite') }, key_sources: { filesystem: { keystores } } };
    writeFileSync(at('key.json'), JSON.stringify(encryptKeystore(testSecret(1), 'a password')));
    writeFileSync(at('key.password'), 'a password');
    writeFileSync(at('records.json'), JSON.stringify(interchangeOf([KEY])));
    writeFileSync(at('strongroom.yaml'), JSON.stringify(config));
    try {
      await rehearse('docs/guides/distributed-keys.md', world, { elsewhere: 1 });
      const signer = await startSigner({ folder: world.folder, config: { ...config, static_auth: fullAccess() } });
      const asked = await fetch(`${signer.url}/api/v1/eth2/distributed/accounts`, {
        headers: { authorization: `Bearer ${TEST_TOKEN}` },
      });
      expect(await asked.json()).toMatchObject([
        { participant_id: '2', composite_public_key: KEY, signing_threshold: '3' },
      ]);
      await signer.stop();
    } finally {
      await world.close();
    }
  },
);

function fullAccess() {
  return { policies: [FULL_ACCESS], tokens: [{ secret: TEST_TOKEN, policies: [FULL_ACCESS.name] }] };
}
