// Key directories through real files, real worker threads and a real BLS core: what is loaded, what is reported, what
// stops everything.

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { SignerError } from '../../../enclave/api/errors.ts';
import { KeyFiles } from '../../../enclave/keys/files/key-files.ts';
import type { LoadProgress } from '../../../enclave/keys/files/load-report.ts';
import type { KeyFilesParts } from '../../../enclave/keys/files/look.ts';
import { parseKeystore } from '../../../enclave/keys/keystores/keystore.ts';
import { KeystorePool, MAX_WAITING_KEYSTORES } from '../../../enclave/keys/keystores/pool.ts';
import { KeyStore } from '../../../enclave/keys/store.ts';
import type { BlsCore } from '../../../enclave/signing/bls/bls.ts';
import { openBlsCore } from '../../../enclave/signing/bls/open.ts';
import {
  encryptKeystore,
  LIGHT_PBKDF2,
  LIGHT_SCRYPT,
  makeKeyDirectory,
  publicKeyOf,
  testSecret,
  writeKeystore,
  writeRawKey,
} from '../../support/keys.ts';
import { recordingLog } from '../../support/recording-log.ts';

const clock = { now: () => 0, monotonic: () => 0 };
let directory: ReturnType<typeof makeKeyDirectory>;
let log: ReturnType<typeof recordingLog>;
let core: BlsCore;
let store: KeyStore;
let pool: KeystorePool;

beforeEach(async () => {
  log = recordingLog();
  directory = makeKeyDirectory();
  core = await openBlsCore({ prefer: 'portable', cores: 1, log: recordingLog() });
  store = new KeyStore({}, { vault: core, clock });
  pool = new KeystorePool({ keystoreLoadConcurrency: 2, memoryLimitBytes: 2 ** 33, cores: 2 }, { log });
});

afterEach(async () => {
  await pool.close();
  await core.close();
  directory.remove();
});

function load(parts: Partial<KeyFilesParts> = {}, paths: readonly string[] = [directory.path]) {
  return new KeyFiles({ paths, rawLoadConcurrency: 8 }, { store, pool, log, clock, ...parts }).load();
}

const at = (name: string) => join(directory.path, name);
const write = (name: string, text: string | Buffer) => writeFileSync(at(name), text);
const hex = (secret: Uint8Array) => Buffer.from(secret).toString('hex');
const rawText = (secret: Uint8Array) => `type: file-raw\nkeyType: BLS\nprivateKey: ${hex(secret)}\n`;
const keystoreText = (keystore: string, password: string) =>
  `type: file-keystore\nkeyType: BLS\nkeystoreFile: ${keystore}\nkeystorePasswordFile: ${password}\n`;

function writeBad(json: string, password: string | Buffer) {
  write('bad.json', json);
  write('bad.password', password);
  write('bad.yaml', keystoreText('bad.json', 'bad.password'));
}

function writeBadKeystore(password: string | Buffer, change: (json: string) => string = (json) => json) {
  writeBad(change(JSON.stringify(encryptKeystore(testSecret(50), 'p'))), password);
}

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

