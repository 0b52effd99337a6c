// A real PgBouncer in front of a test's PostgreSQL. It refuses root, so under root it runs as `nobody`.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { freePort } from './free-port.ts';
import type { PostgresServer } from './postgres.ts';
import { own, USER, unprivilegedAccount } from './postgres-installation.ts';
import { exited, launchGuarded } from './postgres-process.ts';

export interface Pooler {
  url(database: string): string;
  /** A statement on its own console, as its administrator. */
  console(text: string): Promise<void>;
  close(): Promise<void>;
}

/** Lines of its section [pgbouncer]; what docs/guides/postgres.md says is set. */
export type PoolerSettings = Readonly<Record<string, string | number>>;

export async function startPooler(server: PostgresServer, settings: PoolerSettings): Promise<Pooler> {
  const account = unprivilegedAccount();
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-pgbouncer-'));
  const port = await freePort();
  const file = (name: string, lines: readonly string[]): string => {
    const path = join(folder, name);
    writeFileSync(path, `${lines.join('\n')}\n`, { mode: 0o600 });
    own(path, account);
    return path;
  };
  const users = file('users', [`"${USER}" "${server.password}"`]);
  const whole = {
    ...{ listen_addr: '127.0.0.1', listen_port: port, unix_socket_dir: '', auth_type: 'scram-sha-256' },
    ...{ auth_file: users, admin_users: USER },
    ...settings,
  };
  const ini = file('pgbouncer.ini', [
    '[databases]',
    `* = host=127.0.0.1 port=${server.port}`,
    '[pgbouncer]',
    ...Object.entries(whole).map(([name, value]) => `${name} = ${value}`),
  ]);
  own(folder, account);
  const child = await launchGuarded(['pgbouncer', ini], {
    options: { ...account, cwd: folder },
    isReady: /process up/,
  });
  const url = (database: string): string => {
    const url = new URL(server.url(database));
    url.port = String(port);
    return url.href;
  };
  return {
    url,
    async console(text) {
      const { password } = server;
      const client = new Client({ host: '127.0.0.1', port, user: USER, password, database: 'pgbouncer', ssl: false });
      await client.connect();
      await client.query(text);
      await client.end();
    },
    async close() {
      child.stdin?.end('TERM\n');
      await exited(child);
      rmSync(folder, { recursive: true });
    },
  };
}
