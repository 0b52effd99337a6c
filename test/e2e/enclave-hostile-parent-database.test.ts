// A parent that would have the slashing database of its enclave. It reads the configuration that it hands over, so a
// password in it is its own: with that it puts rows back between two instances of the image, and has a slashable pair.
// Sealed, it has no way in. PostgreSQL is real, over TLS, with the roles of docs/guides/postgres.md. TEST secrets.

import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../common/observe/clock.ts';
import { createLogger } from '../../common/observe/logger.ts';
import { kmsClientOptions } from '../../rehearsal/kms/server.ts';
import { createKms } from '../../signer/aws/kms.ts';
import { TABLE_CREDENTIALS_CONTEXT } from '../../signer/aws/table-credentials.ts';
import { openSlashingBackend, SHARED_STORES } from '../../signer/boot/slashing-protection/store.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { loadGood } from '../config/loading.ts';
import { type AttestedClient, attested, registersOf } from '../support/attested-client.ts';
import { makeCertificate } from '../support/certificates.ts';
import type { Parent } from '../support/enclave-parent.ts';
import { ALIAS_PORT, type EnclaveProcess } from '../support/enclave-process.ts';
import { type EnclaveWorld, startEnclaveWorld } from '../support/enclave-world.ts';
import { guideSql } from '../support/guide-sql.ts';
import { ownAddress } from '../support/own-address.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { unprivilegedAccount } from '../support/postgres-installation.ts';
import { recordingLog } from '../support/recording-log.ts';
import { attestation, rootOf } from '../support/requests.ts';

const HOST = 'db.strongroom.test';
const VSOCK_PORT = 8003;
const PASSWORD = 'TEST-password-of-the-slashing-database';
const AWS = { access_key_id: 'AKIATESTOFTHETABLES0', secret_access_key: 'TEST-secret-of-the-table-user' };
const SEALED = { ...AWS, database_password: PASSWORD };
const logger = createLogger({ level: 'error,audit=off', format: 'text', color: false }, { write: () => undefined });

let folder: string;
let world: EnclaveWorld;
let server: PostgresServer;
let keyArn: string;
let authority: string;
let stranger: string;
let database: string;
const started: { parent: Parent; enclave: EnclaveProcess; client?: AttestedClient }[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-database-'));
  const { cert, key } = makeCertificate(folder, 'database', `DNS:${HOST}`);
  const { uid, gid } = unprivilegedAccount();
  if (uid !== undefined && gid !== undefined) for (const path of [folder, cert, key]) chownSync(path, uid, gid);
  [authority, stranger] = [cert, makeCertificate(folder, 'stranger', `DNS:${HOST}`).cert].map((path) =>
    readFileSync(path, 'utf8'),
  ) as [string, string];
  server = await startPostgres({ settings: { ssl: 'on', ssl_cert_file: cert, ssl_key_file: key } });
  world = await startEnclaveWorld();
  keyArn = world.ceremony.kms_keys[0]?.arns[0] ?? '';
  await asAdministrator('postgres', `CREATE ROLE slashing_owner; CREATE ROLE signer LOGIN PASSWORD '${PASSWORD}'`);
  database = await newDatabase();
});
afterEach(stopAll);
afterAll(async () => {
  await world?.close();
  await server?.close();
  rmSync(folder, { recursive: true });
});

async function stopAll(): Promise<void> {
  for (const { parent, enclave, client } of started.splice(0)) {
    await client?.close();
    await enclave.stop(); // in order: the next start joins its store without a jump
    await parent.close();
  }
}

const asAdministrator = (of: string, text: string) => server.query(of, text);

/** The guide's statements of this name, for a database of the test. */
const asTheGuideSays = (of: string, ...names: readonly string[]) =>
  asAdministrator(
    of,
    `BEGIN; ${names.map(guideSql).join('').replaceAll('ON DATABASE slashing', `ON DATABASE ${of}`)} COMMIT`,
  );

async function newDatabase(): Promise<string> {
  const name = await server.createDatabase();
  await asAdministrator('postgres', `ALTER DATABASE ${name} OWNER TO slashing_owner`);
  await asTheGuideSays(name, 'enclave, before its first boot');
  return name;
}

