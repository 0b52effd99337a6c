// The key cache: later starts decrypt nothing, whatever changed is noticed, and a file that is damaged, foreign or half
// written costs time and no key.

import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { KeyFiles } from '../../../signer/keys/files/key-files.ts';
import type { FilesystemLoad } from '../../../signer/keys/files/load-report.ts';
import { KeyStore } from '../../../signer/keys/store.ts';
import { publicKeyOf, testSecret, writeKeystore, writeRawKey } from '../../support/keys.ts';
import { sized } from '../../support/scale.ts';
import { at, clock, core, log, pool } from './key-folder.ts';

const PASSWORD = 'TEST password';
const FLIPS = sized(4, 12);
let decrypted: number;

beforeEach(() => {
  const { decrypt } = pool;
  decrypted = 0;
  pool.decrypt = (...given) => {
    decrypted += 1;
    return decrypt.apply(pool, given);
  };
  mkdirSync(at('keys'));
  for (let number = 0; number < 6; number++) put(number);
});

const put = (number: number, password = PASSWORD) =>
  writeKeystore(at('keys'), `k${number}`, testSecret(number), password);
const keyOf = (number: number) => publicKeyOf(testSecret(number));
const numbered = (...numbers: readonly number[]) => numbers.map(keyOf).sort();
const cache = () => at('keys.cache');

interface Start extends FilesystemLoad {
  readonly keys: readonly string[];
  readonly decrypted: number;
  readonly files: KeyFiles;
  readonly store: KeyStore;
}

/** A signer that starts on the folder: a store of its own, the same files. */
async function start(): Promise<Start> {
  const store = new KeyStore({}, { vault: core, clock });
  const files = new KeyFiles(
    { paths: [at('keys')], rawLoadConcurrency: 4, cache: cache() },
    { store, pool, log, clock },
  );
  decrypted = 0;
  const load = await files.load();
  store.completeFirstLoad();
  return { ...load, keys: [...store.publicKeys()], decrypted, files, store };
}

describe('the key cache', () => {
  it('a second start decrypts nothing and has the same keys', async () => {
    expect(await start()).toMatchObject({ decrypted: 6, loaded: 6 });
    expect(await start()).toMatchObject({ decrypted: 0, loaded: 6, failures: [], keys: numbered(0, 1, 2, 3, 4, 5) });
  });

  it('is for its owner alone, and shows neither a secret key nor a password', async () => {
    await start();
    expect(statSync(cache()).mode & 0o777).toBe(0o600);
    const text = readFileSync(cache(), 'latin1');
    for (let number = 0; number < 6; number++) {
      const secret = Buffer.from(testSecret(number));
      for (const form of ['hex', 'base64', 'latin1'] as const) expect(text).not.toContain(secret.toString(form));
    }
    expect(text).not.toContain(PASSWORD);
  });

  it('a keystore that was added is decrypted, alone, and is in the cache from then on', async () => {
    await start();
    put(6);
    expect(await start()).toMatchObject({ decrypted: 1, loaded: 7 });
    expect(await start()).toMatchObject({ decrypted: 0, loaded: 7 });
  });

  it('a keystore that was removed does not come back, and costs nothing where others have its password', async () => {
    await start();
    rmSync(at('keys/k3.yaml'));
    expect(await start()).toMatchObject({ decrypted: 0, keys: numbered(0, 1, 2, 4, 5) });
    expect(readFileSync(cache(), 'utf8')).not.toContain(keyOf(3).slice(2));
    expect(await start()).toMatchObject({ decrypted: 0, keys: numbered(0, 1, 2, 4, 5) });
  });

  it('a file that others may read is for its owner alone again, and is used', async () => {
    await start();
    chmodSync(cache(), 0o644);
    expect(await start()).toMatchObject({ decrypted: 0, loaded: 6 });
    expect(statSync(cache()).mode & 0o777).toBe(0o600);
    expect(log.lines.map(({ message }) => message)).toContainEqual(expect.stringContaining('could be read by others'));
  });

  it('a keystore that was replaced gives its new key', async () => {
    await start();
    writeKeystore(at('keys'), 'k3', testSecret(9), PASSWORD);
    expect((await start()).keys).toEqual(numbered(0, 1, 2, 4, 5, 9));
  });

  it('a password that does not open its keystore any more loads no key of it', async () => {
    await start();
    const password = readdirSync(at('keys')).find((name) => name.startsWith('k3') && !/\.(json|yaml)$/.test(name));
    writeFileSync(at(`keys/${password}`), 'TEST another password');
    const { failures, keys } = await start();
    expect(keys).toEqual(numbered(0, 1, 2, 4, 5));
    expect(failures).toMatchObject([{ reason: 'the password does not open the keystore' }]);
  });

  it('a byte that was flipped anywhere is only slow', async () => {
    await start();
    const good = readFileSync(cache());
    for (let step = 0; step < FLIPS; step++) {
      const bad = Buffer.from(good);
      const place = Math.floor((step * (good.length - 1)) / (FLIPS - 1));
      bad.writeUInt8(bad.readUInt8(place) ^ 0x01, place);
      writeFileSync(cache(), bad);
      expect(await start()).toMatchObject({ decrypted: 6, loaded: 6, failures: [] });
      expect(readFileSync(cache()).equals(bad)).toBe(false);
    }
    expect(await start()).toMatchObject({ decrypted: 0 });
  });

  it.each([
    ['empty', ''],
    ['cut off', '{"format":"strongroom-key-cache-1","salt":'],
    ['of somebody else', '{"format":"other"}'],
  ])('a file that is %s is only slow, and is replaced', async (_, text) => {
    writeFileSync(cache(), text);
    expect(await start()).toMatchObject({ decrypted: 6, loaded: 6 });
    expect(await start()).toMatchObject({ decrypted: 0, loaded: 6 });
  });

  it('what a kill left beside the file while it was written is not read', async () => {
    await start();
    writeFileSync(`${cache()}.999.new`, readFileSync(cache()).subarray(0, 100));
    expect(await start()).toMatchObject({ decrypted: 0, loaded: 6 });
  });

  it('a cache that cannot be written is said, and every key signs', async () => {
    mkdirSync(cache());
    expect(await start()).toMatchObject({ decrypted: 6, loaded: 6 });
    expect(log.lines.map(({ message }) => message)).toContain('the key cache cannot be written');
  });

  it('a cache of other keystores gives them no key of this folder', async () => {
    await start();
    const foreign = readFileSync(cache());
    rmSync(at('keys'), { recursive: true });
    mkdirSync(at('keys'));
    writeRawKey(at('keys'), 'raw', testSecret(20));
    writeKeystore(at('keys'), 'other', testSecret(21), PASSWORD);
    writeFileSync(cache(), foreign);
    expect(await start()).toMatchObject({ decrypted: 1, keys: numbered(20, 21) });
  });

  it('keeps up with folders that are read again', async () => {
    const { files, store } = await start();
    rmSync(at('keys/k0.yaml'));
    put(7);
    await files.reload(async (gone) => {
      for (const publicKey of gone) store.remove(publicKey);
    });
    expect(await start()).toMatchObject({ loaded: 6, keys: numbered(1, 2, 3, 4, 5, 7) });
    expect(await start()).toMatchObject({ decrypted: 0, loaded: 6 });
  });
});

