// A key is deleted on one replica while another one is asked to sign with it. Before keys were retired in the slashing
// store the other replica signed on until its next look at the table, and what it signed was missing from the file: a
// double vote on the next signer. Real processes, one key table, one slashing store. TEST keys.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { keyTableDefinition } from '../../enclave/keys/table/rows.ts';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { type RunningSigner, startSigner } from '../../rehearsal/signer.ts';
import type { InterchangeFile } from '../support/interchange.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { attestation, call, signCall } from '../support/requests.ts';

const ROUNDS = 5;
const PASSWORD = 'TEST password';
const ENABLED = { enabled: true };

let world: CustodyWorld;
let replicas: readonly [RunningSigner, RunningSigner];
let token: string;

beforeAll(async () => {
  world = await startCustody();
  const table = await world.createTable();
  await world.dynamodb.createTable(keyTableDefinition('keys'));
  const config = {
    ...world.configuration(table, world.createCeremony()),
    // The other replica looks at the table rarely: only the store can stop it in time.
    key_sources: { dynamodb: { table: 'keys', refresh_interval_seconds: 5 } },
    chamber: { keys: { import: ENABLED, lifecycle: ENABLED } },
  };
  const env = world.environment();
  const first = await startSigner({ config, env });
  replicas = [first, await startSigner({ config, env })];
  const root = await world.rootToken(table);
  await call(`${first.url}/api/v1/auth/policies`, { token: root, body: { name: 'all', rules: [{ effect: 'allow' }] } });
  token = String(
    (await call(`${first.url}/api/v1/auth/tokens`, { token: root, body: { policies: ['all'] } })).json['token'],
  );
});
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.stop()));
  await world.close();
});

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50));
}

/** Ask for votes of rising epochs until the key is not signed with any more: the highest target that was signed. */
async function signOn(replica: RunningSigner, publicKey: string): Promise<{ highest: number; last: unknown }> {
  for (let target = 11; ; target++) {
    const answer = await signCall(replica.url, publicKey, attestation({ source: target - 1, target }), { token });
    if (answer.status !== 200) return { highest: target - 1, last: answer.json['reason'] };
  }
}

it(`in ${ROUNDS} of ${ROUNDS} rounds the file holds whatever was signed anywhere`, async () => {
  const [first, second] = replicas;
  for (let round = 0; round < ROUNDS; round++) {
    const secret = testSecret(40 + round);
    const publicKey = publicKeyOf(secret);
    const body = {
      keystores: [encryptKeystore(secret, PASSWORD)],
      passwords: [PASSWORD],
      storage: { persist: true },
    };
    const path = '/api/v1/chamber/keys';
    expect((await call(`${first.url}${path}`, { token, body })).json).toMatchObject({ data: [{ status: 'imported' }] });
    const vote = attestation({ source: 9, target: 10 });
    for (const { url } of replicas) {
      await until(async () => (await signCall(url, publicKey, vote, { token })).status === 200);
    }

    const signing = signOn(first, publicKey);
    const deleted = await call(`${second.url}${path}`, { token, method: 'DELETE', body: { pubkeys: [publicKey] } });
    expect(deleted.json).toMatchObject({ data: [{ status: 'deleted' }] });
    const file = deleted.json['slashing_protection'] as InterchangeFile;
    const { highest, last } = await signing;
    // Refused by the store, or gone from this replica: either way it ended by itself.
    expect(['key_retired', 'unknown_key', 'signing_unavailable']).toContain(last);
    const targets = file.data.flatMap(({ signed_attestations: votes }) =>
      votes.map((vote) => Number(vote.target_epoch)),
    );
    expect(Math.max(...targets), `round ${round}`).toBeGreaterThanOrEqual(highest);
  }
});
