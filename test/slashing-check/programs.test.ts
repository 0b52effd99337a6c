// What `make check-slashing` finds: nothing over stores that signers share, and pairs when what they share is not one
// store.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DynamoDBServer, startDynamoDB } from '../../rehearsal/dynamodb.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { sized, testSeed } from '../support/scale.ts';
import { runDividedPrograms, runPrograms } from './programs.ts';

const options = { seed: testSeed(1), onProgress: () => undefined };

describe('signers in processes of their own', () => {
  let postgres: PostgresServer;
  let dynamodb: DynamoDBServer;
  beforeAll(async () => {
    [postgres, dynamodb] = await Promise.all([startPostgres(), startDynamoDB()]);
  });
  afterAll(() => Promise.all([postgres.close(), dynamodb.close()]));

  it('release nothing slashable through kills, freezes, moves, prunes and another network', async () => {
    const result = await runPrograms({ ...options, messages: sized(1_000, 4_000) }, { postgres, dynamodb });
    expect(result.pairs).toEqual([]);
    expect(result.trespasses).toEqual([]);
    expect(result.outcomes.get('200')).toBeGreaterThan(result.asked / 100);
  });

  it('release slashable pairs when they do not share their store', async () => {
    const result = await runDividedPrograms({ ...options, messages: 1_000 });
    expect(result.pairs.length).toBeGreaterThan(0);
  });
});
