// The part of the BLS contract (bls.ts) about many keys added together. The judge is @chainsafe/blst's own public key.

import { SecretKey } from '@chainsafe/blst';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type BlsCore, MAX_KEYS_AT_ONCE } from '../../signer/bls/bls.ts';
import { bytesOf, expectedSignature, hex, outcome, ROOT, secretKeyOf } from '../support/bls.ts';

const GROUP_ORDER = Buffer.from('73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001', 'hex');
const ONE_BELOW = Buffer.from('73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000000', 'hex');
const NO_SECRET_KEYS = [Buffer.alloc(32), GROUP_ORDER, Buffer.alloc(32, 0xff)];

export function blsManyKeysContract(open: () => BlsCore): void {
  let core: BlsCore;
  beforeEach(() => {
    core = open();
  });
  afterEach(() => core.close());

  const secretsOf = (count: number) => Array.from({ length: count }, (_, index) => secretKeyOf(`many ${index}`));
  const publicKeyOf = (secretKey: Uint8Array) => hex(SecretKey.fromBytes(secretKey).toPublicKey().toBytes());
  const unlockedKeys = () => (core.memoryLocked ? 0 : core.unlockedKeys());

  it.each([0, 1, 16, 17, 250, MAX_KEYS_AT_ONCE])(
    '%i keys come in order, with the public keys of blst, and sign; the caller wipes its copies at once',
    async (count) => {
      const secrets = secretsOf(count);
      const copies = Buffer.concat(secrets);
      const adding = core.addKeys(copies);
      copies.fill(0);
      const held = await adding;
      expect(held.map((key) => hex(key?.publicKey ?? new Uint8Array()))).toEqual(secrets.map(publicKeyOf));
      for (const at of [0, 15, 16, count - 1].filter((at) => at < count && at >= 0)) {
        const handle = held[at]?.handle;
        if (handle === undefined) throw new Error('a key is missing');
        expect(await outcome(core.sign(handle, ROOT, 'normal'))).toBe(expectedSignature(secrets[at] as Uint8Array));
      }
    },
  );

  it('scalars that are no secret keys are left out in their places, and nothing is held of them', async () => {
    const before = unlockedKeys();
    const secrets = [...NO_SECRET_KEYS, ...secretsOf(20), ...NO_SECRET_KEYS, ONE_BELOW];
    const isSecretKey = (secretKey: Uint8Array) =>
      !NO_SECRET_KEYS.some((other) => Buffer.compare(other, secretKey) === 0);
    const held = await core.addKeys(Buffer.concat(secrets));
    expect(held.map((key) => key && hex(key.publicKey))).toEqual(
      secrets.map((secretKey) => (isSecretKey(secretKey) ? publicKeyOf(secretKey) : undefined)),
    );
    if (!core.memoryLocked) expect(core.unlockedKeys()).toBe(before + 21);
  });

  it('what is not whole keys, or more than are taken at once, is refused', async () => {
    await expect(core.addKeys(new Uint8Array(33))).rejects.toThrow(TypeError);
    await expect(core.addKeys(Buffer.alloc(32 * (MAX_KEYS_AT_ONCE + 1), 1))).rejects.toThrow(TypeError);
    expect(unlockedKeys()).toBe(0);
  });

  it('keys that are there already sign while others come', async () => {
    const secretKey = secretKeyOf('steady');
    const { handle } = core.addKey(secretKey);
    const coming = Array.from({ length: 4 }, () => core.addKeys(Buffer.concat(secretsOf(500))));
    let arrived = 0;
    for (const adding of coming) void adding.then(() => (arrived += 1));
    const roots = Array.from({ length: 40 }, (_, index) => bytesOf(`steady ${index}`));
    const signing = roots.map((root) => outcome(core.sign(handle, root, 'normal')));
    const group = core.signGroup([handle, handle], ROOT, 'normal');
    expect(await Promise.all(signing)).toEqual(roots.map((root) => expectedSignature(secretKey, root)));
    expect((await group).map((signature) => hex(signature as Uint8Array))).toEqual(
      Array(2).fill(expectedSignature(secretKey)),
    );
    expect(arrived).toBeLessThan(coming.length); // they did not wait for all of those
    const publicKeys = secretsOf(500).map(publicKeyOf);
    for (const adding of coming)
      expect((await adding).map((key) => hex(key?.publicKey as Uint8Array))).toEqual(publicKeys);
  });

  it('of keys that are wiped on their way none signs', async () => {
    const adding = core.addKeys(Buffer.concat(secretsOf(400))).catch((error: unknown) => error);
    core.wipe();
    expect(unlockedKeys()).toBe(0);
    expect(await adding).toMatchObject({ reason: 'signing_unavailable' });
    const [key] = await core.addKeys(secretKeyOf('after the wipe'));
    if (key === undefined) throw new Error('a key is missing');
    expect(await outcome(core.sign(key.handle, ROOT, 'normal'))).toBe(expectedSignature(secretKeyOf('after the wipe')));
  });

  it('a core that is closed meanwhile ends what is under way and refuses the rest, and takes no more', async () => {
    const adding = core.addKeys(Buffer.concat(secretsOf(400))).catch((error: unknown) => error);
    await core.close();
    expect(await adding).toMatchObject({ reason: 'signing_unavailable' });
    await expect(core.addKeys(secretKeyOf('late'))).rejects.toMatchObject({ reason: 'signing_unavailable' });
  });
}
