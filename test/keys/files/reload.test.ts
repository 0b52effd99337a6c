// Key folders read again while the signer runs: what is new signs, what is gone is taken out, what is unchanged is not
// decrypted again, and a file that cannot be read costs no key.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { SignerError } from '../../../signer/api/errors.ts';
import type { KeyFilesParts } from '../../../signer/keys/files/folder-scan.ts';
import { KeyFiles } from '../../../signer/keys/files/key-files.ts';
import type { KeystoreFolder } from '../../../signer/keys/files/listing.ts';
import { KeyStore } from '../../../signer/keys/store.ts';
import { SECRET_KEY_BYTES, type SecretKeyVault } from '../../../signer/keys/vault.ts';
import { encryptKeystore, publicKeyOf, testSecret, vaultOf, writeKeystore, writeRawKey } from '../../support/keys.ts';
import { rawText } from './key-documents.ts';
import { at, clock, core, directory, store as folderStore, log, pool } from './key-folder.ts';

let decrypted: number;
let store: KeyStore;

beforeEach(() => {
  decrypted = 0;
  store = folderStore;
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

const documents = (...numbers: readonly number[]) => numbers.map((number) => rawText(testSecret(number))).join('---\n');

async function loaded(
  keystores?: KeystoreFolder,
  given: KeyStore = folderStore,
  rawLoadConcurrency = 4,
): Promise<KeyFiles> {
  store = given;
  const files = new KeyFiles(
    { paths: [directory.path], rawLoadConcurrency, ...(keystores === undefined ? {} : { keystores }) },
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
    const saysNone = () => log.lines.filter(({ message }) => message.startsWith('this look took out every key'));
    expect(saysNone()).toEqual([]);
    expect(await files.reload(takeOut)).toMatchObject({ kept: 0, removed: 2, failures: [] });
    expect(signing()).toEqual([]);
    expect(saysNone()).toMatchObject([{ level: 'warn', fields: { removed: 2 } }]);
  });

  it('a folder that cannot be listed ends the look, and every key stays', async () => {
    writeRawKey(directory.path, 'raw', testSecret(1));
    const files = await loaded();
    rmSync(directory.path, { recursive: true });
    await expect(files.reload(takeOut)).rejects.toThrow(`the directory ${directory.path} cannot be read (ENOENT)`);
    expect(signing()).toEqual([keyOf(1)]);
  });

  it('a key of another source stays when its file goes, and is no longer said to be in a file', async () => {
    folderStore.add(testSecret(1), 'memory');
    writeRawKey(directory.path, 'raw', testSecret(1));
    const files = await loaded();
    expect(store.isInFile(keyOf(1))).toBe(true);
    rmSync(at('raw.yaml'));
    expect(await files.reload(takeOut)).toMatchObject({ removed: 0 });
    expect(signing()).toEqual([keyOf(1)]);
    expect(store.isInFile(keyOf(1))).toBe(false);
  });

  it('keys of a look that failed midway end when their files are gone, as all others do', async () => {
    writeRawKey(directory.path, 'a', testSecret(1));
    const vault = { ...vaultOf(core), addKeys: core.addKeys.bind(core) };
    const files = await loaded(undefined, new KeyStore({}, { vault, clock }));
    writeRawKey(directory.path, 'b', testSecret(2));
    writeRawKey(directory.path, 'c', testSecret(3));
    vault.addKeys = async (secretKeys) => {
      if (Buffer.from(secretKeys).equals(testSecret(3))) throw new Error('no memory for another key');
      return core.addKeys(secretKeys);
    };
    await expect(files.reload(takeOut)).rejects.toThrow(`${at('c.yaml')}: no memory for another key`);
    expect(signing()).toEqual([1, 2].map(keyOf).sort());

    writeFileSync(at('b.yaml'), 'type: [half written');
    rmSync(at('c.yaml'));
    expect(await files.reload(takeOut)).toMatchObject({ kept: 2, removed: 0 });
    rmSync(at('b.yaml'));
    expect(await files.reload(takeOut)).toMatchObject({ kept: 1, removed: 1 });
    expect(signing()).toEqual([keyOf(1)]);
  });

  it.each([
    ['is empty', () => ''],
    ['ends in the middle', (whole: string) => whole.slice(0, 150)],
    ['has a quote that nothing closes', (whole: string) => whole.replace('file-raw', '"file-raw')],
    ['is all zeros', (whole: string) => '\0'.repeat(whole.length)],
  ])('no key of a file of five that %s is taken out', async (_, damaged) => {
    const whole = documents(1, 2, 3, 4, 5);
    writeFileSync(at('keys.yaml'), whole);
    const files = await loaded();
    writeFileSync(at('keys.yaml'), damaged(whole));
    const again = await files.reload(takeOut);
    expect(again).toMatchObject({ loaded: 0, kept: 5, removed: 0 });
    expect(again.failures).toHaveLength(1);
    writeFileSync(at('keys.yaml'), documents(1, 2, 4, 5));
    expect(await files.reload(takeOut)).toMatchObject({ kept: 4, removed: 1, failures: [], duplicates: [] });
    expect(signing()).toEqual([1, 2, 4, 5].map(keyOf).sort());
  });

  it.each([
    ['the parser refuses', `${documents(2)}---\ntype: file-raw\nkeyType: BLS\n`],
    ['is no key', `${documents(2)}---\ntype: file-raw\nkeyType: BLS\nprivateKey: ${'0'.repeat(64)}\n`],
  ])('a file with a document that %s keeps every key that it had, wherever its document was', async (_, damaged) => {
    writeFileSync(at('keys.yaml'), documents(1, 2, 3));
    const files = await loaded();
    writeFileSync(at('keys.yaml'), damaged);
    for (let look = 0; look < 2; look++)
      expect(await files.reload(takeOut)).toMatchObject({
        kept: 3,
        removed: 0,
        failures: [{ document: 2 }],
        duplicates: [],
      });
    expect(signing()).toEqual([1, 2, 3].map(keyOf).sort());
    writeFileSync(at('keys.yaml'), documents(2));
    expect(await files.reload(takeOut)).toMatchObject({ kept: 1, removed: 2, failures: [] });
  });

  it('a key that is one too many stays known to be in a file', async () => {
    writeRawKey(directory.path, 'a', testSecret(1));
    writeRawKey(directory.path, 'b', testSecret(2));
    // One file after the other: of two that are read at once either may be the one too many.
    const files = await loaded(undefined, new KeyStore({ maximumKeys: 1 }, { vault: core, clock }), 1);
    for (let look = 0; look < 2; look++) {
      expect(await files.reload(takeOut)).toMatchObject({ kept: 1, failures: [{ file: at('b.yaml') }] });
      expect(store.isInFile(keyOf(2))).toBe(true);
    }
  });

  it('raw keys of files that are as they were are not derived again; one that was taken out meanwhile is', async () => {
    writeFileSync(at('a.yaml'), documents(1, 2, 3));
    writeFileSync(at('b.yaml'), documents(4, 3));
    const vault = { ...vaultOf(core), addKeys: vi.fn(core.addKeys.bind(core)) };
    const files = await loaded(undefined, new KeyStore({}, { vault, clock }));
    vault.addKeys.mockClear();
    const unchanged = { loaded: 0, kept: 4, removed: 0, failures: [], duplicates: [{ document: 2 }] };
    for (let look = 0; look < 3; look++) expect(await files.reload(takeOut)).toMatchObject(unchanged);
    expect(vault.addKeys).not.toHaveBeenCalled();

    store.remove(keyOf(4));
    expect(await files.reload(takeOut)).toMatchObject({ loaded: 1, kept: 3, removed: 0 });
    expect(vault.addKeys).toHaveBeenCalledTimes(1);
    writeFileSync(at('a.yaml'), documents(1, 2, 5));
    expect(await files.reload(takeOut)).toMatchObject({ loaded: 1, kept: 4, removed: 0, duplicates: [] });
    expect(signing()).toEqual([1, 2, 3, 4, 5].map(keyOf).sort());
  });

  it('of two documents with one key the later one is named, at every look', async () => {
    writeFileSync(at('a.yaml'), documents(...Array.from({ length: 300 }, (_, number) => number)));
    writeFileSync(at('b.yaml'), documents(299));
    const files = await loaded();
    for (const change of ['', '\n', '\n\n']) {
      writeFileSync(at('b.yaml'), documents(299) + change);
      const { duplicates } = await files.reload(takeOut);
      expect(duplicates).toMatchObject([{ file: at('b.yaml'), document: 1 }]);
    }
  });

  it('a signing worker that ends takes no key with it', async () => {
    for (let number = 0; number < 10; number++) writeRawKey(directory.path, `k-${number}`, testSecret(number));
    let ends = 3;
    const addKeys: SecretKeyVault['addKeys'] = async (secretKeys) => {
      if (ends-- > 0) throw new SignerError('signing_unavailable');
      return core.addKeys(secretKeys);
    };
    await loaded(undefined, new KeyStore({}, { vault: { ...vaultOf(core), addKeys }, clock }));
    expect(signing()).toHaveLength(10);
  });

  it('at most 256 keys that may be there already take room beside those that are', async () => {
    for (let file = 0; file < 8; file++)
      writeFileSync(at(`keys-${file}.yaml`), documents(...Array.from({ length: 200 }, (_, number) => number)));
    let [held, most] = [0, 0];
    const addKeys: SecretKeyVault['addKeys'] = (secretKeys) => {
      held += secretKeys.length / SECRET_KEY_BYTES;
      most = Math.max(most, held);
      return core.addKeys(secretKeys);
    };
    const removeKey: SecretKeyVault['removeKey'] = (handle) => {
      held -= 1;
      core.removeKey(handle);
    };
    await loaded(undefined, new KeyStore({}, { vault: { ...vaultOf(core), addKeys, removeKey }, clock }));
    expect(signing()).toHaveLength(200);
    expect(held).toBe(200);
    expect(most).toBeLessThanOrEqual(200 + 256);
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
