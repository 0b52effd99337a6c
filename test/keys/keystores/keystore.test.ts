// EIP-2335 on the standard's and other programs' keystores; and what a keystore may not be.

import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { type Keystore, keyDerivationMemoryBytes, processPassword } from '../../../enclave/keys/keystores/cipher.ts';
import {
  MAX_PBKDF2_ITERATIONS,
  MAX_SCRYPT_PARALLELIZATION,
  parseKeystore,
  parseKeystoreJson,
} from '../../../enclave/keys/keystores/keystore.ts';
import { concurrentKeystores, KeystorePool, memoryLimitBytes } from '../../../enclave/keys/keystores/pool.ts';
import { encryptKeystore, LIGHT_SCRYPT, publicKeyOf, testSecret } from '../../support/keys.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { vectorJson, vectorPath } from '../../support/vectors.ts';

const GIBIBYTE = 2 ** 30;
const pool = new KeystorePool(
  { keystoreLoadConcurrency: 1, memoryLimitBytes: 4 * GIBIBYTE, cores: 1 },
  { log: recordingLog() },
);
afterAll(() => pool.close());

function parsed(value: unknown): Keystore {
  const keystore = parseKeystore(value);
  if ('refused' in keystore) throw new Error(keystore.reason);
  return keystore;
}

function decrypt(keystore: unknown, password: string) {
  return pool.decrypt(parsed(keystore), Buffer.from(password, 'utf8'));
}

const hexOf = (bytes: Uint8Array) => `0x${Buffer.from(bytes).toString('hex')}`;

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

/** The password as the key derivation gets it, in hex. */
function processed(text: string | Uint8Array): string | undefined {
  const bytes = processPassword(typeof text === 'string' ? Buffer.from(text, 'utf8') : text);
  return bytes === undefined ? undefined : Buffer.from(bytes).toString('hex');
}

describe('passwords', () => {
  it('are normalized by NFKD: the example of EIP-2335', () => {
    expect(processed('𝔱𝔢𝔰𝔱𝔭𝔞𝔰𝔰𝔴𝔬𝔯𝔡🔑')).toBe('7465737470617373776f7264f09f9491');
  });

  it('lose every control code of C0, C1 and Delete, and nothing else', () => {
    for (let code = 0; code < 0x100; code++) {
      const isControl = code < 0x20 || (code >= 0x7f && code <= 0x9f);
      const character = String.fromCharCode(code);
      const kept = isControl ? '' : Buffer.from(character.normalize('NFKD'), 'utf8').toString('hex');
      expect([code, processed(`a${character}b`)]).toEqual([code, `61${kept}62`]);
    }
  });

  it('keep spaces at both ends', () => {
    expect(processed(' a ')).toBe('206120');
  });

  it('that are not UTF-8 are refused', async () => {
    expect(processed(Buffer.from('61ff', 'hex'))).toBeUndefined();
    const keystore = parsed(encryptKeystore(testSecret(1), 'a'));
    expect(await pool.decrypt(keystore, Buffer.from('61ff', 'hex'))).toEqual({ refused: 'password_not_utf8' });
  });

  it('are wiped where the caller has them', async () => {
    const password = Buffer.from('a password', 'utf8');
    await pool.decrypt(parsed(encryptKeystore(testSecret(1), 'a password')), password);
    expect(password.every((byte) => byte === 0)).toBe(true);
  });
});

type Members = Record<string, unknown>;

/** A good keystore with one member replaced, by path. */
function withMember(
  path: string,
  value: unknown,
  good: unknown = encryptKeystore(testSecret(1), 'p', LIGHT_SCRYPT),
): unknown {
  const copy = structuredClone(good) as Members;
  const names = path.split('.');
  const last = names.pop() ?? '';
  let place = copy;
  for (const name of names) place = place[name] as Members;
  if (value === undefined) delete place[last];
  else place[last] = value;
  return copy;
}

const pbkdf2 = encryptKeystore(testSecret(1), 'p');

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

const scryptOf = (n: number) => ({ dklen: 32, n, r: 8, p: 1, salt: '00'.repeat(32) });