async function seal(contents: object): Promise<object> {
  const kms = createKms(kmsClientOptions(world.custody.kms, [keyArn]), { log: recordingLog() });
  const answer = await kms.encrypt([keyArn], Buffer.from(JSON.stringify(contents)), TABLE_CREDENTIALS_CONTEXT);
  kms.close();
  if (!answer.ok) throw new Error('the stand-in encrypts');
  return { table_credentials: { ciphertext: answer.bytes.toString('base64'), key_arn: keyArn } };
}

const UNSAFE = { unsafe_parent_writes_tables: true };
const urlOf = (name: string, user = 'signer', parameters = '') =>
  `postgres://${user}@${HOST}:${ALIAS_PORT}/${name}${parameters}`;

/** A bound of ten minutes: however slow the machine, the start before has ended in order within it. */
function yamlOf(nitro: object, url: string): string {
  const own = { hostname: HOST, loopback: ownAddress(5), vsock_port: VSOCK_PORT, port: ALIAS_PORT };
  return world.yaml({
    signer_state: { backend: 'dynamodb', table: world.stateTable, refresh_interval_seconds: 120 },
    anti_slashing: { backend: 'postgres', url, jump_at_boot: false },
    tee: { platform: 'nitro', nitro: { egress: { endpoints: [...world.endpoints, own] }, ...nitro } },
  });
}

/** @param named what the image has for the host of the database; null: nothing */
async function start(yaml: string, named: string | null = authority) {
  const parent = await world.startParent(yaml, { database: { vsockPort: VSOCK_PORT, port: server.port } });
  const authorities = named === null ? {} : { [HOST]: [named] };
  const enclave = await world.startEnclave({ authorities, isAwsPlain: true });
  const running: (typeof started)[number] = { parent, enclave };
  started.push(running);
  return running;
}

async function startReady(yaml: string, { isToSign = true } = {}) {
  const running = await start(yaml);
  await (isToSign ? running.parent.readyToSign() : running.parent.said('ready'));
  running.client = await attested(running.parent.tlsUrl, world.pki, registersOf(running.enclave.nsm));
  return { ...running, client: running.client };
}

/** What the parent reads in its log of a start that failed. */
async function failureOf(yaml: string, named?: string | null): Promise<string> {
  const { parent, enclave } = await start(yaml, named);
  expect(await enclave.exited).not.toBe(0);
  const said = JSON.stringify(parent.lines);
  await stopAll();
  return said;
}

