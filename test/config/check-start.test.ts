// `server --check` against what a start would meet: ports that are taken, stores of another network, databases and
// tables that are not there. Each is what the start itself would say, and the check changes nothing.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { missingDynamoDB } from '../../rehearsal/dynamodb.ts';
import { type RunningSigner, runStrongroom } from '../../rehearsal/signer.ts';
import { deploy, FULL_ACCESS } from '../support/deployment.ts';
import { testSecret, writeKeystore } from '../support/keys.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { TEST_TOKEN } from '../support/requests.ts';
import { withoutPlace } from '../support/said-of-place.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-check-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const AUTH = { static_auth: { policies: [FULL_ACCESS], tokens: [{ secret: TEST_TOKEN, policies: ['full'] }] } };
const listen = (port: number) => ({ listen_address: '127.0.0.1', listen_port: port });
const ANY_PORT = { server: listen(0), metrics: listen(0) };

function written(config: object): string {
  const file = join(folder, 'strongroom.yaml');
  writeFileSync(file, stringify({ ...ANY_PORT, ...config }));
  return file;
}

async function check(config: object, { env = {}, args = [] as string[] } = {}) {
  const run = await runStrongroom(['server', '--check', ...args, '-c', written(config)], { env });
  const stderr = withoutPlace(run.stderr);
  return { ...run, stderr, text: `${run.stdout}${stderr}` };
}

describe('ports', () => {
  let taken: Server;
  let port: number;
  beforeAll(async () => {
    taken = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    port = (taken.address() as AddressInfo).port;
  });
  afterAll(() => taken.close());
  const store = () => ({ ...AUTH, anti_slashing: { path: join(folder, 'ports.sqlite') } });

  it('one that is taken is named with its option, by --check and by the start', async () => {
    const config = { ...store(), metrics: listen(port) };
    const said = `metrics.listen_port is ${port}, where another process listens already, on 127.0.0.1 (EADDRINUSE)`;
    const { code, text } = await check(config);
    expect(code).toBe(78);
    expect(text).toContain(`has 1 violation:\n\n  ${said}`);
    expect(text).toContain(`ss -ltnp 'sport = :${port}'`);
    expect(readdirSync(folder)).toEqual(['strongroom.yaml']);
    const start = await runStrongroom(['server', '-c', written({ ...config, logging: { level: 'off' } })]);
    expect(start.code).toBe(1);
    expect(start.stderr).toContain(`strongroom: cannot start: listeners: ${said}: stop that process`);
  });

  it('an address that is not of this machine is named, too; with --offline none is looked at', async () => {
    const config = { ...store(), server: { listen_address: '192.0.2.1', listen_port: 0 }, metrics: listen(port) };
    const { code, text } = await check(config);
    expect(code).toBe(78);
    expect(text).toContain('server.listen_address is 192.0.2.1, no address of this machine (EADDRNOTAVAIL)');
    expect(text).toContain('has 2 violations');
    expect((await check(config, { args: ['--offline'] })).code).toBe(0);
  });
});

