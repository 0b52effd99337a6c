// A key that is deleted while it signs: no signature reaches a client that the exported records do not hold. Whoever
// imports them elsewhere then knows everything that was ever signed here.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { deploy } from '../support/deployment.ts';
import type { InterchangeFile } from '../support/interchange.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { attestation, call, signCall, TEST_TOKEN } from '../support/requests.ts';

const ROUNDS = 60;
const VOTES = 24;
const CLIENTS = 4;
const PASSWORD = 'TEST password';

let signer: RunningSigner;
beforeAll(async () => {
  const scopes = ['sign', 'public_keys', 'import_keystores', 'delete_keys'];
  signer = await deploy(0, {
    http: { key_manager_api: { enabled: true } },
    static_auth: {
      policies: [{ name: 'full', rules: [{ effect: 'allow', scopes }] }],
      tokens: [{ secret: TEST_TOKEN, policies: ['full'] }],
    },
  }).start();
});
afterAll(() => signer.stop());

describe('deleting a key that signs', () => {
  it(`over ${ROUNDS} rounds, every vote that got a signature is in the exported records`, async () => {
    let signedInAll = 0;
    let refusedInAll = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const { signed, refused } = await deleteWhileVoting(round);
      signedInAll += signed;
      refusedInAll += refused;
    }
    // Otherwise nothing was raced: some votes have to fall before the removal and some after it.
    expect(signedInAll).toBeGreaterThan(ROUNDS);
    expect(refusedInAll).toBeGreaterThan(ROUNDS);
  });
});

async function deleteWhileVoting(round: number): Promise<{ readonly signed: number; readonly refused: number }> {
  const secret = testSecret(5000 + round);
  const publicKey = publicKeyOf(secret);
  const imported = await call(`${signer.url}/eth/v1/keystores`, {
    body: { keystores: [JSON.stringify(encryptKeystore(secret, PASSWORD))], passwords: [PASSWORD] },
  });
  expect(imported.json['data']).toEqual([{ status: 'imported' }]);

  const exported: Promise<string>[] = [];
  const answers: { readonly target: number; readonly status: number }[] = [];
  let next = 100;
  const client = async (): Promise<void> => {
    while (next < 100 + VOTES) {
      const target = next++;
      const vote = signCall(signer.url, publicKey, attestation({ source: 99, target }));
      // Twice, beside votes under way: the second delete finds no key, and has to wait for the same signatures.
      if (target === 104 + (round % 8)) exported.push(deleteKey(publicKey), deleteKey(publicKey));
      answers.push({ target, status: (await vote).status });
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  const signed = answers.filter(({ status }) => status === 200);
  const refused = answers.filter(({ status }) => status !== 200);
  expect(exported).toHaveLength(2);
  for (const records of await Promise.all(exported)) {
    const targets = (JSON.parse(records) as InterchangeFile).data.flatMap((validator) =>
      validator.signed_attestations.map((entry) => Number(entry.target_epoch)),
    );
    for (const { target } of signed) expect(targets).toContain(target);
  }
  return { signed: signed.length, refused: refused.length };
}

async function deleteKey(publicKey: string): Promise<string> {
  const { status, json } = await call(`${signer.url}/eth/v1/keystores`, {
    method: 'DELETE',
    body: { pubkeys: [publicKey] },
  });
  expect(status).toBe(200);
  return String(json['slashing_protection']);
}
