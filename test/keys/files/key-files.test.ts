// Key directories through real files, real worker threads and a real BLS core: what is loaded, which of two duplicates
// stays, and what stops everything.

import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import type { SignerError } from '../../../signer/api/errors.ts';
import type { LoadProgress } from '../../../signer/keys/files/load-report.ts';
import { parseKeystore } from '../../../signer/keys/keystores/keystore.ts';
import { MAX_WAITING_KEYSTORES } from '../../../signer/keys/keystores/pool.ts';
import {
  encryptKeystore,
  LIGHT_PBKDF2,
  LIGHT_SCRYPT,
  publicKeyOf,
  testSecret,
  writeKeystore,
  writeRawKey,
} from '../../support/keys.ts';
import { keystoreText, load, rawText, write } from './key-documents.ts';
import { at, core, directory, log, pool, store } from './key-folder.ts';

describe('loading', () => {
  it('loads 200 keystores and 2,000 raw keys, and every one can sign', async () => {
    const expected: string[] = [];
    for (let number = 0; number < 2000; number++)
      expected.push(writeRawKey(directory.path, `raw-${number}`, testSecret(number)));
    for (let number = 2000; number < 2200; number++) {
      const cost = number % 2 === 0 ? LIGHT_PBKDF2 : LIGHT_SCRYPT;
      expected.push(
        writeKeystore(directory.path, `keystore-${number}`, testSecret(number), `password ${number}`, cost),
      );
    }
    const result = await load();
    expect(result).toMatchObject({ loaded: 2200, duplicates: [], failures: [] });
    store.completeFirstLoad();
    expect(store.publicKeys()).toEqual(expected.sort());
    expect(store.countBySource()).toEqual({ filesystem: 2200, dynamodb: 0, memory: 0 });
    for (const publicKey of [expected[0], expected[1000], expected[2199]]) {
      const key = store.find(publicKey ?? '');
      expect(key !== undefined && (await core.sign(key.handle, Buffer.alloc(32), 'normal'))).toHaveLength(96);
    }
  });

  it('takes .yaml and .yml in any case, of one level, and leaves other and hidden files alone', async () => {
    const names = ['a.yaml', 'b.yml', 'C.YAML'];
    for (const [number, name] of names.entries()) write(name, rawText(testSecret(number)));
    for (const name of ['x.json', 'x.txt', 'yaml', 'x.yaml.bak', '.hidden.yaml', '._a.yaml']) write(name, 'no key');
    mkdirSync(at('deeper'));
    writeFileSync(at('deeper/d.yaml'), rawText(testSecret(9)));
    expect(await load()).toMatchObject({ loaded: 3, failures: [] });
    expect(store.find(publicKeyOf(testSecret(9)))).toBeUndefined();
  });

  it('follows symbolic links as Kubernetes mounts secrets: descriptor, keystore and password', async () => {
    const data = at('..data');
    mkdirSync(data);
    writeKeystore(data, 'k', testSecret(1), 'p');
    for (const name of ['k.yaml', 'k.json', 'k.password']) symlinkSync(join('..data', name), at(name));
    expect(await load()).toMatchObject({ loaded: 1, failures: [] });
  });

  it.each([
    ['with a line end', 'p w\n'],
    ['with a Windows line end', 'p w\r\n'],
    ['without a line end', 'p w'],
    ['with more lines', 'p w\nsomething else\n'],
    ['as a keystore tool pads it with control codes', 'p\u0000 w\u007f\n'],
  ])('takes the first line of the password file, %s', async (_name, text) => {
    writeKeystore(directory.path, 'k', testSecret(1), 'p w');
    write('k.password', text);
    expect(await load()).toMatchObject({ loaded: 1, failures: [] });
  });

  it('takes spaces of a password as they are', async () => {
    writeKeystore(directory.path, 'k', testSecret(1), ' p ');
    expect(await load()).toMatchObject({ loaded: 1 });
  });

  it('derives the public key of a keystore that names none', async () => {
    const { pubkey: _, ...nameless } = encryptKeystore(testSecret(1), 'p');
    write('k.json', JSON.stringify(nameless));
    write('p', 'p');
    write('k.yaml', keystoreText('k.json', 'p'));
    expect(await load()).toMatchObject({ loaded: 1 });
    expect(store.find(publicKeyOf(testSecret(1)))).toBeDefined();
  });

  it('loads a thousand documents of one file, while others have their turn', async () => {
    write('all.yaml', Array.from({ length: 1000 }, (_, number) => rawText(testSecret(number))).join('---\n'));
    let turns = 0;
    const done = new AbortController();
    const others = (async () => {
      for (; !done.signal.aborted; turns++) await setImmediate();
    })();
    expect(await load()).toMatchObject({ loaded: 1000, failures: [] });
    done.abort();
    await others;
    expect(turns).toBeGreaterThan(900);
  });

  it('loads several directories; an empty one is no mistake', async () => {
    const [first, second, empty] = ['one', 'two', 'empty'].map(at) as [string, string, string];
    for (const path of [first, second, empty]) mkdirSync(path);
    writeRawKey(first, 'a', testSecret(1));
    writeKeystore(second, 'a', testSecret(2), 'p');
    expect(await load({}, [first, second, empty])).toMatchObject({ loaded: 2, failures: [] });
  });
});