describe('a signer that runs', () => {
  let signer: RunningSigner;
  const deployment = deploy(1);
  const database = join(deployment.folder, 'slashing_protection.sqlite');
  beforeAll(async () => {
    signer = await deployment.start();
  });
  afterAll(() => signer.stop());
  const portOf = (url: string) => Number(new URL(url).port);

  it('with this configuration is no obstacle to the check of another version', async () => {
    const config = {
      ...deployment.config,
      server: listen(portOf(signer.url)),
      metrics: listen(portOf(signer.metricsUrl)),
    };
    const { code, stdout, stderr } = await check(config);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'strongroom: the configuration is valid\n' });
    expect(stderr).toMatch(/^warning: server\.listen_port and the ports .* are in use by a signer that runs.*\n$/);
  });

  it('with another store is another signer: a start could not have its ports', async () => {
    const ports = { server: listen(portOf(signer.url)), metrics: listen(portOf(signer.metricsUrl)) };
    const config = { ...deployment.config, ...ports, anti_slashing: { path: join(deployment.folder, 'other.sqlite') } };
    const { code, text } = await check(config);
    expect(code).toBe(78);
    const said = text.replaceAll(/\s+/g, ' ');
    expect(said).toContain(
      `server.listen_port is ${portOf(signer.url)}, where another signer listens: no process has ` +
        `${join(deployment.folder, 'other.sqlite')} open, the store here`,
    );
    expect(said).toContain('1 violation');
    expect(said).not.toContain('or a similar one');
  });

  it('has its database for itself', async () => {
    const { code, text } = await check({ ...deployment.config });
    expect(code).toBe(78);
    expect(text).toContain(
      'anti_slashing.path names a store that cannot be used: the database is in use by another process: stop it first',
    );
  });

  it('leaves a database of its network, which another network’s signer cannot use; nothing is left beside it', async () => {
    await signer.stop();
    const before = readdirSync(deployment.folder);
    expect(await check({ ...deployment.config })).toMatchObject({ code: 0, stderr: '' });
    const keys = join(folder, 'keystores');
    mkdirSync(keys);
    for (const name of ['a', 'b']) writeKeystore(keys, name, testSecret(7), 'right');
    const sources = { filesystem: { paths: [keys] } };
    const unrecorded = await check({ ...deployment.config, key_sources: sources });
    expect(unrecorded.stderr).toContain('no readable record of 1 key of the key files: if they signed elsewhere');
    expect(unrecorded.stderr).toContain(`in ${join(keys, 'a.json')} and ${join(keys, 'b.json')}`);
    const { code, text } = await check({ ...deployment.config, network: 'hoodi' });
    expect(code).toBe(78);
    expect(text).toContain('the database is of another network, mainnet, not of hoodi (genesis validators root)');
    expect(text).toContain('to do:  correct `network`, or give each network a store of its own');
    expect(readdirSync(deployment.folder)).toEqual(before);
    writeFileSync(database, 'no database');
    expect((await check({ ...deployment.config })).text).toContain('cannot be used: the database cannot be read');
  });
});

describe('a PostgreSQL database', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());
  const on = (url: string, network = 'mainnet') => ({ ...AUTH, network, anti_slashing: { backend: 'postgres', url } });

  it('that is not there, or lets nobody in, is said with what to do', async () => {
    const url = server.url(await server.createDatabase());
    const refused = await check(on(url.replace(`:${server.port}`, ':1')));
    expect(refused.code).toBe(78);
    expect(refused.text).toMatch(/anti_slashing\.url names a store that cannot be used: .*ECONNREFUSED/);
    expect(refused.text).toContain('to do:  start the database, or correct host and port');
    const missing = await check(on(url.replace(/\/[a-z0-9_]+(\?|$)/, '/not_there$1')));
    expect(missing.text).toContain('to do:  create the database, or correct its name');
    const password = await check(on(url.replace(/:[^:@/]+@/, ':wrong@')));
    expect(password.text).toContain('to do:  correct user and password');
    for (const { text } of [refused, missing, password]) expect(text).not.toContain(server.password);
  });

  it('that is new is left new; of another network, or without grants, it is refused', async () => {
    const database = await server.createDatabase();
    const url = server.url(database);
    const fresh = await check(on(url));
    expect(fresh.code).toBe(0);
    expect(fresh.stderr).toMatch(/^warning: anti_slashing\.url names a store that is new/);
    const schemas = () => server.query(database, "SELECT 1 FROM pg_namespace WHERE nspname = 'strongroom'");
    expect(await schemas()).toEqual([]);

    expect((await runStrongroom(['slashing', 'status', '-c', written(on(url))])).code).toBe(0); // makes the tables
    expect(await schemas()).toHaveLength(1);
    expect(await check(on(url))).toMatchObject({ code: 0, stderr: '' });
    const other = await check(on(url, 'hoodi'));
    expect(other.code).toBe(78);
    expect(other.text).toContain(
      'the slashing database is of another network, mainnet, not of hoodi (genesis validators root)',
    );

    await server.query(database, "CREATE ROLE signer_of_check LOGIN PASSWORD 'TEST'");
    await server.query(database, 'GRANT USAGE ON SCHEMA strongroom TO signer_of_check');
    await server.query(database, 'GRANT SELECT ON ALL TABLES IN SCHEMA strongroom TO signer_of_check');
    const asSigner = url.replace(/\/\/[^@]+@/, '//signer_of_check:TEST@');
    const lacking = await check(on(asSigner));
    expect(lacking.code).toBe(78);
    expect(lacking.text).toContain('lacks UPDATE on strongroom.store, INSERT on strongroom.validators');
  });
});

