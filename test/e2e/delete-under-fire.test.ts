// A key is deleted on one replica while another one is asked to sign with it, and somebody makes it active at the same
// moment, or long before by a request that stood still. While a retirement was a mark that could be taken back, the
// other replica signed what was missing from the file: a double vote on the next signer. Now the key's tenure has moved
// on. Real processes, one key table, one slashing store. TEST keys.
//
// TEST_SCALE=40 goes each way 200 times.

import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { type RunningSigner, startSigner } from '../../rehearsal/signer.ts';
import { keyTableDefinition } from '../../signer/keys/table/definition.ts';
import { randomNumbers } from '../support/fault-proxy.ts';
import type { InterchangeFile } from '../support/interchange.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { attestation, call, signCall } from '../support/requests.ts';
import { sized } from '../support/scale.ts';

const ROUNDS = sized(2, 5);
const ROUND_LIMIT_MS = 300_000;
const PASSWORD = 'TEST password';
const ENABLED = { enabled: true };
const KEYS = '/api/v1/chamber/keys';
/** The look at the key table comes soon, and rarely: in between only the store can stop a replica in time. */
const REFRESHES = [1, 5] as const;
const LATEST_MS = 80;
const KEYS_AT_ONCE = 10;
const WAIT = { timeout: LONGEST_WAIT_MS, interval: 50 };

let world: CustodyWorld;
beforeAll(async () => {
  world = await startCustody();
});
afterAll(() => world.close());

