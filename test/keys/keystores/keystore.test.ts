// EIP-2335 on the standard's and other programs' keystores; and what a keystore may not be, or may leave out.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  MAX_PBKDF2_ITERATIONS,
  MAX_SCRYPT_PARALLELIZATION,
  parseKeystore,
  parseKeystoreJson,
} from '../../../signer/keys/keystores/keystore.ts';
import { publicKeyOf, testSecret } from '../../support/keys.ts';
import { vectorJson, vectorPath } from '../../support/vectors.ts';
import { decrypt, hexOf, parsed, pbkdf2, pool, withMember } from './keystore-set-up.ts';

interface PublishedKeystore {
  readonly id: string;
  readonly password: string;
  readonly secret_key: string;
  readonly pubkey: string;
  readonly keystore: unknown;
}
const published = vectorJson<{ vectors: PublishedKeystore[] }>('eip2335/keystores-eip2335.json');
const chainsafe = ['pbkdf2-0', 'pbkdf2-1', 'scrypt-0', 'scrypt-1'].map((name) => `eip2335/chainsafe-${name}.json`);

describe.skipIf(published === undefined)('published keystores', () => {
  it('are the eight of the vectors', () => {
    expect(published?.vectors).toHaveLength(8);
  });

  it.each(published?.vectors ?? [])('opens $id', async (vector) => {
    const answer = await decrypt(vector.keystore, vector.password);
    const secretKey = 'secretKey' in answer ? answer.secretKey : Buffer.alloc(0);
    expect(hexOf(secretKey)).toBe(vector.secret_key);
    expect(publicKeyOf(secretKey)).toBe(vector.pubkey);
    expect(parsed(vector.keystore).publicKey).toBe(vector.pubkey);
  });

  it.each(chainsafe)('opens %s, whose extra members are ignored', async (path) => {
    const vector = vectorJson<{ password: string; secret: string }>(path);
    expect(await decrypt(vector, vector?.password ?? '')).toSatisfy(
      (answer) => hexOf(answer.secretKey) === vector?.secret,
    );
  });

  it.each([
    ['eip2335/eip2335-test0.json', '𝔱𝔢𝔰𝔱𝔭𝔞𝔰𝔰𝔴𝔬𝔯𝔡🔑'],
    ['eip2335/eip2335-test1.json', '𝔱𝔢𝔰𝔱𝔭𝔞𝔰𝔰𝔴𝔬𝔯𝔡🔑'],
    ['eip2335/w3s-bls_keystore.json', 'somepassword'],
    ['eip2335/w3s-bls_keystore_2.json', 'otherpassword'],
  ])('opens %s as it lies in its file, and its pubkey is the secret’s', async (path, password) => {
    const keystore = parseKeystoreJson(readFileSync(vectorPath(path) ?? '', 'utf8'));
    if ('refused' in keystore) throw new Error(keystore.reason);
    const answer = await pool.decrypt(keystore, Buffer.from(password, 'utf8'));
    expect('secretKey' in answer && publicKeyOf(answer.secretKey)).toBe(keystore.publicKey);
  });

  it('the standard’s password opens it in every form that normalizes to the same', async () => {
    const keystore = vectorJson('eip2335/eip2335-test0.json');
    for (const password of ['testpassword🔑', 'test\u0000pass\u007fword🔑\u0085', '\ttestpassword🔑\r']) {
      expect(await decrypt(keystore, password)).toHaveProperty('secretKey');
    }
    expect(await decrypt(keystore, 'testpassword')).toEqual({ refused: 'wrong_password' });
  });

  it.each(['', 'password', 'somepassword', '𝔱𝔢𝔰𝔱𝔭𝔞𝔰𝔰𝔴𝔬𝔯𝔡🔑'])(
    'the keystore whose password nobody knows is refused with "%s"',
    async (password) => {
      expect(await decrypt(vectorJson('eip2335/w3s-eth2clikeystore.json'), password)).toEqual({
        refused: 'wrong_password',
      });
    },
  );
});