describe('tables without what AWS needs', () => {
  const config = {
    signer_state: { backend: 'dynamodb', table: 'state' },
    key_sources: { dynamodb: { table: 'keys' } },
    anti_slashing: { backend: 'dynamodb', table: 'slashing' },
    ceremony: parse(readFileSync(join(import.meta.dirname, '../../docs/examples/ceremony.yaml'), 'utf8')) as object,
  };
  // Neither files nor an instance say anything.
  const nothing = {
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_CONFIG_FILE: '/dev/null',
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  };

  it.each([
    ['a region', {}, 'AWS_REGION is not set to a region', 'export AWS_REGION='],
    [
      'credentials',
      { AWS_REGION: 'eu-central-1' },
      'no AWS credentials were found',
      'export AWS_PROFILE, or AWS_ACCESS_KEY_ID',
    ],
  ])('say %s once, and what to export; nothing is asked', async (_, environment, problem, remedy) => {
    const env = { ...nothing, ...environment };
    const { code, text } = await check(config, { env });
    expect(code).toBe(78);
    expect(text).toContain(`has 1 violation:\n\n  AWS: ${problem}`);
    expect(text).toMatch(new RegExp(`to do: +${remedy}`));
    const start = await runStrongroom(['server', '-c', written({ ...config, logging: { level: 'off' } })], { env });
    expect(start.code).toBe(1);
    expect(start.stderr).toContain(`the state table "state" cannot be used: ${problem}`);
    expect(start.stderr).toContain(remedy);
    const alone = { ...AUTH, anti_slashing: config.anti_slashing, logging: { level: 'off' } };
    const slashing = await runStrongroom(['server', '-c', written(alone)], { env });
    expect([slashing.code, slashing.stderr]).toEqual([
      1,
      expect.stringContaining(`slashing protection: anti_slashing.table slashing: ${problem}`),
    ]);
    expect(slashing.stderr).toContain(remedy);
  });
});

describe.skipIf(missingDynamoDB() !== undefined)('tables and custody keys', () => {
  let world: CustodyWorld;
  beforeAll(async () => {
    world = await startCustody();
  });
  afterAll(() => world.close());

  it('fresh ones are fine, a sealed one is said, and one that is missing is refused', async () => {
    const table = await world.createTable();
    const ceremony = world.createCeremony({ keys: 2, threshold: 2 });
    const config = world.configuration(table, ceremony);
    const env = world.environment();
    const fresh = await check(config, { env });
    expect(fresh.code).toBe(0);
    expect(fresh.text).toContain('anti_slashing.table names a store that is new');
    expect(await world.row(table, 'MASTER_KEY')).toBeUndefined();

    const latch = { pk: { S: 'SEAL_OVERRIDE' }, reason: { S: 'drill' }, sealed_at: { S: '2026-11-22T10:00:00.000Z' } };
    await world.putRow(table, latch);
    const sealed = await check(config, { env });
    expect(sealed.code).toBe(0);
    expect(sealed.stderr).toMatch(
      /signer_state\.table names a sealed table: .*2026-11-22T10:00:00.000Z, reason: drill/,
    );

    const missing = { ...config, signer_state: { backend: 'dynamodb', table: 'nowhere' } };
    const keys = { key_sources: { dynamodb: { table: 'no-keys' } } };
    const { code, text } = await check({ ...missing, ...keys }, { env });
    expect(code).toBe(78);
    expect(text).toContain('signer_state.table names a table that cannot be used: it does not exist');
    expect(text).toMatch(
      /key_sources\.dynamodb\.table names a key table that cannot be read .*\n.*\n +to do: +create it/,
    );
  });

  it('too few custody keys are refused, and a service that is not there', async () => {
    const table = await world.createTable();
    const ceremony = world.createCeremony({ keys: 2, threshold: 2 });
    const [first, second] = ceremony.kms_keys;
    const other = { arns: [first?.arns[0]?.replace(/.{4}$/, '0000') ?? ''] };
    const lacking = { ...ceremony, kms_keys: [second, other] };
    const { code, text } = await check(world.configuration(table, lacking as never), { env: world.environment() });
    expect(code).toBe(78);
    expect(text).toContain('ceremony has custody keys of which only 1 answer, and 2 are needed: kms_keys[1] not_found');

    const env = world.environment({ dynamodb: 'http://127.0.0.1:1' });
    const away = await check(world.configuration(table, ceremony), { env });
    expect(away.code).toBe(78);
    expect(away.text).toMatch(/signer_state\.table names a table that cannot be used: .*no answer in time/);
  });
});
