// The contract of the slashing backends on a real PostgreSQL; a store is a database of its own.

import { afterAll, beforeAll } from 'vitest';
import { slashingContract } from '../../contract/slashing.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { openTestBackend } from '../../support/slashing-postgres.ts';

let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(() => server.close());

slashingContract('postgres', {
  complete: true,
  manySigners: true,
  async createStore() {
    const database = await server.createDatabase();
    return {
      open: (genesisValidatorsRoot) => openTestBackend(server.url(database), { genesisValidatorsRoot }),
      async remove() {
        await server.query('postgres', `DROP DATABASE ${database} WITH (FORCE)`);
      },
    };
  },
});