it('waits its turn behind a pool that is full of what clients import, and is not refused as they are', async () => {
  const own = writeKeystore(directory.path, 'own', testSecret(1), 'p');
  const imported = parseKeystore(encryptKeystore(testSecret(2), 'p'));
  if ('refused' in imported) throw new Error(imported.reason);
  const decrypt = pool.decrypt.bind(pool);
  const imports: Promise<string>[] = [];
  vi.spyOn(pool, 'decrypt').mockImplementation((keystore, password, from) => {
    // All of it at the moment at which the load comes: as many as there is room for, and one more.
    for (let count = pool.concurrency + MAX_WAITING_KEYSTORES + 1; count > 0; count--) {
      const outcome = decrypt(imported, Buffer.from('p'));
      imports.push(
        outcome.then(
          () => 'answered',
          ({ reason }: SignerError) => reason,
        ),
      );
    }
    return decrypt(keystore, password, from);
  });
  expect(await load()).toMatchObject({ loaded: 1, failures: [] });
  store.completeFirstLoad();
  expect(store.publicKeys()).toEqual([own]);
  expect((await Promise.all(imports)).filter((outcome) => outcome !== 'answered')).toEqual(['overloaded']);
});

describe('a duplicate key', () => {
  it('keeps the first document by name, whatever is decrypted first', async () => {
    writeKeystore(directory.path, 'a', testSecret(1), 'p', LIGHT_SCRYPT);
    writeRawKey(directory.path, 'b', testSecret(1));
    writeKeystore(directory.path, 'c', testSecret(1), 'p');
    const result = await load();
    expect(result).toMatchObject({ loaded: 1, failures: [] });
    expect(result.duplicates.map(({ file, publicKey }) => [basename(file), publicKey])).toEqual([
      ['b.yaml', publicKeyOf(testSecret(1))],
      ['c.yaml', publicKeyOf(testSecret(1))],
    ]);
    const warned = log.lines.filter((line) => line.level === 'warn').map(({ fields }) => fields);
    expect(warned).toMatchObject(['b', 'c'].map((name) => ({ file: at(`${name}.yaml`), first_file: at('a.yaml') })));
  });

  it('of another source keeps that one', async () => {
    store.add(testSecret(1), 'dynamodb');
    writeRawKey(directory.path, 'a', testSecret(1));
    expect(await load()).toMatchObject({ loaded: 0, duplicates: [{ file: at('a.yaml') }] });
    expect(store.find(publicKeyOf(testSecret(1)))?.source).toBe('dynamodb');
  });
});

describe('what stops a load', () => {
  it('a directory that does not exist is a startup failure that names it, and nothing is loaded', async () => {
    writeRawKey(directory.path, 'a', testSecret(1));
    await expect(load({}, [directory.path, at('nowhere')])).rejects.toThrow(
      `key_sources.filesystem.paths: the directory ${at('nowhere')} cannot be read`,
    );
    expect(store.countBySource()['filesystem']).toBe(0);
  });

  it('a file where a directory should be is a startup failure', async () => {
    write('file', '');
    await expect(load({}, [at('file')])).rejects.toThrow('key_sources.filesystem.paths');
  });

  it('sealing ends it, and no key comes back', async () => {
    for (let number = 0; number < 20; number++) writeKeystore(directory.path, `k${number}`, testSecret(number), 'p');
    const stopped = load({ clock: clockThatAtTheThirdKey(() => store.seal()) });
    await expect(stopped).rejects.toMatchObject({ reason: 'sealed' });
    expect(store.countBySource()).toEqual({ filesystem: 0, dynamodb: 0, memory: 0 });
  });

  it('its signal ends it with the signal’s reason; what is loaded stays', async () => {
    for (let number = 0; number < 20; number++) writeKeystore(directory.path, `k${number}`, testSecret(number), 'p');
    const controller = new AbortController();
    const stopped = load({
      signal: controller.signal,
      clock: clockThatAtTheThirdKey(() => controller.abort(new Error('stopping'))),
    });
    await expect(stopped).rejects.toThrow('stopping');
    const { filesystem } = store.countBySource();
    expect(filesystem).toBeGreaterThan(0);
    expect(filesystem).toBeLessThan(20);
  });
});

it('tells how far a long load is, every ten seconds and at its end', async () => {
  for (let number = 0; number < 10; number++) writeKeystore(directory.path, `k${number}`, testSecret(number), 'p');
  let now = 0;
  const progress: LoadProgress[] = [];
  // Four seconds pass between any two looks at the clock.
  const result = await load({
    clock: { now: () => 0, monotonic: () => (now += 4000) },
    onProgress: (line) => progress.push(line),
  });
  expect(progress.map((line) => line.keystoresRemaining)).toEqual([8, 5, 2]);
  expect(progress.map((line) => line.loaded)).toEqual([2, 5, 8]);
  expect(progress.map(({ done, total }) => [done, total])).toEqual([
    [2, 10],
    [5, 10],
    [8, 10],
  ]);
  expect(progress.map((line) => line.remainingSeconds)).toEqual([32, 20, 8]);
  const lines = log.lines.filter((line) => line.level === 'info');
  expect(lines.map((line) => line.message)).toEqual([
    'loading key files',
    'loading key files',
    'loading key files',
    'the key files are loaded',
  ]);
  expect(lines.at(-1)?.fields).toMatchObject({ loaded: 10, failures: 0, seconds: result.seconds });
});

/** Does something at the third key that is loaded: a load looks at the clock twice, and once a key. */
function clockThatAtTheThirdKey(act: () => void) {
  let looks = 0;
  return {
    now: () => 0,
    monotonic: () => {
      looks += 1;
      if (looks === 5) act();
      return 0;
    },
  };
}
