// An import that is answered as an error has done nothing: the key goes back to where it was with the file of before,
// and no other signer of the store signs with a copy that it still holds. While an import took a retirement back before
// it wrote anything, such a signer signed, and the key's owner too: a double vote. Two signers on one PostgreSQL keep
// imported keys on their disks, a third one has a store of its own. Real processes. TEST keys.
//
// TEST_SCALE=40 goes each way 200 times.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { deploy } from '../support/deployment.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { attestation, call, rootOf, signCall, TEST_TOKEN } from '../support/requests.ts';
import { sized } from '../support/scale.ts';

const ROUNDS = sized(2, 5);
const LIMIT_MS = ROUNDS * 300_000;
const PASSWORD = 'TEST password';
const SCOPES = ['sign', 'public_keys', 'list_keys', 'import_keystores', 'delete_keys'];

interface Owner extends RunningSigner {
  fileOf(publicKey: string): string;
  startAgain(): Promise<Owner>;
}

let postgres: PostgresServer;
let first: Owner;
let second: Owner;
let elsewhere: Owner;
let keys = 7_000;

beforeAll(async () => {
  postgres = await startPostgres();
  const shared = { backend: 'postgres', url: postgres.url(await postgres.createDatabase()) };
  // One after the other: a start that is slow gives its database up.
  first = await start(shared);
  second = await start(shared);
  elsewhere = await start(undefined);
});
afterAll(async () => {
  await Promise.all([first, second, elsewhere].map((owner) => owner.kill()));
  await postgres.close();
});

async function start(antiSlashing: object | undefined): Promise<Owner> {
  const deployment = deploy(0, {
    http: { key_manager_api: { enabled: true } },
    key_sources: { memory: { persist_dir: 'imported', persist_secret: 'env:PERSIST' } },
    ...(antiSlashing === undefined ? {} : { anti_slashing: antiSlashing }),
    static_auth: {
      policies: [{ name: 'full', rules: [{ effect: 'allow', scopes: SCOPES }] }],
      tokens: [{ secret: TEST_TOKEN, policies: ['full'] }],
    },
  });
  mkdirSync(join(deployment.folder, 'imported'), { mode: 0o700 });
  const run = async (): Promise<Owner> => {
    const signer = await deployment.start({ env: { PERSIST: 'TEST persist secret 0001' } });
    return {
      ...signer,
      fileOf: (publicKey) => join(deployment.folder, 'imported', `${publicKey.slice(2)}.json`),
      async startAgain() {
        await signer.kill();
        return run();
      },
    };
  };
  return run();
}

const vote = async ({ url }: Owner, publicKey: string, target: number, head: number) => {
  const body = attestation({ source: target - 1, target, head: rootOf(head) });
  const { status, json } = await signCall(url, publicKey, body);
  return status === 200 ? 'signed' : json['reason'];
};

async function post({ url }: Owner, secret: Uint8Array, file?: string): Promise<string> {
  const { json } = await call(`${url}/eth/v1/keystores`, {
    body: {
      keystores: [JSON.stringify(encryptKeystore(secret, PASSWORD))],
      passwords: [PASSWORD],
      ...(file === undefined ? {} : { slashing_protection: file }),
    },
  });
  return (json['data'] as { status: string }[])[0]?.status ?? '';
}

async function remove({ url }: Owner, publicKey: string): Promise<string> {
  const { json } = await call(`${url}/eth/v1/keystores`, { method: 'DELETE', body: { pubkeys: [publicKey] } });
  expect(json['data']).toMatchObject([{ status: 'deleted' }]);
  return String(json['slashing_protection']);
}

/** The key was with the first two, and is elsewhere now; the second one still holds its copy. */
async function moved(): Promise<{ secret: Uint8Array; publicKey: string; file: string }> {
  const secret = testSecret(keys++);
  const publicKey = publicKeyOf(secret);
  for (const owner of [first, second]) expect(await post(owner, secret)).toBe('imported');
  for (const owner of [first, second]) expect(await vote(owner, publicKey, 10, 1)).toBe('signed');
  const file = await remove(first, publicKey);
  expect(await post(elsewhere, secret, file)).toBe('imported');
  return { secret, publicKey, file };
}

async function failToWrite(owner: Owner, publicKey: string, work: () => Promise<void>): Promise<void> {
  // A folder in the place of a file cannot be written over, by root neither.
  mkdirSync(owner.fileOf(publicKey));
  try {
    await work();
  } finally {
    rmSync(owner.fileOf(publicKey), { recursive: true });
  }
}

it(
  `${ROUNDS} rounds: a key that could not come back signs where it went, and nowhere else`,
  async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { secret, publicKey } = await moved();
      const file = await remove(elsewhere, publicKey);
      await failToWrite(first, publicKey, async () => expect(await post(first, secret, file)).toBe('error'));
      expect(await post(elsewhere, secret, file)).toBe('imported');
      expect(await vote(elsewhere, publicKey, 21, 2)).toBe('signed');
      expect(await vote(second, publicKey, 21, 3), `round ${round}`).toBe('key_retired');
      expect(await vote(first, publicKey, 21, 3), `round ${round}`).toBe('unknown_key');
    }
  },
  LIMIT_MS,
);

it(
  `${ROUNDS} rounds: an import by mistake that fails lets no other signer sign; one that succeeds does`,
  async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { secret, publicKey, file } = await moved();
      expect(await vote(second, publicKey, 21, 3)).toBe('key_retired');
      await failToWrite(first, publicKey, async () => expect(await post(first, secret, file)).toBe('error'));
      expect(await vote(elsewhere, publicKey, 21, 2)).toBe('signed');
      expect(await vote(second, publicKey, 21, 3), `round ${round}`).toBe('key_retired');
      expect(await post(first, secret, await remove(elsewhere, publicKey))).toBe('imported');
      expect(await vote(first, publicKey, 21, 3)).toMatch(/double_vote|below/);
      expect(await vote(first, publicKey, 22, 3)).toBe('signed');
    }
  },
  LIMIT_MS,
);

it(
  `${ROUNDS} rounds: an import that kill -9 ends anywhere has begun nothing that its answer did not say`,
  async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { secret, publicKey } = await moved();
      const file = await remove(elsewhere, publicKey);
      const posted = post(first, secret, file).catch(() => 'no answer');
      await new Promise((resolve) => setTimeout(resolve, (round * 7) % 60));
      first = await first.startAgain();
      // Without an answer nobody knows: the key is deleted where it may be, and that file is what counts.
      const answer = await posted;
      const signed = [await vote(first, publicKey, 21, 2), await vote(second, publicKey, 22, 2)];
      if (answer === 'imported') expect(signed[0]).toBe('signed');
      const { json } = await call(`${first.url}/eth/v1/keystores`, {
        method: 'DELETE',
        body: { pubkeys: [publicKey] },
      });
      expect(await post(elsewhere, secret, String(json['slashing_protection']))).toBe('imported');
      for (const [index, target] of [21, 22].entries()) {
        const rival = await vote(elsewhere, publicKey, target, 3);
        if (signed[index] === 'signed') expect(rival, `round ${round}`).not.toBe('signed');
      }
      expect(await vote(second, publicKey, 30, 3)).toBe('key_retired');
    }
  },
  LIMIT_MS,
);