describe('the pool of keystore workers', () => {
  it.each([
    // option, cores, memory in GiB → at once
    [128, 2, 64, 2],
    [128, 64, 64, 64],
    [128, 64, 8, 8],
    [128, 64, 3.9, 3],
    [1, 64, 64, 1],
    [128, 64, 0.25, 1],
  ])('of option %d, %d cores and %d GiB decrypts %d at once', (keystoreLoadConcurrency, cores, gibibytes, expected) => {
    const options = { keystoreLoadConcurrency, cores, memoryLimitBytes: gibibytes * GIBIBYTE };
    expect(concurrentKeystores(options)).toBe(expected);
  });

  it('knows the memory limit of this process', () => {
    expect(memoryLimitBytes()).toBeGreaterThan(2 ** 27);
    expect(memoryLimitBytes()).toBeLessThan(2 ** 50);
  });

  it('refuses a keystore that would take more than half of the memory, and takes the usual one on any machine', async () => {
    const small = new KeystorePool(
      { keystoreLoadConcurrency: 1, memoryLimitBytes: GIBIBYTE / 4, cores: 1 },
      { log: recordingLog() },
    );
    const heavy = parsed(withMember('crypto.kdf.params', scryptOf(2 ** 19)));
    const usual = parsed(withMember('crypto.kdf.params', scryptOf(2 ** 18)));
    expect(keyDerivationMemoryBytes(heavy.keyDerivation)).toBeGreaterThan(GIBIBYTE / 2);
    expect(await small.decrypt(heavy, Buffer.from('p'))).toEqual({ refused: 'too_much_memory' });
    expect(await small.decrypt(usual, Buffer.from('p'))).toEqual({ refused: 'wrong_password' });
    await small.close();
  });

  it('goes on when a keystore makes its worker fail', async () => {
    const log = recordingLog();
    const sick = new KeystorePool({ keystoreLoadConcurrency: 1, memoryLimitBytes: GIBIBYTE, cores: 1 }, { log });
    const good = parsed(encryptKeystore(testSecret(1), 'p'));
    const impossible: Keystore = {
      ...good,
      keyDerivation: { kind: 'scrypt', n: 3, r: 1, p: 1, salt: Buffer.alloc(8) },
    };
    expect(await sick.decrypt(impossible, Buffer.from('p'))).toEqual({ refused: 'decryption_failed' });
    expect(log.lines).toMatchObject([{ level: 'error', fields: { fault: expect.stringMatching(/SCRYPT/) } }]);
    expect(await sick.decrypt(good, Buffer.from('p'))).toEqual({ secretKey: testSecret(1) });
    await sick.close();
  });

  it('works again after its idle workers ended', async () => {
    const keystore = parsed(encryptKeystore(testSecret(2), 'p'));
    expect(await pool.decrypt(keystore, Buffer.from('p'))).toEqual({ secretKey: testSecret(2) });
    await pool.endIdleWorkers();
    expect(await pool.decrypt(keystore, Buffer.from('p'))).toEqual({ secretKey: testSecret(2) });
  });

  it('answers every one of many, more than it has workers, in any order of cost', async () => {
    const two = new KeystorePool(
      { keystoreLoadConcurrency: 2, memoryLimitBytes: 8 * GIBIBYTE, cores: 2 },
      { log: recordingLog() },
    );
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, number) => {
        const cost = number % 3 === 0 ? LIGHT_SCRYPT : { kind: 'pbkdf2' as const, iterations: 1 + (number % 5) * 1000 };
        return two.decrypt(parsed(encryptKeystore(testSecret(number), `${number}`, cost)), Buffer.from(`${number}`));
      }),
    );
    expect(answers).toEqual(Array.from({ length: 50 }, (_, number) => ({ secretKey: testSecret(number) })));
    await two.close();
  });

  it('refuses when too many wait, and rejects what waits when it is closed', async () => {
    const one = new KeystorePool(
      { keystoreLoadConcurrency: 1, memoryLimitBytes: GIBIBYTE, cores: 1 },
      { log: recordingLog() },
    );
    const keystore = parsed(encryptKeystore(testSecret(1), 'p'));
    const settled = Promise.allSettled(
      Array.from({ length: 1 + 1024 + 1 }, () => one.decrypt(keystore, Buffer.from('p'))),
    );
    await one.close();
    const reasons = (await settled).map((result) => (result.status === 'rejected' ? result.reason.reason : 'answered'));
    expect(reasons.at(-1)).toBe('overloaded');
    expect(reasons.filter((reason) => reason === 'overloaded')).toHaveLength(1);
    expect(reasons.filter((reason) => reason === 'shutting_down').length).toBeGreaterThanOrEqual(1024);
    await expect(one.decrypt(keystore, Buffer.from('p'))).rejects.toMatchObject({ reason: 'shutting_down' });
  });
});
