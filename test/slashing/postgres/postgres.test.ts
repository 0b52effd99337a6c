// The contract of the slashing backends on a real PostgreSQL; a store is a database of its own, which is emptied for
// the next one: to make one and to drop it costs as much as a test.

import { afterAll, beforeAll } from 'vitest';
import { slashingContract } from '../../contract/slashing.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { openTestBackend } from '../../support/slashing-postgres.ts';

let server: PostgresServer;
const emptied: string[] = [];

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(() => server.close());

slashingContract('postgres', {
  complete: true,
  manySigners: true,
  async createStore() {
    const database = emptied.pop() ?? (await server.createDatabase());
    return {
      open: (genesisValidatorsRoot) => openTestBackend(server.url(database), { genesisValidatorsRoot }),
      async remove() {
        await server.query(database, 'DROP SCHEMA IF EXISTS strongroom CASCADE');
        emptied.push(database);
      },
    };
  },
});
