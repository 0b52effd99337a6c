// The chamber's key routes on real signers that share a key table: what one replica generates, imports, deactivates or
// deletes holds on both, and a key keeps its slashing protection records wherever it goes. The keys here are TEST keys.

import { SecretKey } from '@chainsafe/blst';
import { mnemonicToSeedSync } from '@scure/bip39';
import { armor, Decrypter } from 'age-encryption';
import { describe, expect, it, vi } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { depositProblem } from '../../signer/keys/generation/deposit.ts';
import { deriveSecretKey, SIGNING_KEY_PATH } from '../../signer/keys/generation/generate.ts';
import { type InterchangeFile, interchangeOf } from '../support/interchange.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { type Answer, attestation, call } from '../support/requests.ts';
import {
  ADDRESS,
  ask,
  generateOne,
  type KeyResult,
  listed,
  PASSWORD,
  replicas,
  sign,
  tokens,
  untilSigning,
  WAIT,
  world,
} from './key-table-replicas.ts';

describe('generated keys', () => {
  it('come with deposit data that verifies, and with a backup that is the key', async () => {
    const terms = { withdrawal_address: ADDRESS, amount_gwei: 1e9 };
    const answer = await ask(replicas[0], '/generate', { count: 2, require_backup: true, ...terms });
    expect(answer.status).toBe(201);
    const keys = listed(answer, 'keys');
    expect(keys).toHaveLength(2);
    for (const { pubkey, deposit_data, backup } of keys) {
      expect(deposit_data).toMatchObject({
        pubkey: pubkey.slice(2),
        amount: 1e9,
        withdrawal_credentials: `01${'00'.repeat(11)}${ADDRESS.slice(2)}`,
        fork_version: '00000000',
        network_name: 'mainnet',
      });
      expect(deposit_data && depositProblem(deposit_data)).toBeUndefined();
      expect(await publicKeyOfBackup(backup ?? '')).toBe(pubkey);
    }
  });

  it('have backups that every replica gives again, to a scope that may generate, and to no other', async () => {
    const made = listed(await ask(replicas[0], '/generate-keys', { count: 2 }), 'keys');
    const keystores = [JSON.stringify(encryptKeystore(testSecret(9_901), PASSWORD))];
    const imported = publicKeyOf(testSecret(9_901));
    const body = { keystores, passwords: [PASSWORD], storage: { persist: true } };
    expect(listed(await ask(replicas[0], '', body))).toMatchObject([{ status: 'imported' }]);
    const absent = publicKeyOf(testSecret(9_900));
    const pubkeys = [...made.map(({ pubkey }) => pubkey), imported, absent];
    for (const token of [tokens.full, tokens.blsOnly]) {
      const answer = await ask(replicas[1], '/backups', { pubkeys }, 'POST', token);
      expect(answer.status).toBe(200);
      expect(listed(answer)).toEqual([
        ...made.map(({ pubkey, backup }) => ({ pubkey, status: 'found', backup })),
        { pubkey: imported, status: 'none' },
        { pubkey: absent, status: 'not_found' },
      ]);
    }
    const denied = await ask(replicas[1], '/backups', { pubkeys }, 'POST', tokens.listOnly);
    expect(denied).toMatchObject({ status: 403, json: { reason: 'denied' } });
    const narrow = await ask(replicas[1], '/backups', { pubkeys }, 'POST', tokens.ofOneKey);
    expect(narrow).toMatchObject({ status: 403, json: { reason: 'denied' } });
    expect((await ask(replicas[1], '/backups', { pubkeys, all: true })).status).toBe(400);
  });

  it('sign at once where they were made, and soon on the other replica', async () => {
    const key = await generateOne();
    expect((await sign(replicas[0], key)).status).toBe(200);
    await untilSigning(replicas[1], key, 200);
  });

  it('need one of two scopes without deposit data, and one with it', async () => {
    expect((await ask(replicas[0], '/generate-keys', { count: 1 }, 'POST', tokens.blsOnly)).status).toBe(201);
    const body = { count: 1, withdrawal_address: ADDRESS };
    expect((await ask(replicas[0], '/generate', body, 'POST', tokens.blsOnly)).status).toBe(403);
  });

  it.each([
    ['more than one request may ask for', { count: 5, withdrawal_address: ADDRESS }, 'too_many_items'],
    ['none', { count: 0, withdrawal_address: ADDRESS }, 'malformed_body'],
    ['no withdrawal target', { count: 1 }, 'malformed_body'],
    [
      'two withdrawal targets',
      { count: 1, withdrawal_address: ADDRESS, withdrawal_credentials: '00' },
      'malformed_body',
    ],
    ['an address with a wrong checksum', { count: 1, withdrawal_address: ADDRESS.replace('e', 'E') }, 'malformed_body'],
    ['too little', { count: 1, withdrawal_address: ADDRESS, amount_gwei: 1 }, 'malformed_body'],
    ['too much', { count: 1, withdrawal_address: ADDRESS, amount_gwei: 33e9 }, 'malformed_body'],
  ])('%s is 400', async (_, body, reason) => {
    expect(await ask(replicas[0], '/generate', body)).toMatchObject({ status: 400, json: { reason } });
  });
});

