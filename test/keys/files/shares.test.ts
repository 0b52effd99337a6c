// Shares in key files and among the imported keystores: loaded as whole keys are, and a second form of a key is refused
// and named, whichever comes first.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BlsCore } from '../../../signer/bls/bls.ts';
import { openBlsCore } from '../../../signer/bls/open-either.ts';
import { ImportedKeystores } from '../../../signer/keys/files/imported-keystores.ts';
import { KeyFiles } from '../../../signer/keys/files/key-files.ts';
import { SHARE_REFUSALS } from '../../../signer/keys/loaded-key.ts';
import { KeyStore } from '../../../signer/keys/store.ts';
import { addonForTests } from '../../support/addon.ts';
import { SHARE_PASSWORD, shareKeystore, type TestShare, testShare, writeShare } from '../../support/distributed.ts';
import { encryptKeystore, publicKeyOf, testSecret, writeKeystore, writeRawKey } from '../../support/keys.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { at, clock, directory, log, pool, store as portableStore } from './key-folder.ts';

const KEY = publicKeyOf(testSecret(1));
const SHARE: () => TestShare = () => testShare(1, 2);

describe.skipIf(!addonForTests())('shares in files', () => {
  let core: BlsCore;
  let store: KeyStore;
  beforeEach(async () => {
    core = await openBlsCore({ prefer: 'native', cores: 1, log: recordingLog() });
    store = new KeyStore({}, { vault: core, clock });
  });
  afterEach(() => core.close());

  const filesOf = (options: Partial<ConstructorParameters<typeof KeyFiles>[0]> = {}, given = store) =>
    new KeyFiles({ paths: [directory.path], rawLoadConcurrency: 1, ...options }, { store: given, pool, log, clock });
  const takeOut = async (publicKeys: readonly string[]) => {
    for (const publicKey of publicKeys) store.remove(publicKey);
  };

  it('are loaded from descriptors and from folders of keystores, with the path of the keystore', async () => {
    writeShare(directory.path, 'a', SHARE());
    mkdirSync(at('bulk'));
    writeFileSync(at('bulk/b.json'), JSON.stringify(shareKeystore(testShare(2, 4))));
    writeFileSync(at('password.txt'), SHARE_PASSWORD);
    const keystores = { path: at('bulk'), passwords: { file: at('password.txt') } };
    expect(await filesOf({ keystores }).load()).toMatchObject({ loaded: 2, failures: [], duplicates: [] });
    expect(store.shareOf(KEY)).toEqual(SHARE().share);
    expect(store.shareOf(publicKeyOf(testSecret(2)))?.participantId).toBe(4);
    expect(store.derivationPathOf(KEY)).toBe('m/12381/3600/0/0/0');
    expect(store.isInFile(KEY)).toBe(true);
  });

  it.each<[string, (name: string) => void]>([
    ['a raw key', (name) => writeRawKey(directory.path, name, testSecret(1))],
    ['a keystore', (name) => writeKeystore(directory.path, name, testSecret(1), 'password')],
    ['a share of another participant', (name) => writeShare(directory.path, name, testShare(1, 3))],
    ['a share of another set', (name) => writeShare(directory.path, name, testShare(1, 2, { set: 2 }))],
  ])('beside %s of the same key: the one that is there first stays, the other one is named', async (_, writeOther) => {
    writeShare(directory.path, 'b', SHARE());
    await filesOf().load();
    writeOther('c');
    const load = await filesOf().reload(takeOut);
    expect(load.failures).toEqual([{ file: at('c.yaml'), document: 1, reason: SHARE_REFUSALS.held_otherwise }]);
    expect(load).toMatchObject({ duplicates: [], removed: 0 });
    expect(store.shareOf(KEY)).toEqual(SHARE().share);
    expect(log.lines).toContainEqual({
      level: 'error',
      fields: { file: at('c.yaml'), document: 1, reason: SHARE_REFUSALS.held_otherwise },
      message: 'a key was not loaded',
    });
  });

  it('beside a whole key that is there first are refused, and the key stays whole', async () => {
    writeRawKey(directory.path, 'a', testSecret(1));
    writeShare(directory.path, 'b', SHARE());
    const files = filesOf();
    for (const load of [await files.load(), await files.reload(takeOut)]) {
      expect(load.failures).toEqual([{ file: at('b.yaml'), document: 1, reason: SHARE_REFUSALS.held_otherwise }]);
    }
    expect([store.find(KEY)?.source, store.shareOf(KEY)]).toEqual(['filesystem', undefined]);
  });

  it('take the place of the whole key once it was taken out', async () => {
    writeRawKey(directory.path, 'a', testSecret(1));
    const files = filesOf();
    await files.load();
    rmSync(at('a.yaml'));
    await files.reload(takeOut);
    writeShare(directory.path, 'b', SHARE());
    expect(await files.reload(takeOut)).toMatchObject({ loaded: 1, failures: [] });
    expect(store.shareOf(KEY)?.participantId).toBe(2);
  });

  it('twice the very same are one key, described more than once', async () => {
    writeShare(directory.path, 'a', SHARE());
    writeShare(directory.path, 'b', SHARE());
    const load = await filesOf().load();
    expect(load).toMatchObject({ loaded: 1, failures: [], duplicates: [{ file: at('b.yaml'), publicKey: KEY }] });
  });

  it('that are unchanged are kept by a reload, and opened by the cache at the next start', async () => {
    writeShare(directory.path, 'a', SHARE());
    const files = filesOf({ cache: at('cache') });
    await files.load();
    let decrypted = 0;
    const { decrypt } = pool;
    pool.decrypt = (...given) => {
      decrypted += 1;
      return decrypt.apply(pool, given);
    };
    expect(await files.reload(takeOut)).toMatchObject({ kept: 1, loaded: 0, failures: [] });
    const later = new KeyStore({}, { vault: core, clock });
    expect(await filesOf({ cache: at('cache') }, later).load()).toMatchObject({ loaded: 1, failures: [] });
    expect([decrypted, later.shareOf(KEY)?.participantId]).toEqual([0, 2]);
  });

  it('with a wrong secret or wrong commitments load no key, and the file is named', async () => {
    const { share, secretKey } = SHARE();
    writeShare(directory.path, 'a', { share, secretKey: testShare(1, 3).secretKey });
    const { commitments } = testShare(1, 2, { set: 2 }).share;
    writeShare(directory.path, 'b', { secretKey, share: { ...share, commitments } });
    const load = await filesOf().load();
    expect(load.failures.map(({ file, reason }) => [file, reason])).toEqual([
      [at('a.yaml'), 'the private key does not belong to the public key that the keystore names'],
      [at('b.yaml'), SHARE_REFUSALS.share_mismatch],
    ]);
    expect(store.find(KEY)).toBeUndefined();
  });

  it('need the native core', async () => {
    writeShare(directory.path, 'a', SHARE());
    const { failures } = await filesOf({}, portableStore).load();
    expect(failures).toEqual([{ file: at('a.yaml'), document: 1, reason: SHARE_REFUSALS.share_unsupported }]);
  });

  describe('that were imported', () => {
    const kept = () => new ImportedKeystores(at('imported'), Buffer.from('TEST secret'));
    const keep = (publicKey: string, keystore: object, password: string) =>
      kept().keep([{ publicKey, keystore: JSON.stringify(keystore), password: Buffer.from(password) }]);
    const load = () => kept().load({ store, pool, log }, new AbortController().signal);
    const reasons = () =>
      log.lines.filter(({ level }) => level === 'warn').map(({ fields }) => [fields['file'], fields['reason']]);
    const file = join('imported', `${KEY.slice(2)}.json`);
    beforeEach(() => mkdirSync(at('imported')));

    it('are there after a restart, in the file of the composite key', async () => {
      await keep(KEY, shareKeystore(SHARE()), SHARE_PASSWORD);
      expect(await load()).toBe(0);
      expect([store.find(KEY)?.source, store.shareOf(KEY)]).toEqual(['memory', SHARE().share]);
    });

    it('are refused beside the whole key, and a whole key beside its share', async () => {
      await keep(KEY, shareKeystore(SHARE()), SHARE_PASSWORD);
      store.add(testSecret(1), 'filesystem');
      expect(await load()).toBe(1);
      store.remove(KEY);
      await keep(KEY, encryptKeystore(testSecret(1), 'password'), 'password');
      store.add(SHARE().secretKey, 'filesystem', SHARE().share);
      expect(await load()).toBe(1);
      const refused = [at(file), SHARE_REFUSALS.held_otherwise];
      expect(reasons()).toEqual([refused, refused]);
    });

    it('in the file of another key are not loaded', async () => {
      await keep(KEY, shareKeystore(testShare(2, 2)), SHARE_PASSWORD);
      expect(await load()).toBe(1);
      expect(reasons()).toEqual([[at(file), 'it holds another key than it names']]);
      expect(store.countBySource().memory).toBe(0);
    });
  });
});
