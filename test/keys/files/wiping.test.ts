// Secrets on the paths that end early: whatever stops a load, a generation or an import, no copy stays behind.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { BlsCore } from '../../../signer/bls/bls.ts';
import { openBlsCore } from '../../../signer/bls/open-either.ts';
import { ImportedKeystoreCipher } from '../../../signer/keys/files/imported-keystore.ts';
import { ImportedKeystores } from '../../../signer/keys/files/imported-keystores.ts';
import { digestPassword, KeyCache } from '../../../signer/keys/files/key-cache.ts';
import { KeyFiles } from '../../../signer/keys/files/key-files.ts';
import { readSmallFile } from '../../../signer/keys/files/small-files.ts';
import { deriveSecretKey } from '../../../signer/keys/generation/generate.ts';
import { decryptKeystore, type Keystore } from '../../../signer/keys/keystores/cipher.ts';
import { KeystorePool } from '../../../signer/keys/keystores/pool.ts';
import { openKeystores, parseItem } from '../../../signer/keys/keystores/read.ts';
import { generateKeys } from '../../../signer/keys/management/generate.ts';
import { importKeys } from '../../../signer/keys/management/import.ts';
import { KeyStore } from '../../../signer/keys/store.ts';
import { encryptKeystore, makeKeyDirectory, publicKeyOf, testSecret, writeKeystore } from '../../support/keys.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { recordWiped } from '../../support/wiped.ts';

const clock = { now: () => 0, monotonic: () => 0 };
const signal = new AbortController().signal;
let directory: ReturnType<typeof makeKeyDirectory>;
let core: BlsCore;
let pool: KeystorePool;

beforeEach(async () => {
  directory = makeKeyDirectory();
  mkdirSync(at('keys'));
  core = await openBlsCore({ prefer: 'portable', cores: 1, log: recordingLog() });
  pool = new KeystorePool({ keystoreLoadConcurrency: 2, memoryLimitBytes: 2 ** 33, cores: 2 }, { log: recordingLog() });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await pool.close();
  await core.close();
  directory.remove();
});

const at = (name: string) => join(directory.path, name);
const passwordOf = (number: number) => `TEST password ${number}`;
const put = (...numbers: readonly number[]) => {
  for (const number of numbers) writeKeystore(at('keys'), `k${number}`, testSecret(number), passwordOf(number));
};

function keyFiles(store = new KeyStore({}, { vault: core, clock })): KeyFiles {
  const options = { paths: [at('keys')], rawLoadConcurrency: 4, cache: at('keys.cache') };
  return new KeyFiles(options, { store, pool, log: recordingLog(), clock });
}

it('a load that ends in the middle: passwords that were read ahead, and their digests', async () => {
  const numbers = [0, 1, 2, 3, 4, 5];
  put(...numbers);
  await keyFiles().load();
  put(6); // another keystore, so that the cache does not end the load before anything is decrypted
  put(7);
  writeKeystore(at('keys'), 'k0', testSecret(9), passwordOf(9));
  await pool.close();
  const wiped = recordWiped();
  await expect(keyFiles().load()).rejects.toMatchObject({ reason: 'shutting_down' });
  for (const number of [1, 2, 3, 4, 5, 6, 7, 9]) {
    expect(wiped.copiesOf(passwordOf(number)), `password ${number}`).toBeGreaterThan(0);
    expect(wiped.copiesOf(digestPassword(Buffer.from(passwordOf(number)))), `digest ${number}`).toBeGreaterThan(0);
  }
  // Two digests belong to a keystore whose decryption was asked for: one opens the cache, one is for the next cache.
  const digests = [1, 2, 3, 4, 5, 6, 7, 9].map((number) =>
    wiped.copiesOf(digestPassword(Buffer.from(passwordOf(number)))),
  );
  expect(digests).toContain(2);
});

it('raw keys of a file, when the store is sealed at its first', async () => {
  const documents = [1, 2, 3].map(
    (number) => `type: file-raw\nkeyType: BLS\nprivateKey: 0x${Buffer.from(testSecret(number)).toString('hex')}\n`,
  );
  writeFileSync(at('keys/raw.yaml'), documents.join('---\n'));
  const store = new KeyStore({}, { vault: core, clock });
  store.seal();
  const wiped = recordWiped();
  await expect(keyFiles(store).load()).rejects.toMatchObject({ reason: 'sealed' });
  for (const number of [1, 2, 3]) expect(wiped.copiesOf(testSecret(number)), `key ${number}`).toBeGreaterThan(0);
});

it('a keystore that is decrypted when the store is sealed already', async () => {
  const keystore = JSON.stringify(encryptKeystore(testSecret(1), 'TEST password'));
  const item = parseItem({ keystore, password: Buffer.from('TEST password') });
  const store = new KeyStore({}, { vault: core, clock });
  store.seal();
  const wiped = recordWiped();
  await expect(openKeystores([item], { pool, store }, signal)).rejects.toMatchObject({ reason: 'sealed' });
  expect(wiped.copiesOf(testSecret(1))).toBeGreaterThan(0);
});

it('a small file that cannot be read to its end', async () => {
  writeFileSync(at('password'), 'TEST password');
  const handle = await open(at('password'));
  const prototype = Object.getPrototypeOf(handle) as typeof handle;
  await handle.close();
  const { read } = prototype;
  let content: Buffer = Buffer.alloc(0);
  vi.spyOn(prototype, 'read').mockImplementation(function (this: typeof handle, ...given: unknown[]) {
    const [buffer, offset] = given as [Buffer, number];
    content = buffer;
    if (offset > 0) throw Object.assign(new Error('read'), { code: 'EIO' });
    return (read as (...args: unknown[]) => Promise<never>).call(this, buffer, 0, 4, 0);
  });
  expect(await readSmallFile(at('password'), 100)).toEqual({ refused: 'cannot be read (EIO)' });
  expect(content).toEqual(Buffer.alloc('TEST password'.length));
});