describe('deposit data', () => {
  const compounding = { withdrawal_address: ADDRESS, compounding: true, amount_gwei: 2048e9 };

  it('is created once, is the same on every replica, and a conflict on other terms unless it may be recomputed', async () => {
    const key = await generateOne();
    const unknown = publicKeyOf(testSecret(77));
    const make = async (replica: RunningSigner, terms: object): Promise<readonly KeyResult[]> => {
      const answer = await ask(replica, '/deposit-data', { pubkeys: [key, unknown, key], ...terms });
      expect(answer.status).toBe(200);
      return listed(answer);
    };
    const created = await make(replicas[0], { withdrawal_address: ADDRESS });
    expect(created.map(({ status }) => status)).toEqual(['created', 'not_found', 'created']);
    const existing = await make(replicas[1], { withdrawal_address: ADDRESS });
    expect(existing[0]).toMatchObject({ status: 'existing', deposit_data: created[0]?.deposit_data });
    const conflict = await make(replicas[0], compounding);
    expect(conflict[0]).toMatchObject({ status: 'conflict', deposit_data: created[0]?.deposit_data });

    const forced = { pubkeys: [key], ...compounding, force_recompute_on_conflict: true };
    expect(await ask(replicas[1], '/deposit-data', forced)).toMatchObject({
      status: 400,
      json: { reason: 'recompute_not_allowed' },
    });
    const [recomputed] = listed(await ask(replicas[0], '/deposit-data', forced));
    expect(recomputed).toMatchObject({
      status: 'created',
      deposit_data: { amount: 2048e9, withdrawal_credentials: `02${'00'.repeat(11)}${ADDRESS.slice(2)}` },
    });
    expect(recomputed?.deposit_data && depositProblem(recomputed.deposit_data)).toBeUndefined();
  });
});

