// The runbooks about custody, as they stand there, in a world with a fleet under a custody ceremony.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type CustodyRunbookWorld, startCustodyRunbooks } from './custody-world.ts';
import { rehearse } from './rehearse.ts';

/** Ahead of the present, which a jump covers. */
const EPOCH = 500_000;

let world: CustodyRunbookWorld;

beforeAll(async () => {
  world = await startCustodyRunbooks();
});
afterAll(() => world?.close());

const votes = async (target: number) =>
  (await Promise.all(world.signers.map((host, at) => world.vote(host, target + at)))).map(({ status }) => status);

it('docs/runbooks/lost-root-token.md: the new one counts, and the old one does not', async () => {
  const old = await world.custody.rootToken(world.table);
  const [first = '', second = ''] = world.signers;
  expect((await world.ask(second, '/api/v1/auth/tokens', old)).status).toBe(200);
  await rehearse('docs/runbooks/lost-root-token.md', world);
  const fresh = await world.custody.rootToken(world.table);
  for (const host of [first, second]) {
    expect((await world.ask(host, '/api/v1/auth/tokens', old)).status).toBe(403);
    expect((await world.ask(host, '/api/v1/auth/tokens', fresh)).status).toBe(200);
  }
  expect(await votes(EPOCH)).toEqual([200, 200]);
});