describe('bad files are reported, each by file, document and reason, and the others load', () => {
  const zero = Buffer.alloc(32);
  const order = Buffer.from('73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001', 'hex');
  const cases: readonly (readonly [name: string, make: () => void, reason: RegExp])[] = [
    ['wrong password', () => writeBadKeystore('other password'), /^the password does not open the keystore$/],
    ['empty password file', () => writeBadKeystore('\n'), /bad\.password: its first line is empty$/],
    ['password that is not UTF-8', () => writeBadKeystore(Buffer.from('ff', 'hex')), /^the password is not UTF-8$/],
    [
      'password file of a megabyte',
      () => writeBadKeystore('p'.repeat(2 ** 20)),
      /bad\.password: larger than 4096 bytes$/,
    ],
    ['truncated JSON', () => writeBadKeystore('p', (json) => json.slice(0, -10)), /bad\.json: not JSON$/],
    ['empty keystore', () => writeBadKeystore('p', () => ''), /bad\.json: not JSON$/],
    [
      'keystore of a megabyte',
      () => writeBadKeystore('p', (json) => json.padEnd(2 ** 20)),
      /bad\.json: larger than 65536 bytes$/,
    ],
    [
      'keystore version 3',
      () => writeBadKeystore('p', (json) => json.replace('"version":4', '"version":3')),
      /bad\.json: version: /,
    ],
    [
      'public key of another key',
      () =>
        writeBadKeystore('p', (json) =>
          json.replace(publicKeyOf(testSecret(50)).slice(2), publicKeyOf(testSecret(51)).slice(2)),
        ),
      /^the private key does not belong to the public key that the keystore names$/,
    ],
    [
      'huge scrypt parameters',
      () => writeBadKeystore('p', (json) => json.replace(/"kdf":\{.*?\},"message"/, `"kdf":${HUGE_SCRYPT},"message"`)),
      /scrypt would take 1048577 MiB, the limit is 1040 MiB$/,
    ],
    ['missing keystore', () => write('bad.yaml', keystoreText('none.json', 'p')), /none\.json: does not exist$/],
    [
      'missing password file',
      () => {
        writeBadKeystore('p');
        renameSync(at('bad.password'), at('gone.password'));
      },
      /bad\.password: does not exist$/,
    ],
    ['zero key', () => write('bad.yaml', rawText(zero)), /^the private key is zero or not below the group order$/],
    ['key that is the group order', () => write('bad.yaml', rawText(order)), /^the private key is zero or not below/],
    [
      'keystore of the group order',
      () => writeBad(JSON.stringify(encryptKeystore(order, 'p', LIGHT_PBKDF2, '')), 'p'),
      /^the private key is zero or not below the group order$/,
    ],
    [
      'unsupported type',
      () => write('bad.yaml', 'type: azure-secret\nkeyType: BLS\n'),
      /^unsupported type azure-secret$/,
    ],
    ['SECP256K1', () => write('bad.yaml', 'type: file-raw\nkeyType: SECP256K1\n'), /^unsupported keyType SECP256K1$/],
    ['empty file', () => write('bad.yaml', ''), /^describes no key$/],
    ['not YAML', () => write('bad.yaml', 'type: "file-raw\n'), /^line 2: a character is missing/],
    ['directory named like a descriptor', () => mkdirSync(at('bad.yaml')), /^not a regular file$/],
    ['dangling link', () => symlinkSync('nowhere', at('bad.yaml')), /^does not exist$/],
    ['link to itself', () => symlinkSync('bad.yaml', at('bad.yaml')), /^too many symbolic links$/],
    ['pipe, which would block a reader', () => execFileSync('mkfifo', [at('bad.yaml')]), /^not a regular file$/],
    ['descriptor of two megabytes', () => write('bad.yaml', '#'.repeat(2 ** 21)), /^larger than 1048576 bytes$/],
  ];
  const HUGE_SCRYPT = JSON.stringify({
    function: 'scrypt',
    params: { dklen: 32, n: 2 ** 30, r: 8, p: 1, salt: '00' },
  }).slice(0, -1);

  it.each(cases)('%s', async (_name, make, reason) => {
    writeRawKey(directory.path, 'a-good', testSecret(1));
    writeKeystore(directory.path, 'z-good', testSecret(2), 'p');
    make();
    const result = await load();
    expect(result.loaded).toBe(2);
    expect(result.failures).toEqual([{ file: at('bad.yaml'), document: 1, reason: expect.stringMatching(reason) }]);
    expect(log.lines.filter((line) => line.level === 'error')).toHaveLength(1);
    expect(store.countBySource()['filesystem']).toBe(2);
  });

  it.skipIf(process.getuid?.() === 0)('file that may not be read', async () => {
    write('bad.yaml', rawText(testSecret(1)));
    chmodSync(at('bad.yaml'), 0);
    expect((await load()).failures).toMatchObject([{ reason: 'permission denied' }]);
  });

  it('two documents, one bad: the good one loads, the bad one is named by its number', async () => {
    write('both.yaml', `${rawText(testSecret(1))}---\n${rawText(zero)}`);
    const result = await load();
    expect(result).toMatchObject({ loaded: 1, failures: [{ file: at('both.yaml'), document: 2 }] });
  });

  it('all of them together, in the order of the files', async () => {
    for (let number = 0; number < 30; number++) {
      const name = `k${String(number).padStart(2, '0')}`;
      if (number % 3 === 0) write(`${name}.yaml`, rawText(zero));
      else writeKeystore(directory.path, name, testSecret(number), 'p', LIGHT_SCRYPT);
      if (number % 3 === 1) write(`${name}.password`, 'wrong');
    }
    const result = await load();
    expect(result.loaded).toBe(10);
    const failed = result.failures.map((failure) => basename(failure.file, '.yaml'));
    expect(failed).toHaveLength(20);
    expect(failed).toEqual([...failed].sort());
  });

  it('no log line and no result carries a private key or a password', async () => {
    const password = 'correct horse battery staple';
    writeKeystore(directory.path, 'good', testSecret(1), password);
    writeKeystore(directory.path, 'bad', testSecret(2), password);
    write('bad.password', `${password}!`);
    write('raw.yaml', rawText(testSecret(3)));
    write('broken.yaml', `type: file-raw\nprivateKey: "${hex(testSecret(4))}`);
    const text = JSON.stringify([await load(), log.lines]);
    expect(text).not.toContain('horse');
    for (const number of [1, 2, 3, 4]) expect(text).not.toContain(hex(testSecret(number)).slice(0, 16));
  });
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
    expect(log.lines.filter((line) => line.level === 'warn')).toHaveLength(2);
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