describe('what a keystore may not be', () => {
  it.each([
    ['version', 3],
    ['version', '4'],
    ['version', undefined],
    ['crypto', undefined],
    ['crypto.kdf.function', 'argon2'],
    ['crypto.kdf.params.salt', 'xyz'],
    ['crypto.kdf.params.salt', ''],
    ['crypto.kdf.params.dklen', 16],
    ['crypto.kdf.params.n', 3],
    ['crypto.kdf.params.n', 1],
    ['crypto.kdf.params.n', 0],
    ['crypto.kdf.params.n', -2],
    ['crypto.kdf.params.n', 2.5],
    ['crypto.kdf.params.n', 2 ** 40],
    ['crypto.kdf.params.r', 0],
    ['crypto.kdf.params.p', 0],
    ['crypto.kdf.params.p', MAX_SCRYPT_PARALLELIZATION + 1],
    ['crypto.checksum.function', 'sha1'],
    ['crypto.checksum.message', '00'],
    ['crypto.cipher.function', 'aes-256-gcm'],
    ['crypto.cipher.params.iv', '00'.repeat(15)],
    ['crypto.cipher.message', '00'.repeat(31)],
    ['crypto.cipher.message', '00'.repeat(33)],
    ['pubkey', '00'.repeat(47)],
    ['pubkey', 7],
  ])('%s = %j is refused by its place', (path, value) => {
    const keystore = parseKeystore(withMember(path, value));
    expect(keystore).toMatchObject({ refused: 'malformed_keystore', reason: expect.stringContaining(path) });
  });

  it.each([
    ['crypto.kdf.params.c', 0],
    ['crypto.kdf.params.c', MAX_PBKDF2_ITERATIONS + 1],
    ['crypto.kdf.params.prf', 'hmac-sha512'],
    ['crypto.kdf.params.dklen', 64],
  ])('of pbkdf2: %s = %j is refused by its place', (path, value) => {
    const keystore = parseKeystore(withMember(path, value, pbkdf2));
    expect(keystore).toMatchObject({ refused: 'malformed_keystore', reason: expect.stringContaining(path) });
  });

  it('a scrypt that would take more memory than the limit is refused before it runs, with both figures', () => {
    const params = { dklen: 32, n: 2 ** 21, r: 8, p: 1, salt: '00'.repeat(32) };
    const keystore = parseKeystore(withMember('crypto.kdf.params', params));
    expect(keystore).toMatchObject({
      reason: expect.stringMatching(/scrypt would take 2049 MiB, the limit is 1040 MiB/),
    });
    expect(parseKeystore(withMember('crypto.kdf.params', { ...params, n: 2 ** 20 }))).not.toHaveProperty('refused');
  });

  it('an n that scrypt itself forbids for its r is refused (RFC 7914 §2)', () => {
    const params = { dklen: 32, n: 2 ** 16, r: 1, p: 1, salt: '00'.repeat(32) };
    expect(parseKeystore(withMember('crypto.kdf.params', params))).toMatchObject({ refused: 'malformed_keystore' });
    expect(parseKeystore(withMember('crypto.kdf.params', { ...params, n: 2 ** 15 }))).not.toHaveProperty('refused');
  });

  it.each(['', '{', '[]', 'null', '4', '"text"', '{"version":4'])('the JSON %j is refused', (text) => {
    expect(parseKeystoreJson(text)).toMatchObject({ refused: 'malformed_keystore' });
  });

  it('the reason repeats nothing of the file', () => {
    const secret = 'do-not-repeat-me';
    for (const path of ['version', 'crypto', 'crypto.kdf.function', 'crypto.cipher.message', 'pubkey']) {
      expect(JSON.stringify(parseKeystore(withMember(path, secret)))).not.toContain(secret);
    }
    expect(JSON.stringify(parseKeystoreJson(`{"a": ${secret}`))).not.toContain(secret);
  });
});

describe('what a keystore may leave out', () => {
  it.each([
    ['pubkey', undefined],
    ['pubkey', ''],
    ['path', undefined],
    ['uuid', undefined],
    ['description', undefined],
    ['name', 'of another program'],
  ])('%s may be %j', async (path, value) => {
    const keystore = withMember(path, value);
    expect(await decrypt(keystore, 'p')).toEqual({ secretKey: testSecret(1) });
  });

  it('0x and upper-case hex are the same', async () => {
    const upper = `0x${publicKeyOf(testSecret(1)).slice(2).toUpperCase()}`;
    expect(parsed(withMember('pubkey', upper)).publicKey).toBe(publicKeyOf(testSecret(1)));
  });
});
