// One key and the signers that share its table. Whoever imports it has a world of its own in every test.

import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type DynamoDBServer, startDynamoDB } from '../../../rehearsal/dynamodb.ts';
import type { KeyStatus } from '../../../signer/keys/table/types.ts';
import { newTableKey } from '../../support/key-table.ts';
import { createManagedWorld, type ManagedSigner, type ManagedWorld } from '../../support/managed-signer.ts';

export const KEY = newTableKey(1);
export const { publicKey, secretKey } = KEY;

export let server: DynamoDBServer;
export let world: ManagedWorld;

beforeAll(async () => {
  server = await startDynamoDB();
});

afterAll(() => server.close());

beforeEach(async () => {
  world = await createManagedWorld(server);
});

afterEach(() => world.close());

export const statusOfRow = async ({ table }: ManagedSigner): Promise<KeyStatus | undefined> =>
  (await table.get([publicKey])).get(publicKey)?.status;