it('a password whose key derivation fails', () => {
  const keyDerivation = { kind: 'scrypt', n: 3, r: 8, p: 1, salt: Buffer.alloc(32) } as const;
  const wiped = recordWiped();
  expect(() => decryptKeystore({ keyDerivation } as unknown as Keystore, Buffer.from('TEST password'))).toThrow();
  expect(wiped.copiesOf('TEST password')).toBe(1);
});

it('the key cache: the password of a file that does not fit, and digests that no entry has', async () => {
  put(0, 1);
  await keyFiles().load();
  const file = JSON.parse(readFileSync(at('keys.cache'), 'utf8')) as {
    slices: { keystores: { uuid: string; checksum: string; public_key: string }[] }[];
  };
  const keystores = file.slices.flatMap((slice) => slice.keystores);
  const names = keystores.map(({ uuid, checksum, public_key }) => [uuid, checksum, public_key].join(' '));
  const digests = names.map((name) => digestPassword(Buffer.from(name)));
  const password = createHash('sha256').update('strongroom-key-cache-1');
  for (const digest of [...digests].sort(Buffer.compare)) password.update(digest);
  const wiped = recordWiped();
  const cache = new KeyCache(at('keys.cache'), { log: recordingLog() });
  await cache.open(async () => new Map(names.map((name, index) => [name, digests[index] ?? Buffer.alloc(0)])));
  const [{ uuid = '', checksum = '', public_key: publicKey = '' } = {}] = keystores;
  const cached = { uuid, checksum: Buffer.from(checksum, 'hex'), publicKey } as unknown as Keystore;
  expect(await cache.take(cached)).toBeUndefined(); // of other passwords: it does not open
  expect(wiped.copiesOf(password.digest())).toBe(1);

  const keystore = { uuid: 'u', checksum: Buffer.alloc(32), publicKey: 'p' } as unknown as Keystore;
  const [without, first, second] = ['a', 'b', 'c'].map((name) => digestPassword(Buffer.from(name)));
  cache.keep(keystore, without ?? Buffer.alloc(0));
  cache.keep(keystore, first ?? Buffer.alloc(0), testSecret(1));
  expect(without).toEqual(Buffer.alloc(32));
  cache.keep(keystore, second ?? Buffer.alloc(0), testSecret(1));
  expect(first).toEqual(Buffer.alloc(32));
  cache.wipe();
  expect(second).toEqual(Buffer.alloc(32));
  expect(digests).toEqual(digests.map(() => Buffer.alloc(32)));
});

it('the key cache: the password that a new file is sealed under', async () => {
  const keystore = { uuid: 'u', checksum: Buffer.alloc(32), publicKey: 'p' } as unknown as Keystore;
  const digest = digestPassword(Buffer.from('TEST password'));
  const password = createHash('sha256').update('strongroom-key-cache-1').update(digest).digest();
  const wiped = recordWiped();
  const cache = new KeyCache(at('new.cache'), { log: recordingLog() });
  cache.keep(keystore, digest, testSecret(1));
  await cache.save();
  expect(wiped.copiesOf(password)).toBe(1);
});

it('the password of an imported keystore whose file has the name of another key', async () => {
  const secret = Buffer.from('TEST secret of imported keystores');
  const seal = new ImportedKeystoreCipher(secret);
  const publicKey = publicKeyOf(testSecret(1));
  const text = await seal.encrypt({ publicKey, keystore: '{}', password: Buffer.from('TEST password') });
  writeFileSync(at(`keys/${publicKeyOf(testSecret(2)).slice(2)}.json`), text);
  writeFileSync(at(`keys/${publicKey.slice(2)}.json`), text); // no keystore either
  const imported = new ImportedKeystores(at('keys'), secret);
  const wiped = recordWiped();
  const store = new KeyStore({}, { vault: core, clock });
  await imported.load({ store, pool, log: recordingLog() }, signal);
  expect(wiped.copiesOf('TEST password')).toBe(2);
  await Promise.all([seal.wipe(), imported.wipe()]);
});

it('the passwords of an import that is refused at once', async () => {
  const items = [1, 2].map(() => ({ keystore: '{}', password: Buffer.from('TEST password') }));
  const parts = { table: undefined, imported: undefined } as unknown as Parameters<typeof importKeys>[1];
  const request = { items, slashingProtection: undefined, persist: true, allows: () => true };
  await expect(importKeys(request, parts, signal)).rejects.toMatchObject({ reason: 'malformed_body' });
  for (const { password } of items) expect(password).toEqual(Buffer.alloc('TEST password'.length));
});

it('a generated key whose deposit cannot be made', async () => {
  const terms = { credentials: Buffer.alloc(31), amountGwei: 32e9 };
  const options = { encryptBackup: undefined, network: undefined, fillRandom: (buffer: Buffer) => void buffer.fill(7) };
  const secretKey = deriveSecretKey(Buffer.alloc(32, 7), 'm');
  const wiped = recordWiped();
  const generation = generateKeys({ count: 1, terms }, options as never, {} as never, signal);
  await expect(generation).rejects.toThrow();
  expect(wiped.copiesOf(secretKey)).toBe(1);
});
