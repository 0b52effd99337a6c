// The addon beneath the native BLS core: batches of a keyring, wrong arguments, and the memory that holds its secrets.

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Addon, type Keyring, loadAddon } from '../../signer/native/load.ts';
import { addonForTests } from '../support/addon.ts';
import { bytesOf, secretKeyOf } from '../support/bls.ts';

const KEY = secretKeyOf('a');
const LINUX = process.platform === 'linux';

describe.skipIf(!addonForTests())('with the native addon', () => {
  let addon: Addon;
  beforeAll(() => {
    const loaded = loadAddon();
    if (loaded === undefined) throw new Error('the addon was there a moment ago');
    addon = loaded;
  });

  describe('a batch', () => {
    it('gives zeros for a stale handle and signatures for the others', async () => {
      const keyring = addon.openKeyring('best_effort', true, 1);
      const handles = ['a', 'b', 'c'].map((label) => addon.addKey(keyring, secretKeyOf(label), new Uint8Array(48)));
      addon.removeKey(keyring, handles[1] as number);
      const signatures = new Uint8Array(await addon.signBatch(keyring, Float64Array.from(handles), new Uint8Array(96)));
      expect(signatures.subarray(96, 192)).toEqual(new Uint8Array(96));
      expect((signatures[0] as number) & 0x80).toBe(0x80);
      expect((signatures[192] as number) & 0x80).toBe(0x80);
      addon.closeKeyring(keyring);
    });

    it('under way when its keyring is wiped and closed ends with right signatures, and its memory is given back', async () => {
      const before = addon.secretMemory();
      const keyring = addon.openKeyring('best_effort', true, 1);
      const handle = addon.addKey(keyring, secretKeyOf('a'), new Uint8Array(48));
      const expected = await addon.signBatch(keyring, Float64Array.of(handle), bytesOf('root'));
      const batches = Array.from({ length: 8 }, () =>
        addon.signBatch(keyring, Float64Array.of(handle), bytesOf('root')),
      );
      addon.wipeKeyring(keyring);
      addon.closeKeyring(keyring);
      for (const batch of batches) expect(await batch).toEqual(expected);
      expect(addon.secretMemory()).toEqual(before);
    });

    it('of one keyring cannot use the handle of another', async () => {
      const [mine, other] = [addon.openKeyring('off', true, 1), addon.openKeyring('off', true, 1)];
      const handles = [1, 2, 3].map((index) => addon.addKey(mine, secretKeyOf(`${index}`), new Uint8Array(48)));
      const last = handles.at(-1) as number;
      expect(new Uint8Array(await addon.signBatch(other, Float64Array.of(last), new Uint8Array(32)))).toEqual(
        new Uint8Array(96),
      );
      addon.closeKeyring(mine);
      addon.closeKeyring(other);
    });
  });

  describe('wrong arguments throw and do nothing else:', () => {
    const cases: [string, (keyring: Keyring) => unknown][] = [
      ['a keyring that is not one', () => addon.addKey({} as Keyring, KEY, new Uint8Array(48))],
      [
        'an external of somebody else as a keyring',
        () => addon.wipeKeyring(new SharedArrayBuffer(8) as unknown as Keyring),
      ],
      ['no threads', () => addon.openKeyring('off', true, 0)],
      ['257 threads', () => addon.openKeyring('off', true, 257)],
      ['an unknown policy', () => addon.openKeyring('sometimes' as 'off', true, 1)],
      ['a secret key of 31 bytes', (keyring) => addon.addKey(keyring, KEY.subarray(1), new Uint8Array(48))],
      ['a public key of 47 bytes', (keyring) => addon.addKey(keyring, KEY, new Uint8Array(47))],
      [
        'a secret key as text',
        (keyring) => addon.addKey(keyring, 'secret' as unknown as Uint8Array, new Uint8Array(48)),
      ],
      ['no jobs', (keyring) => addon.signBatch(keyring, new Float64Array(0), new Uint8Array(0))],
      ['33 jobs', (keyring) => addon.signBatch(keyring, new Float64Array(33), new Uint8Array(33 * 32))],
      ['a root too few', (keyring) => addon.signBatch(keyring, new Float64Array(2), new Uint8Array(32))],
      [
        'handles of another type',
        (keyring) => addon.signBatch(keyring, new Uint32Array(1) as unknown as Float64Array, KEY),
      ],
      ['a secret buffer of 0 bytes', () => addon.allocateSecret(0, 'off')],
      ['a secret buffer of 1.5 bytes', () => addon.allocateSecret(1.5, 'off')],
      ['a secret buffer above 1 MiB', () => addon.allocateSecret(2 ** 20 + 1, 'off')],
      ['too few arguments', () => Reflect.apply(addon.addKey, undefined, [])],
    ];
    it.each(cases)('%s', (_, call) => {
      const keyring = addon.openKeyring('off', true, 1);
      expect(() => call(keyring)).toThrow(TypeError);
      addon.closeKeyring(keyring);
    });

    it('a closed keyring takes neither keys nor batches', () => {
      const keyring = addon.openKeyring('off', true, 1);
      addon.closeKeyring(keyring);
      expect(() => addon.addKey(keyring, KEY, new Uint8Array(48))).toThrow(TypeError);
      expect(() => addon.signBatch(keyring, new Float64Array(1), new Uint8Array(32))).toThrow(TypeError);
      addon.removeKey(keyring, 1);
      addon.wipeKeyring(keyring);
      addon.closeKeyring(keyring);
    });
  });

  describe('secret memory', () => {
    it('is counted while it is open and grows with the keys', () => {
      const before = addon.secretMemory();
      const keyring = addon.openKeyring('off', true, 1);
      const first = addon.secretMemory().unlockedBytes - before.unlockedBytes;
      expect(first).toBeGreaterThanOrEqual(16 * 1024);
      for (let index = 0; index <= first / 32; index++) addon.addKey(keyring, secretKeyOf('a'), new Uint8Array(48));
      expect(addon.secretMemory().unlockedBytes - before.unlockedBytes).toBe(2 * first);
      addon.closeKeyring(keyring);
      expect(addon.secretMemory()).toEqual(before);
    });

    it('slots of removed keys are used again', () => {
      const keyring = addon.openKeyring('off', true, 1);
      const { unlockedBytes } = addon.secretMemory();
      for (let index = 0; index < 5000; index++) {
        addon.removeKey(keyring, addon.addKey(keyring, secretKeyOf('a'), new Uint8Array(48)));
      }
      expect(addon.secretMemory().unlockedBytes).toBe(unlockedBytes);
      addon.closeKeyring(keyring);
    });

    it('comes as a zeroed buffer of the length that was asked for', () => {
      const secret = new Uint8Array(addon.allocateSecret(33, 'best_effort'));
      expect(secret).toEqual(new Uint8Array(33));
      secret.fill(7);
      expect(secret[32]).toBe(7);
    });

    it.runIf(LINUX)('is locked, and left out of core dumps and child processes, in the eyes of the kernel', () => {
      const keyring = addon.openKeyring('required', true, 1);
      const mappings = readFileSync('/proc/self/smaps', 'utf8').split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m);
      const slabs = mappings.filter((text) => /^Size: +16 kB$/m.test(text) && /^VmFlags:.* lo .*dc .*dd /m.test(text));
      expect(slabs.length).toBeGreaterThan(0);
      addon.closeKeyring(keyring);
    });
  });
});
