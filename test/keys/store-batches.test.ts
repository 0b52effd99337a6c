// Refreshes of the key store, in batches: readers see the old list or the new one, never a shorter one, and no key
// comes back that somebody took out meanwhile.

import { beforeEach, describe, expect, it } from 'vitest';
import type { LoadedKey } from '../../signer/keys/loaded-key.ts';
import type { HeldKey } from '../../signer/keys/vault.ts';
import { testSecret } from '../support/keys.ts';
import { ascending, core, publicKey, ROOT, store } from './store-set-up.ts';

describe('a refresh', () => {
  beforeEach(() => {
    for (const number of [1, 2, 3]) store.add(testSecret(number), 'dynamodb');
    store.completeFirstLoad();
  });

  it('shows readers the old list until it ends, then the new one, in one step', async () => {
    const before = ascending(1, 2, 3);
    await store.batch(async (batch) => {
      batch.add(testSecret(4), 'dynamodb');
      expect(store.publicKeys()).toEqual(before);
      await Promise.resolve();
      batch.remove(publicKey(1));
      batch.add(testSecret(5), 'dynamodb');
      expect(store.publicKeys()).toEqual(before);
    });
    expect(store.publicKeys()).toEqual(ascending(2, 3, 4, 5));
    expect(store.find(publicKey(1))).toBeUndefined();
  });

  it('lets its new keys sign at once', async () => {
    await store.batch(async (batch) => {
      batch.add(testSecret(4), 'dynamodb');
      expect(store.find(publicKey(4))).toBeDefined();
    });
  });

  it('that fails never shortens the list', async () => {
    const refresh = store.batch(async (batch) => {
      batch.remove(publicKey(1));
      batch.add(testSecret(4), 'dynamodb');
      throw new Error('the table went away');
    });
    await expect(refresh).rejects.toThrow('the table went away');
    expect(store.publicKeys()).toEqual(ascending(1, 2, 3, 4));
  });

  it('shows at once what others add and remove meanwhile', async () => {
    await store.batch(async (batch) => {
      batch.add(testSecret(4), 'dynamodb');
      store.add(testSecret(5), 'memory');
      store.remove(publicKey(2));
      expect(store.publicKeys()).toEqual(ascending(1, 3, 5));
    });
    expect(store.publicKeys()).toEqual(ascending(1, 3, 4, 5));
  });

  it('does not remove a key that someone took out and brought back meanwhile', async () => {
    await store.batch(async (batch) => {
      batch.remove(publicKey(1));
      store.remove(publicKey(1));
      store.add(testSecret(1), 'memory');
    });
    expect(store.find(publicKey(1))?.source).toBe('memory');
    expect(store.publicKeys()).toEqual(ascending(1, 2, 3));
  });

  it('keeps a key that it first meant to remove and then met again', async () => {
    await store.batch(async (batch) => {
      batch.remove(publicKey(1));
      batch.add(testSecret(1), 'dynamodb');
    });
    expect(store.publicKeys()).toEqual(ascending(1, 2, 3));
  });

  it('does not list a new key of its own that was removed before it ended', async () => {
    await store.batch(async (batch) => {
      batch.add(testSecret(4), 'dynamodb');
      store.remove(publicKey(4));
    });
    expect(store.publicKeys()).toEqual(ascending(1, 2, 3));
  });

  it('does not list before it ends a key that was removed and that it loads again', async () => {
    expect(store.publicKeys()).toHaveLength(3);
    await store.batch(async (batch) => {
      store.remove(publicKey(1));
      batch.add(testSecret(1), 'dynamodb');
      expect(store.publicKeys()).toEqual(ascending(2, 3));
    });
    expect(store.publicKeys()).toEqual(ascending(1, 2, 3));
  });

  it('cannot be added to when it has ended', async () => {
    const late = await store.batch(async (batch) => batch);
    expect(() => late.add(testSecret(4), 'dynamodb')).toThrow('after the end of its batch');
    expect(store.find(publicKey(4))).toBeUndefined();
  });

  it('two at a time each show their own changes when they end', async () => {
    const gate = Promise.withResolvers<void>();
    const slow = store.batch(async (batch) => {
      batch.add(testSecret(4), 'dynamodb');
      await gate.promise;
    });
    await store.batch(async (batch) => void batch.add(testSecret(5), 'dynamodb'));
    expect(store.publicKeys()).toEqual(ascending(1, 2, 3, 5));
    gate.resolve();
    await slow;
    expect(store.publicKeys()).toEqual(ascending(1, 2, 3, 4, 5));
  });
});

