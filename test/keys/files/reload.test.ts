// Key folders read again while the signer runs: what is new signs, what is gone is taken out, what is unchanged is not
// decrypted again, and a file that cannot be read costs no key.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { KeyFiles } from '../../../signer/keys/files/key-files.ts';
import type { KeystoreFolder } from '../../../signer/keys/files/listing.ts';
import type { KeyFilesParts } from '../../../signer/keys/files/look.ts';
import { encryptKeystore, publicKeyOf, testSecret, writeKeystore, writeRawKey } from '../../support/keys.ts';
import { at, clock, directory, log, pool, store } from './key-folder.ts';

let decrypted: number;

beforeEach(() => {
  decrypted = 0;
});

/** The real pool, counted. */
function counting(): KeyFilesParts['pool'] {
  return new Proxy(pool, {
    get(target, name) {
      if (name === 'decrypt') decrypted += 1;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

async function loaded(keystores?: KeystoreFolder): Promise<KeyFiles> {
  const files = new KeyFiles(
    { paths: [directory.path], rawLoadConcurrency: 4, ...(keystores === undefined ? {} : { keystores }) },
    { store, pool: counting(), log, clock },
  );
  await files.load();
  store.completeFirstLoad();
  return files;
}

async function takeOut(publicKeys: readonly string[]): Promise<void> {
  for (const publicKey of publicKeys) store.remove(publicKey);
}

const signing = () => [...store.publicKeys()];
const keyOf = (number: number) => publicKeyOf(testSecret(number));

describe('key folders read again', () => {
  it('new keys sign, removed ones are taken out, and only what is new is decrypted', async () => {
    writeRawKey(directory.path, 'raw-1', testSecret(1));
    writeRawKey(directory.path, 'raw-2', testSecret(2));
    writeKeystore(directory.path, 'sealed-3', testSecret(3), 'TEST password');
    writeKeystore(directory.path, 'sealed-4', testSecret(4), 'TEST password');
    const files = await loaded();
    expect(decrypted).toBe(2);

    rmSync(at('raw-2.yaml'));
    rmSync(at('sealed-4.yaml'));
    writeRawKey(directory.path, 'raw-5', testSecret(5));
    writeKeystore(directory.path, 'sealed-6', testSecret(6), 'TEST password');
    const again = await files.reload(takeOut);

    expect(again).toMatchObject({ loaded: 2, kept: 2, removed: 2, failures: [], duplicates: [] });
    expect(decrypted).toBe(3);
    expect(signing()).toEqual([1, 3, 5, 6].map(keyOf).sort());
  });

  it('a key that moved to another file, or to another document of its file, is kept', async () => {
    writeRawKey(directory.path, 'a', testSecret(1));
    const files = await loaded();
    rmSync(at('a.yaml'));
    writeRawKey(directory.path, 'b', testSecret(1));
    expect(await files.reload(takeOut)).toMatchObject({ loaded: 0, kept: 1, removed: 0, duplicates: [] });
    expect(signing()).toEqual([keyOf(1)]);
  });

  it('a keystore that was replaced by one of another key gives that key and takes out the old one', async () => {
    writeKeystore(directory.path, 'k', testSecret(1), 'TEST password');
    const files = await loaded();
    writeKeystore(directory.path, 'k', testSecret(2), 'TEST password');
    expect(await files.reload(takeOut)).toMatchObject({ loaded: 1, kept: 0, removed: 1 });
    expect(signing()).toEqual([keyOf(2)]);
  });

  it('a key whose file is there and cannot be used stays, and its line says which', async () => {
    writeRawKey(directory.path, 'raw', testSecret(1));
    writeKeystore(directory.path, 'sealed', testSecret(2), 'TEST password');
    const files = await loaded();
    writeFileSync(at('raw.yaml'), 'type: [half written');
    writeFileSync(
      at('sealed.yaml'),
      'type: file-keystore\nkeystoreFile: nowhere.json\nkeystorePasswordFile: nowhere\n',
    );
    const again = await files.reload(takeOut);
    expect(again).toMatchObject({ kept: 2, removed: 0 });
    expect(again.failures).toHaveLength(2);
    expect(signing()).toEqual([1, 2].map(keyOf).sort());
    const stays = log.lines.filter(({ message }) => message.startsWith('a key stays loaded'));
    expect(stays.map(({ fields }) => fields['public_key']).sort()).toEqual([1, 2].map(keyOf).sort());

    rmSync(at('raw.yaml'));
    rmSync(at('sealed.yaml'));
    expect(await files.reload(takeOut)).toMatchObject({ kept: 0, removed: 2, failures: [] });
    expect(signing()).toEqual([]);
  });

  it('a folder that cannot be listed ends the look, and every key stays', async () => {
    writeRawKey(directory.path, 'raw', testSecret(1));
    const files = await loaded();
    rmSync(directory.path, { recursive: true });
    await expect(files.reload(takeOut)).rejects.toThrow(`the directory ${directory.path} cannot be read (ENOENT)`);
    expect(signing()).toEqual([keyOf(1)]);
  });

  it('a key of another source stays when its file goes, and is no longer said to be in a file', async () => {
    store.add(testSecret(1), 'memory');
    writeRawKey(directory.path, 'raw', testSecret(1));
    const files = await loaded();
    expect(store.isInFile(keyOf(1))).toBe(true);
    rmSync(at('raw.yaml'));
    expect(await files.reload(takeOut)).toMatchObject({ removed: 0 });
    expect(signing()).toEqual([keyOf(1)]);
    expect(store.isInFile(keyOf(1))).toBe(false);
  });

  it('two hundred looks at the same files decrypt nothing and hold nothing more', async () => {
    for (let number = 0; number < 20; number++)
      writeKeystore(directory.path, `k-${number}`, testSecret(number), 'TEST password');
    const files = await loaded();
    for (let look = 0; look < 200; look++) {
      expect(await files.reload(takeOut)).toMatchObject({ loaded: 0, kept: 20, removed: 0 });
    }
    expect(decrypted).toBe(20);
    expect(signing()).toHaveLength(20);
  });
});

describe('a folder of keystores without descriptors', () => {
  const keystores = () => at('keystores');
  const passwords = () => at('passwords');

  function put(name: string, number: number, password = `TEST password ${number}`): void {
    writeFileSync(join(keystores(), `${name}.json`), JSON.stringify(encryptKeystore(testSecret(number), password)));
  }

  beforeEach(() => {
    mkdirSync(keystores());
    mkdirSync(passwords());
  });

  it('NAME.json opens with NAME.txt, and the first line of it counts', async () => {
    for (const number of [1, 2]) {
      put(keyOf(number), number);
      writeFileSync(join(passwords(), `${keyOf(number)}.txt`), `TEST password ${number}\r\nremark\n`);
    }
    await loaded({ path: keystores(), passwords: { folder: passwords() } });
    expect(signing()).toEqual([1, 2].map(keyOf).sort());
  });

  it('one file has the password of all', async () => {
    for (const number of [1, 2, 3]) put(`k${number}`, number, 'TEST one for all');
    writeFileSync(at('password.txt'), 'TEST one for all\n');
    await loaded({ path: keystores(), passwords: { file: at('password.txt') } });
    expect(signing()).toHaveLength(3);
  });

  it('a keystore without a password is counted and named, and stops no other', async () => {
    put('with', 1);
    put('without', 2);
    writeFileSync(join(passwords(), 'with.txt'), 'TEST password 1');
    const files = new KeyFiles(
      { paths: [], rawLoadConcurrency: 4, keystores: { path: keystores(), passwords: { folder: passwords() } } },
      { store, pool, log, clock },
    );
    const { failures, loaded: count } = await files.load();
    expect(count).toBe(1);
    expect(failures).toEqual([
      {
        file: join(keystores(), 'without.json'),
        document: 1,
        reason: `keystorePasswordFile ${join(passwords(), 'without.txt')}: does not exist`,
      },
    ]);
    expect(store.isInFile(keyOf(2))).toBe(true);
  });

  it('hidden files, other names and folders are left alone', async () => {
    put('.hidden', 1);
    mkdirSync(join(keystores(), 'folder'));
    writeFileSync(join(keystores(), 'deposit_data.txt'), '[]');
    const { failures } = await new KeyFiles(
      { paths: [], rawLoadConcurrency: 4, keystores: { path: keystores(), passwords: { folder: passwords() } } },
      { store, pool, log, clock },
    ).load();
    expect(failures).toEqual([]);
  });

  it.each([
    ['path', 'keystores'],
    ['passwords_path', 'passwords'],
  ])('without its directory of %s nothing starts', async (option, name) => {
    rmSync(at(name), { recursive: true });
    await expect(loaded({ path: keystores(), passwords: { folder: passwords() } })).rejects.toThrow(
      `key_sources.filesystem.keystores.${option}: the directory ${at(name)} cannot be read (ENOENT)`,
    );
  });
});
