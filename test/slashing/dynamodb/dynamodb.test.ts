// The slashing backend on DynamoDB, held to the contract of all backends with the minimal verdicts of EIP-3076.

import { afterAll, beforeAll } from 'vitest';
import { slashingContract } from '../../contract/slashing.ts';
import { type SlashingTables, startSlashingTables } from '../../support/slashing-dynamodb.ts';

let tables: SlashingTables;

beforeAll(async () => {
  tables = await startSlashingTables();
});

afterAll(() => tables?.close());

slashingContract('dynamodb', {
  complete: false,
  manySigners: true,
  async createStore() {
    const tableName = await tables.create();
    return { open: (root) => tables.open(tableName, { root }), remove: async () => undefined };
  },
});
