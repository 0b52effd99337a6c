import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DynamoDBClient } from '../../enclave/aws/dynamodb.ts';
import { type DynamoDBServer, startDynamoDB } from '../support/dynamodb.ts';
import { runWorld } from '../support/fleet/world.ts';
import { openClient } from '../support/fleet/sites.ts';

let server: DynamoDBServer;
let client: DynamoDBClient;
beforeAll(async () => {
  server = await startDynamoDB();
  client = openClient(server);
});
afterAll(async () => {
  client.destroy();
  await server.close();
});

const seed = Number(process.env['SEED'] ?? 1);
const messages = Number(process.env['MESSAGES'] ?? 1000);
test(`seed ${seed}`, async () => {
  for (let index = 0; index < Number(process.env['WORLDS'] ?? 1); index++) {
    const begun = performance.now();
    const result = await runWorld({ seed: seed + index, messages, missing: process.env['MISSING'] as never }, { server, client });
    console.log(seed + index, Math.round(performance.now() - begun), 'ms', result.asked, result.moves, JSON.stringify([...result.outcomes]), result.violations.length, (result.violations[0] ?? '').slice(0, Number(process.env['CHARS'] ?? 3000)));
  }
}, 3_600_000);
