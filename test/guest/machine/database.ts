// A parent that would have the slashing database of its enclave, on QEMU's machine. PostgreSQL is real, over TLS, with
// the roles of docs/guides/postgres.md. What the parent hands over and what it relays is all in its hands: with a
// sealed password it has no way in, and cannot lead the enclave to a database of its own; with one that it reads, the
// records are its own, and the image does not start. All secrets are TEST secrets.

import assert from 'node:assert/strict';
import { chownSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { kmsClientOptions } from '../../../rehearsal/kms/server.ts';
import { createKms } from '../../../signer/aws/kms.ts';
import { TABLE_CREDENTIALS_CONTEXT } from '../../../signer/aws/table-credentials.ts';
import { guideSql } from '../../support/guide-sql.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { unprivilegedAccount } from '../../support/postgres-installation.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { makeAuthority } from '../appliance/authority.ts';
import type { Appliance, ApplianceOptions } from '../appliance/image.ts';
import type { StandIns } from '../appliance/programs/stand-ins.ts';
import { CUSTODY_KEYS, DYNAMODB_HOST, KMS_HOST } from '../appliance/settings.ts';
import type { Checks } from '../outside-checks.ts';
import { connectToEnclave, type Found, giveAccess, type MachineParts, ready, vote } from './life.ts';
import { conditionsOf, type ParentSide, startParentSide, startStandInsOf } from './parent.ts';
import { DATABASE, databaseConfiguration } from './settings.ts';

export type BuildImage = (
  name: string,
  options: Pick<ApplianceOptions, 'configuration' | 'after' | 'hosts'>,
) => Promise<Appliance>;

/** Starts a machine on the image, and ends it when `live` has. */
export type BootMachine = (
  appliance: Appliance,
  options: {
    readonly console: string;
    readonly startParent: (unixPath: string) => Promise<ParentSide>;
    /** Otherwise the check that runs has failed when the machine ends. */
    readonly mayEnd?: boolean;
  },
  live: (parts: MachineParts) => Promise<void>,
) => Promise<void>;

interface DatabaseWorld {
  readonly build: BuildImage;
  readonly boot: BootMachine;
  readonly after: Appliance;
  /** For consoles and certificates. */
  readonly folder: string;
}

const PASSWORD = 'TEST-password-of-the-slashing-database';
const TABLE_USER = { access_key_id: 'AKIATESTOFTHETABLES0', secret_access_key: 'TEST-secret-of-the-table-user' };

export async function livesOverADatabase(checks: Checks, { build, boot, after, folder }: DatabaseWorld): Promise<void> {
  const certificates = join(folder, 'machine-database-tls');
  mkdirSync(join(certificates, 'hostile'), { recursive: true });
  const tls = makeAuthority(certificates, [DYNAMODB_HOST, KMS_HOST, DATABASE.host]);
  const server = await startDatabase(tls);
  const standIns = await startStandInsOf({ registers: after.registers, tls });
  try {
    const configuration = databaseConfiguration(await sealed(standIns));
    const appliance = await build('machine-database', { hosts: [DATABASE.host], after: { ...after, tls } });
    // Whatever configuration it has, KMS gives this image its keys: the image alone judges what it is handed.
    const { PCR16: _, ...conditions } = conditionsOf(appliance.registers);
    for (const arn of CUSTODY_KEYS) standIns.kms.requireAttestation(arn, conditions);
    // Of the parent's own: everything is as in the real one but the authority of its certificate.
    const hostile = await startDatabase(makeAuthority(join(certificates, 'hostile'), [DATABASE.host]));
    const inHands = (handed: string, port: number, name: string) => ({
      console: join(folder, `machine-database-${name}.log`),
      startParent: (unixPath: string) =>
        startParentSide(standIns, unixPath, { configuration: handed, further: { [DATABASE.vsockPort]: port } }),
    });
    const refuses = (handed: string, port: number, name: string, why: RegExp) =>
      boot(appliance, { ...inHands(handed, port, name), mayEnd: true }, async ({ ended, parent, consoleFile }) => {
        await ended;
        assert.match(JSON.stringify(parent.lines) + readFileSync(consoleFile, 'utf8'), why);
      });
    try {
      // First: a later boot over a store that the state table does not know waits until no other signs, and jumps.
      await boot(appliance, inHands(configuration, server.port, 'sealed'), (parts) =>
        lifeWithASealedPassword(checks, { parts, server, handed: configuration }),
      );
      await checks.check('a parent that hands over the database’s password gets no signer', () =>
        refuses(databaseConfiguration({}, PASSWORD), server.port, 'password', /parent would write the tables/),
      );
      await checks.check('nor one that leads the enclave to a database of its own', () =>
        refuses(configuration, hostile.port, 'other', /unable to (verify|get)|self-signed certificate/),
      );
    } finally {
      await hostile.close();
    }
  } finally {
    await standIns.close();
    await server.close();
  }
}

async function startDatabase({ certificate, key }: Appliance['tls']): Promise<PostgresServer> {
  const { uid, gid } = unprivilegedAccount();
  if (uid !== undefined && gid !== undefined) for (const path of [certificate, key]) chownSync(path, uid, gid);
  const server = await startPostgres({ settings: { ssl: 'on', ssl_cert_file: certificate, ssl_key_file: key } });
  const { name, role } = DATABASE;
  await server.query('postgres', `CREATE ROLE slashing_owner; CREATE ROLE ${role} LOGIN PASSWORD '${PASSWORD}'`);
  await server.query('postgres', `CREATE DATABASE ${name} OWNER slashing_owner`);
  await server.query(name, `BEGIN; ${guideSql('enclave, before its first boot')} COMMIT`);
  return server;
}

async function sealed({ kms: server }: StandIns): Promise<object> {
  const [keyArn = ''] = CUSTODY_KEYS;
  const kms = createKms(kmsClientOptions(server, [keyArn]), { log: recordingLog() });
  const contents = Buffer.from(JSON.stringify({ ...TABLE_USER, database_password: PASSWORD }));
  const answer = await kms.encrypt([keyArn], contents, TABLE_CREDENTIALS_CONTEXT);
  kms.close();
  assert(answer.ok, 'the stand-in encrypts');
  return { table_credentials: { ciphertext: answer.bytes.toString('base64'), key_arn: keyArn } };
}

async function lifeWithASealedPassword(
  { check }: Checks,
  { parts, server, handed }: { parts: MachineParts; server: PostgresServer; handed: string },
): Promise<void> {
  const found: Found = { tokens: [] };
  await check(
    'with a sealed password the image signs on the database, and refuses a second vote for a target',
    async () => {
      await ready(parts);
      found.client = await connectToEnclave(parts.parent);
      await giveAccess(parts, found);
      await vote(found);
    },
  );
  await check('its sessions are the role’s, over TLS', async () => {
    const text = `SELECT DISTINCT usename, ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
      WHERE datname = '${DATABASE.name}' AND usename = '${DATABASE.role}'`;
    assert.deepEqual(await server.query('postgres', text), [{ usename: DATABASE.role, ssl: true }]);
  });
  await check('the parent never had the password: with all that it was given it is let in nowhere', async () => {
    const seen = handed + JSON.stringify(parts.parent.lines) + readFileSync(parts.consoleFile, 'utf8');
    assert(!seen.includes(PASSWORD), 'the password was shown');
    for (const password of ['', TABLE_USER.secret_access_key, 'TEST-secret-access-key']) {
      await assert.rejects(connectAsParent(server, password), /password/);
    }
  });
  await found.client?.close();
}

async function connectAsParent({ port }: PostgresServer, password: string): Promise<void> {
  const { role: user, name: database } = DATABASE;
  const client = new Client({ host: '127.0.0.1', port, user, password, database, ssl: { rejectUnauthorized: false } });
  client.on('error', () => undefined);
  await client.connect();
  await client.end();
}