describe.each(REFRESHES)('with a look at the key table every %i s', (refresh) => {
  let asked: RunningSigner;
  let manager: RunningSigner;
  let token: string;
  let keys = 40 + refresh * 1_000;
  const random = randomNumbers(refresh);

  beforeAll(async () => {
    const table = await world.createTable();
    const keyTable = `keys-${refresh}`;
    await world.dynamodb.createTable(keyTableDefinition(keyTable));
    const config = {
      ...world.configuration(table, world.createCeremony()),
      key_sources: { dynamodb: { table: keyTable, refresh_interval_seconds: refresh } },
      chamber: { keys: { import: ENABLED, lifecycle: ENABLED } },
    };
    const env = world.environment();
    asked = await startSigner({ config, env });
    manager = await startSigner({ config, env });
    const root = await world.rootToken(table);
    await call(`${asked.url}/api/v1/auth/policies`, {
      token: root,
      body: { name: 'all', rules: [{ effect: 'allow' }] },
    });
    token = String(
      (await call(`${asked.url}/api/v1/auth/tokens`, { token: root, body: { policies: ['all'] } })).json['token'],
    );
  });
  afterAll(() => Promise.all([asked, manager].map((replica) => replica.stop())));

  const vote = async (replica: RunningSigner, publicKey: string, target: number) =>
    signCall(replica.url, publicKey, attestation({ source: target - 1, target }), { token });
  const change = (replica: RunningSigner, publicKey: string, status: string) =>
    call(`${replica.url}${KEYS}`, {
      token,
      method: 'PATCH',
      body: { keys: [{ pubkey: publicKey, status }] },
    });
  const remove = (publicKey: string) =>
    call(`${manager.url}${KEYS}`, { token, method: 'DELETE', body: { pubkeys: [publicKey] } });

  /** Keys that both replicas sign with: one look of the other replica at the table is enough for some of them. */
  async function* newKeys(): AsyncGenerator<string> {
    for (let left = ROUNDS; left > 0; left -= KEYS_AT_ONCE) {
      const secrets = Array.from({ length: Math.min(left, KEYS_AT_ONCE) }, () => testSecret(keys++));
      const body = {
        keystores: secrets.map((secret) => encryptKeystore(secret, PASSWORD)),
        passwords: secrets.map(() => PASSWORD),
        storage: { persist: true },
      };
      const imported = await call(`${asked.url}${KEYS}`, { token, body });
      expect(imported.json).toMatchObject({ data: secrets.map(() => ({ status: 'imported' })) });
      const publicKeys = secrets.map((secret) => publicKeyOf(secret));
      for (const publicKey of publicKeys) {
        for (const replica of [asked, manager]) await vi.waitFor(() => expectVote(replica, publicKey), WAIT);
      }
      yield* publicKeys;
    }
  }

  const expectVote = async (replica: RunningSigner, publicKey: string) =>
    expect((await vote(replica, publicKey, 10)).status).toBe(200);

  /** Asks for votes of rising epochs, as long as the work lasts and a little longer: the targets that were signed. */
  async function signedDuring(publicKey: string, work: () => Promise<void>): Promise<number[]> {
    const signed: number[] = [];
    let target = 11;
    const ask = async (): Promise<void> => {
      const { status } = await vote(asked, publicKey, target);
      if (status === 200) signed.push(target);
      target += 1;
    };
    const over = new AbortController();
    const working = work().finally(() => over.abort());
    while (!over.signal.aborted) {
      await ask();
      await pause(5);
    }
    await working;
    for (let more = 0; more < 5; more++) {
      await ask();
      await pause(20);
    }
    return signed;
  }

  /** The store keeps the highest marks alone. */
  const highestOf = (file: InterchangeFile): number =>
    Math.max(
      ...file.data.flatMap((entry) => entry.signed_attestations.map(({ target_epoch }) => Number(target_epoch))),
    );

  /** The key is gone, its file is final, and holds whatever the other replica signed. */
  async function expectFinalFile(beside: (publicKey: string, deleting: () => void) => Promise<unknown>): Promise<void> {
    let round = 0;
    for await (const publicKey of newKeys()) {
      round += 1;
      let file: InterchangeFile | undefined;
      const signed = await signedDuring(publicKey, async () => {
        let deleting: Promise<void> | undefined;
        const begin = (): void => {
          deleting ??= remove(publicKey).then(({ json }) => {
            expect(json).toMatchObject({ data: [{ status: 'deleted' }] });
            file = json['slashing_protection'] as InterchangeFile;
          });
        };
        await beside(publicKey, begin);
        begin();
        await deleting;
      });
      if (file === undefined) throw new Error('the key was deleted');
      const highest = highestOf(file);
      expect(
        signed.filter((target) => target > highest),
        `round ${round}`,
      ).toEqual([]);
    }
  }

  it(
    `${ROUNDS} rounds of DELETE: the file holds whatever was signed anywhere`,
    () => expectFinalFile(async () => undefined),
    ROUNDS * ROUND_LIMIT_MS,
  );

  it(
    `${ROUNDS} rounds of DELETE, and up to ${LATEST_MS} ms later PATCH active on the other replica: the same`,
    () =>
      expectFinalFile(async (publicKey, begin) => {
        begin();
        await pause(random() * LATEST_MS);
        const { json } = await change(asked, publicKey, 'active');
        expect(json['data']).toHaveLength(1);
      }),
    ROUNDS * ROUND_LIMIT_MS,
  );

  it(
    `${ROUNDS} rounds of PATCH active on a replica that stands still while the key is deleted: the same`,
    () =>
      expectFinalFile(async (publicKey, begin) => {
        const patched = change(asked, publicKey, 'active');
        await pause(random() * LATEST_MS);
        process.kill(asked.pid, 'SIGSTOP');
        try {
          begin();
          await pause(LATEST_MS + random() * 300);
        } finally {
          process.kill(asked.pid, 'SIGCONT');
        }
        await patched;
      }),
    ROUNDS * ROUND_LIMIT_MS,
  );

  /** Of two requests at the same moment either may be the last; the row says which. */
  async function expectNothingSignedWhereInactive(): Promise<void> {
    let round = 0;
    for await (const publicKey of newKeys()) {
      round += 1;
      const inactive = change(manager, publicKey, 'inactive');
      await pause(random() * LATEST_MS);
      const active = change(asked, publicKey, 'active');
      await Promise.all([inactive, active]);
      const { json } = await call(`${manager.url}${KEYS}?status=inactive`, { token });
      const rows = json['keys'] as readonly { readonly pubkey: string }[];
      const isInactive = rows.some(({ pubkey }) => pubkey === publicKey);
      const answers = await Promise.all([asked, manager].map((replica) => vote(replica, publicKey, 20)));
      const signed = answers.filter(({ status }) => status === 200);
      expect(isInactive ? signed : [], `round ${round}`).toEqual([]);
      await remove(publicKey);
    }
  }

  it(
    `${ROUNDS} rounds of PATCH inactive beside PATCH active: a key whose row says inactive signs nowhere`,
    expectNothingSignedWhereInactive,
    ROUNDS * ROUND_LIMIT_MS,
  );
});
