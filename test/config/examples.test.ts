// The examples of docs/examples for ordinary services, as they stand: `server --check` finds nothing that would stop a
// start, once the files, the secrets and the stores that an example names are there. Placeholders of paths are the only
// thing that is put into an example here. That of an enclave: test/tools/reference.test.ts.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { startCustody } from '../../rehearsal/custody.ts';
import { missingDynamoDB } from '../../rehearsal/dynamodb.ts';
import { runStrongroom } from '../../rehearsal/signer.ts';
import { addonForTests } from '../support/addon.ts';
import { makeCertificate } from '../support/certificates.ts';
import { encryptKeystore, LIGHT_PBKDF2, testSecret } from '../support/keys.ts';
import { startPostgres } from '../support/postgres.ts';

const EXAMPLES = join(import.meta.dirname, '../../docs/examples');
const OF_ENCLAVES = ['ceremony.yaml', 'enclave.yaml'];
const PLAIN = ['10-validators.yaml', '1000-validators.yaml', 'strongroom.yaml'];
const textOf = (name: string): string => readFileSync(join(EXAMPLES, name), 'utf8');
/** They ask for the filter of system calls, which the addon sets. */
const runs = addonForTests() && process.platform === 'linux';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-examples-'));
  for (const name of ['keys', 'passwords', 'tls', 'state']) mkdirSync(join(folder, name));
  writeFileSync(
    join(folder, 'keys/validator-1.json'),
    JSON.stringify(encryptKeystore(testSecret(1), 'TEST password', LIGHT_PBKDF2)),
  );
  writeFileSync(join(folder, 'passwords/validator-1.txt'), 'TEST password');
  writeFileSync(join(folder, 'keystores.password'), 'TEST password');
  const { cert, key } = makeCertificate(folder, 'made');
  writeFileSync(join(folder, 'tls/cert.pem'), readFileSync(cert));
  writeFileSync(join(folder, 'tls/key.pem'), readFileSync(key));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Every `env:NAME` of the example has a value; ports are free ones. */
async function check(name: string, given: Readonly<Record<string, string>> = {}) {
  const yaml = textOf(name);
  const path = join(folder, name);
  writeFileSync(
    path,
    yaml.replaceAll('/etc/strongroom', folder).replaceAll('/var/lib/strongroom', join(folder, 'state')),
  );
  const secrets = [...yaml.matchAll(/env:([A-Z_]+)/g)].map(([, variable = '']) => [
    variable,
    `TEST ${variable} of the example`,
  ]);
  const ports = ['SERVER', 'METRICS', ...(/^tls:/m.test(yaml) ? ['TLS'] : [])].map((section) => [
    `SVC_${section}__LISTEN_PORT`,
    '0',
  ]);
  const env = { ...Object.fromEntries([...secrets, ...ports]), ...given };
  return { path, env, ...(await runStrongroom(['server', '--check', '-c', path], { env, cwd: folder })) };
}

it('every example of a configuration is checked by a test', () => {
  const checked = [...OF_ENCLAVES, ...PLAIN, '10000-validators.yaml', 'fleet.yaml'].sort();
  expect(
    readdirSync(EXAMPLES)
      .filter((name) => name.endsWith('.yaml'))
      .sort(),
  ).toEqual(checked);
});

it.runIf(runs).each(PLAIN)('%s is valid with the files and secrets that it names', async (name) => {
  const { code, stdout, stderr } = await check(name);
  expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: 'strongroom: the configuration is valid\n' });
});

it.runIf(runs)('10000-validators.yaml is valid over a database of PostgreSQL', async () => {
  const server = await startPostgres();
  try {
    const given = { SLASHING_DATABASE_URL: server.url(await server.createDatabase()) };
    const { code, stderr } = await check('10000-validators.yaml', given);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stderr).toContain('anti_slashing.url names a store that is new');
  } finally {
    await server.close();
  }
});

it.runIf(runs && missingDynamoDB() === undefined)(
  'fleet.yaml makes its tables, and is valid over them and its custody keys',
  async () => {
    const world = await startCustody();
    try {
      const { ceremony } = parse(textOf('fleet.yaml')) as { ceremony: { kms_keys: { arns: string[] }[] } };
      const given = world.environment();
      const before = await check('fleet.yaml', given);
      expect(before.code).toBe(78);
      expect(before.stderr).toContain('signer_state.table names a table that cannot be used: it does not exist');
      for (const { arns } of ceremony.kms_keys) world.kms.createKey(arns);
      const made = await runStrongroom(['setup', 'tables', '-c', before.path], { env: before.env, cwd: folder });
      expect(made).toMatchObject({ code: 0 });
      const { code, stderr } = await check('fleet.yaml', given);
      expect({ code, stderr }).toMatchObject({ code: 0 });
      expect(stderr).toContain('anti_slashing.table names a store that is new');
    } finally {
      await world.close();
    }
  },
);