describe('lifecycle', () => {
  it('an inactive key stops on both replicas, and comes back on both', async () => {
    const key = await generateOne();
    await untilSigning(replicas[1], key, 200);
    const change = (status: string): Promise<Answer> =>
      ask(replicas[0], '', { keys: [{ pubkey: key, status }] }, 'PATCH');
    expect(listed(await change('inactive'))).toEqual([{ pubkey: key, status: 'updated' }]);
    expect((await sign(replicas[0], key)).status).toBe(404);
    await untilSigning(replicas[1], key, 404);
    expect(listed(await change('inactive'))).toEqual([{ pubkey: key, status: 'unchanged' }]);
    expect(listed(await change('active'))).toEqual([{ pubkey: key, status: 'updated' }]);
    expect((await sign(replicas[0], key)).status).toBe(200);
    await untilSigning(replicas[1], key, 200);
  });

  it('a deleted key is gone for every replica, its records come with the answer, and its import elsewhere is bound by them', async () => {
    const secret = testSecret(20);
    const key = publicKeyOf(secret);
    const importing = (records: InterchangeFile): object => ({
      keystores: [encryptKeystore(secret, PASSWORD)],
      passwords: [PASSWORD],
      slashing_protection: records,
      storage: { persist: true },
    });
    const imported = await ask(replicas[0], '', importing(interchangeOf([key])));
    expect(listed(imported)).toEqual([{ pubkey: key, status: 'imported' }]);
    expect((await sign(replicas[0], key, attestation({ source: 20, target: 21 }))).status).toBe(412);
    expect((await sign(replicas[0], key, attestation({ source: 21, target: 22 }))).status).toBe(200);
    await untilSigning(replicas[1], key, 200);

    const deleted = await ask(replicas[0], '', { pubkeys: [key, publicKeyOf(testSecret(21))] }, 'DELETE');
    expect(listed(deleted).map(({ status }) => status)).toEqual(['deleted', 'not_found']);
    const records = deleted.json['slashing_protection'] as InterchangeFile;
    expect(records.data.map(({ pubkey }) => pubkey)).toEqual([key]);
    expect((await sign(replicas[0], key)).status).toBe(404);
    await untilSigning(replicas[1], key, 404);

    expect(listed(await ask(replicas[1], '', importing(records)))).toEqual([{ pubkey: key, status: 'imported' }]);
    const conflicting = attestation({ source: 21, target: 22, head: `0x${'99'.repeat(32)}` });
    expect((await sign(replicas[1], key, conflicting)).status).toBe(412);
  });

  it('an inactive key of the table does not come back as one of memory', async () => {
    const secret = testSecret(22);
    const key = publicKeyOf(secret);
    const body = { keystores: [encryptKeystore(secret, PASSWORD)], passwords: [PASSWORD], storage: { persist: true } };
    expect(listed(await ask(replicas[0], '', body))).toEqual([{ pubkey: key, status: 'imported' }]);
    await ask(replicas[0], '', { keys: [{ pubkey: key, status: 'inactive' }] }, 'PATCH');
    const again = await ask(replicas[1], '', { ...body, storage: { persist: false } });
    expect(listed(again)).toEqual([
      { pubkey: key, status: 'duplicate', message: expect.stringContaining('it is inactive') },
    ]);
    expect((await sign(replicas[0], key)).status).toBe(404);
  });

  it('the Key Manager API shows keys of the table as readonly and does not delete them', async () => {
    const key = await generateOne();
    const url = `${replicas[0].url}/eth/v1/keystores`;
    const { json } = await call(url, { token: tokens.full });
    expect(json['data']).toContainEqual({ validating_pubkey: key, readonly: true });
    const deleted = await call(url, { token: tokens.full, method: 'DELETE', body: { pubkeys: [key] } });
    expect(listed(deleted)).toMatchObject([{ status: 'error' }]);
    expect((await sign(replicas[0], key)).status).toBe(200);
  });

  it('a key of memory that another replica persists is one key: listed once, and stopped as a whole', async () => {
    const secret = testSecret(24);
    const key = publicKeyOf(secret);
    const body = { keystores: [encryptKeystore(secret, PASSWORD)], passwords: [PASSWORD] };
    expect(listed(await ask(replicas[0], '', { ...body, storage: { persist: false } }))).toMatchObject([
      { status: 'imported' },
    ]);
    expect(listed(await ask(replicas[1], '', { ...body, storage: { persist: true } }))).toMatchObject([
      { status: 'imported' },
    ]);
    const url = `${replicas[0].url}/eth/v1/keystores`;
    await vi.waitFor(async () => {
      const { json } = await call(url, { token: tokens.full });
      expect(json['data']).toContainEqual(expect.objectContaining({ validating_pubkey: key, readonly: true }));
    }, WAIT);
    const inventory = listed(await ask(replicas[0], '?limit=1000'), 'keys').filter(({ pubkey }) => pubkey === key);
    expect(inventory).toMatchObject([{ source: 'memory', sources: ['dynamodb', 'memory'], loaded: true }]);
    const published = await call(`${replicas[0].url}/api/v1/eth2/publicKeys`, { token: tokens.full });
    expect(JSON.parse(published.text).filter((publicKey: string) => publicKey === key)).toHaveLength(1);
    const deleted = await call(url, { token: tokens.full, method: 'DELETE', body: { pubkeys: [key] } });
    expect(listed(deleted)).toMatchObject([{ status: 'error' }]);
    const stopped = await ask(replicas[0], '', { keys: [{ pubkey: key, status: 'inactive' }] }, 'PATCH');
    expect(listed(stopped)).toEqual([{ pubkey: key, status: 'updated' }]);
    expect((await sign(replicas[0], key)).status).toBe(404);
    expect(listed(await ask(replicas[0], '', { pubkeys: [key] }, 'DELETE'))).toMatchObject([{ status: 'deleted' }]);
  });

  it('the inventory has every key once, whatever the size of its pages', async () => {
    const memory = testSecret(23);
    const body = { keystores: [encryptKeystore(memory, PASSWORD)], passwords: [PASSWORD], storage: { persist: false } };
    await ask(replicas[0], '', body);
    const whole = listed(await ask(replicas[0], '?limit=1000'), 'keys');
    const paged: KeyResult[] = [];
    let cursor: unknown = '';
    while (cursor !== null) {
      const page = await ask(
        replicas[0],
        `?limit=3${cursor === '' ? '' : `&cursor=${encodeURIComponent(String(cursor))}`}`,
      );
      paged.push(...listed(page, 'keys'));
      cursor = page.json['next_cursor'];
    }
    expect(paged).toEqual(whole);
    expect(new Set(whole.map(({ pubkey }) => pubkey)).size).toBe(whole.length);
    expect(whole).toContainEqual(
      expect.objectContaining({ pubkey: publicKeyOf(memory), source: 'memory', status: 'active', loaded: true }),
    );
    const inactive = listed(await ask(replicas[0], '?status=inactive&source=dynamodb'), 'keys');
    expect(inactive).toMatchObject([{ pubkey: publicKeyOf(testSecret(22)), loaded: false, has_backup: false }]);
  });
});

async function publicKeyOfBackup(backup: string): Promise<string> {
  const decrypter = new Decrypter();
  decrypter.addIdentity(world.identity);
  const mnemonic = await decrypter.decrypt(armor.decode(backup), 'text');
  const secret = deriveSecretKey(mnemonicToSeedSync(mnemonic), SIGNING_KEY_PATH);
  return `0x${Buffer.from(SecretKey.fromBytes(secret).toPublicKey().toBytes()).toString('hex')}`;
}