describe('the key cache of keystores with passwords of their own', () => {
  const COUNT = 40; // two slices
  const own = (number: number) => `TEST password ${number}`;
  const numbers = Array.from({ length: COUNT }, (_, index) => index);

  beforeEach(() => {
    for (const number of numbers) put(number, own(number));
  });

  interface CacheDocument {
    readonly slices: readonly { readonly keystores: readonly { readonly public_key: string }[] }[];
  }

  /** How many keystores lie in one slice with this one. */
  const besides = (number: number) => {
    const { slices } = JSON.parse(readFileSync(cache(), 'utf8')) as CacheDocument;
    const name = keyOf(number);
    const slice = slices.find(({ keystores }) => keystores.some(({ public_key: key }) => key === name));
    return (slice?.keystores.length ?? 0) - 1;
  };
  const passwordFile = (number: number) =>
    at(`keys/${readdirSync(at('keys')).find((name) => name.startsWith(`k${number}.`) && /txt|password/.test(name))}`);

  it('a keystore that was removed costs its slice once, and no other', async () => {
    expect(await start()).toMatchObject({ decrypted: COUNT, loaded: COUNT });
    expect(await start()).toMatchObject({ decrypted: 0, loaded: COUNT });
    const neighbours = besides(3);
    expect(neighbours).toBe(COUNT / 2 - 1);
    rmSync(at('keys/k3.yaml'));
    expect(await start()).toMatchObject({ decrypted: neighbours, loaded: COUNT - 1 });
    expect(await start()).toMatchObject({ decrypted: 0, loaded: COUNT - 1 });
  });

  it('a wrong password costs its slice once, and itself at later starts', async () => {
    await start();
    const neighbours = besides(3);
    writeFileSync(passwordFile(3), 'TEST another password');
    expect(await start()).toMatchObject({ decrypted: neighbours + 1, loaded: COUNT - 1 });
    expect(await start()).toMatchObject({ decrypted: 1, loaded: COUNT - 1 });
    writeFileSync(passwordFile(3), own(3));
    expect(await start()).toMatchObject({ decrypted: 1, loaded: COUNT });
    expect(await start()).toMatchObject({ decrypted: 0, loaded: COUNT });
  });

  it('a reload opens nothing that did not change, and what it adds and removes is known to the next start', async () => {
    const { files, store } = await start();
    const before = readFileSync(cache(), 'utf8');
    decrypted = 0;
    await files.reload(async () => undefined);
    expect([decrypted, readFileSync(cache(), 'utf8')]).toEqual([0, before]);
    const neighbours = besides(3);
    rmSync(at('keys/k3.yaml'));
    put(COUNT, own(COUNT));
    await files.reload(async (gone) => {
      for (const publicKey of gone) store.remove(publicKey);
    });
    expect(decrypted).toBe(1);
    expect(await start()).toMatchObject({ decrypted: neighbours, loaded: COUNT });
    expect(await start()).toMatchObject({ decrypted: 0, loaded: COUNT });
  });

  it('becomes a few slices again at a start, however often a reload has added one', async () => {
    const slices = () => (JSON.parse(readFileSync(cache(), 'utf8')) as CacheDocument).slices.length;
    const { files } = await start();
    for (let more = 0; more < 4; more++) {
      put(COUNT + more, own(COUNT + more));
      await files.reload(async () => undefined);
    }
    expect(slices()).toBe(6);
    expect(await start()).toMatchObject({ decrypted: 0, loaded: COUNT + 4 });
    expect(slices()).toBe(2);
    expect(await start()).toMatchObject({ decrypted: 0, loaded: COUNT + 4 });
  });
});