/** With what the parent has: a URL, its own AWS secrets, and nothing. */
async function connectAsParent(password: string): Promise<Client> {
  const ssl = { rejectUnauthorized: false };
  const client = new Client({ host: '127.0.0.1', port: server.port, user: 'signer', password, database, ssl });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

describe('a slashing database whose password is sealed', () => {
  let token: string;
  let signPath: string;

  it('is opened by the enclave alone, over TLS, and gets its tables from it', async () => {
    const yaml = yamlOf(await seal(SEALED), urlOf(database));
    const { parent, enclave, client } = await startReady(yaml);
    const root = await world.custody.rootToken(world.stateTable);
    await client.call('/api/v1/auth/policies', { token: root, body: { name: 'all', rules: [{ effect: 'allow' }] } });
    const made = await client.call('/api/v1/auth/tokens', { token: root, body: { policies: ['all'] } });
    token = String(made.json['token']);
    const generated = await client.call('/api/v1/chamber/keys/generate-keys', { token, body: { count: 1 } });
    signPath = `/api/v1/eth2/sign/${(generated.json['keys'] as [{ pubkey: string }])[0].pubkey}`;
    expect((await client.call(signPath, { token, body: attestation() })).status).toBe(200);

    const status = (await client.call('/api/v1/chamber/status', { token: root })).json;
    expect(status['tee']).toMatchObject({ parent_writes_tables: false });
    expect(status['slashing']).toMatchObject({ warning: expect.stringContaining('sealed credentials') });
    const sessions = await asAdministrator(
      'postgres',
      `
      SELECT DISTINCT usename, ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE datname = '${database}'`,
    );
    expect(sessions).toEqual([{ usename: 'signer', ssl: true }]);

    expect(yaml + JSON.stringify(parent.lines) + enclave.console()).not.toContain(PASSWORD);
    for (const password of ['', AWS.secret_access_key, 'TEST-secret-access-key'])
      await expect(connectAsParent(password)).rejects.toThrow(/password/);
  });

  it('is taken from its role while it runs, which then signs on with the rights of the guide, also after a start', async () => {
    const yaml = yamlOf(await seal(SEALED), urlOf(database));
    const first = await startReady(yaml);
    await asTheGuideSays(database, 'enclave, after its first boot', 'signer role');
    const vote = (target: number, head: number) => ({
      token,
      body: attestation({ source: target - 1, target, head: rootOf(head) }),
    });
    expect((await first.client.call(signPath, vote(421_900, 1))).status).toBe(200);
    await stopAll();

    const second = await startReady(yaml);
    const other = await second.client.call(signPath, vote(421_900, 2));
    expect([other.status, other.json['reason']]).toEqual([412, 'double_vote']);
    expect((await second.client.call(signPath, vote(421_901, 1))).status).toBe(200);

    const client = await connectAsParent(PASSWORD);
    try {
      for (const text of ['DELETE FROM strongroom.validators', 'TRUNCATE strongroom.blocks', 'CREATE SCHEMA mine'])
        await expect(client.query(text)).rejects.toThrow('permission denied');
    } finally {
      await client.end();
    }
  });
});

describe('an enclave does not start', () => {
  it.each([
    ['with the password in the URL', {}, () => urlOf(database, `signer:${PASSWORD}`), /parent would write the tables/],
    ['with none, and no word', {}, () => urlOf(database), /parent would write the tables/],
    [
      'with both',
      SEALED,
      () => urlOf(database, `signer:${PASSWORD}`),
      /"anti_slashing\.url","problem":"has a password/,
    ],
    ['without TLS', SEALED, () => urlOf(database, 'signer', '?sslmode=disable'), /says sslmode=disable/],
    ['with TLS to anyone', SEALED, () => urlOf(database, 'signer', '?sslmode=require'), /says sslmode=require/],
    [
      'when the tables’ credentials alone are sealed',
      AWS,
      () => urlOf(database),
      /has other members: encrypt.*database_password/,
    ],
    ['when the password alone is', { database_password: PASSWORD }, () => urlOf(database), /has other members/],
    [
      'when it is another role’s',
      { ...AWS, database_password: `${PASSWORD}-no` },
      () => urlOf(database),
      /password authentication failed/,
    ],
  ])('%s', async (_, contents, url, said) => {
    const nitro = Object.keys(contents).length === 0 ? {} : await seal(contents);
    expect(await failureOf(yamlOf(nitro, url()))).toMatch(said);
  });

  it('when the image names no authority of the database, or the parent leads to a database of its own', async () => {
    const yaml = yamlOf(await seal(SEALED), urlOf(database));
    expect(await failureOf(yaml, null)).toContain('for which this image names no authority');
    expect(await failureOf(yaml, stranger)).toMatch(/self-signed certificate|DEPTH_ZERO/);
  });

  it('on tables that a host made: no host has the key of their codes', async () => {
    const other = await newDatabase();
    const env = { SVC_ANTI_SLASHING__URL: server.url(other, 'sslmode=disable') };
    const { anti_slashing } = loadGood({ yaml: 'anti_slashing: {backend: postgres}', env });
    const parts = { stores: SHARED_STORES, network: publicNetwork('mainnet') };
    const host = await openSlashingBackend(anti_slashing, parts, { logger, clock: systemClock });
    await host.close();
    await asTheGuideSays(other, 'signer role');
    expect(await failureOf(yamlOf(await seal(SEALED), urlOf(other)))).toContain('was written with another key');
  });
});

it('a password in the configuration takes the word, which the start and the status repeat: it is the parent’s', async () => {
  const other = await newDatabase();
  const { parent, client } = await startReady(yamlOf(UNSAFE, urlOf(other, `signer:${PASSWORD}`)), { isToSign: false });
  expect(JSON.stringify(parent.lines)).toContain('whoever controls the parent instance writes the tables');
  const root = await world.custody.rootToken(world.stateTable);
  const status = (await client.call('/api/v1/chamber/status', { token: root })).json;
  expect(status['tee']).toMatchObject({ parent_writes_tables: true });
  expect(status['slashing']).toMatchObject({ warning: expect.stringContaining('holds the slashing records') });
  await (await connectAsParent(PASSWORD)).end();
});
