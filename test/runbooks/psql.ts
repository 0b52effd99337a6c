// `psql` with one statement, at the real servers of a world.

import { parseArgs } from 'node:util';
import type { PostgresServer } from '../support/postgres.ts';
import { type Program, Refused } from './programs.ts';

const OPTIONS = {
  'no-psqlrc': { type: 'boolean', short: 'X' },
  'no-align': { type: 'boolean', short: 'A' },
  'tuples-only': { type: 'boolean', short: 't' },
  command: { type: 'string', short: 'c' },
} as const;

/** @param servers by the name that the pages' URLs have for them */
export function psqlProgram(servers: ReadonlyMap<string, PostgresServer>): Program {
  return async (args) => {
    const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
    const { hostname, pathname } = new URL(positionals[0] ?? '');
    const server = servers.get(hostname);
    if (server === undefined) throw new Refused(`psql: error: could not translate host name "${hostname}"`, 2);
    try {
      const rows = await server.query(pathname.slice(1), values.command ?? '');
      return rows.map((row) => `${Object.values(row).map(textOf).join('|')}\n`).join('');
    } catch (error) {
      throw new Refused(`psql: error: ${error}`, 2);
    }
  };
}

const textOf = (value: unknown): string => (typeof value === 'boolean' ? (value ? 't' : 'f') : String(value));