describe('keys that a batch lets the core hold first', () => {
  const secrets = (...numbers: number[]) => Buffer.concat(numbers.map((number) => testSecret(number)));
  const counted = () => (core.memoryLocked ? 0 : core.unlockedKeys());

  it('are loaded only when they are added, and a secret of another public key is refused', async () => {
    await store.batch(async (batch) => {
      const [first, second, invalid] = await batch.hold(Buffer.concat([secrets(1, 2), Buffer.alloc(32)]));
      expect(store.find(publicKey(1))).toBeUndefined();
      expect(batch.addHeld(first, 'dynamodb', publicKey(1))).toMatchObject({ outcome: 'added' });
      const refused = batch.addHeld(second, 'dynamodb', publicKey(3));
      expect(refused).toEqual({ outcome: 'refused', reason: 'public_key_mismatch' });
      const nothing = batch.addHeld(invalid, 'dynamodb', publicKey(4));
      expect(nothing).toEqual({ outcome: 'refused', reason: 'invalid_secret_key' });
      await expect(core.sign((second as HeldKey).handle, ROOT, 'normal')).rejects.toThrow();
    });
    store.completeFirstLoad();
    expect(store.publicKeys()).toEqual(ascending(1));
    expect(await core.sign((store.find(publicKey(1)) as LoadedKey).handle, ROOT, 'normal')).toHaveLength(96);
  });

  it('are wiped when they are let go, or are there already', async () => {
    store.add(testSecret(1), 'memory');
    await store.batch(async (batch) => {
      const [first, second] = await batch.hold(secrets(1, 2));
      expect(batch.addHeld(first, 'dynamodb', publicKey(1))).toMatchObject({ outcome: 'duplicate' });
      batch.letGo(second);
      for (const held of [first, second]) {
        await expect(core.sign((held as HeldKey).handle, ROOT, 'normal')).rejects.toThrow();
      }
    });
    if (!core.memoryLocked) expect(counted()).toBe(1);
    expect(await core.sign((store.find(publicKey(1)) as LoadedKey).handle, ROOT, 'normal')).toHaveLength(96);
  });

  it('do not come back when the store is sealed meanwhile', async () => {
    await store.batch(async (batch) => {
      const [held] = await batch.hold(secrets(1));
      store.seal();
      expect(batch.addHeld(held, 'dynamodb', publicKey(1))).toEqual({ outcome: 'refused', reason: 'sealed' });
      await expect(batch.hold(secrets(2))).rejects.toMatchObject({ reason: 'sealed' });
    });
    expect(store.find(publicKey(1))).toBeUndefined();
  });
});

describe('the list after batches', () => {
  it('has what was removed and added while others ended, each key once', async () => {
    store.completeFirstLoad();
    const numbers = (from: number, count: number) => Array.from({ length: count }, (_, at) => from + at);
    await store.batch(async (batch) => {
      for (const number of numbers(1, 30)) batch.add(testSecret(number), 'dynamodb');
    });
    store.remove(publicKey(3)); // before anybody asked for the list
    store.remove(publicKey(4));
    const gate = Promise.withResolvers<void>();
    const slow = store.batch(async (batch) => {
      for (const number of [4, 35, 36, 37]) batch.add(testSecret(number), 'dynamodb');
      batch.remove(publicKey(5));
      await gate.promise;
    });
    store.remove(publicKey(35)); // of a batch that has not ended
    store.remove(publicKey(36));
    store.add(testSecret(36), 'memory');
    store.remove(publicKey(6));
    store.add(testSecret(6), 'memory');
    const others = numbers(1, 30).filter((number) => ![3, 4].includes(number));
    expect(store.publicKeys()).toEqual(ascending(...others, 36));
    gate.resolve();
    await slow;
    store.remove(publicKey(7));
    expect(store.publicKeys()).toEqual(ascending(...others.filter((number) => ![5, 7].includes(number)), 4, 36, 37));
  });
});
