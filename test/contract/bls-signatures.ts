// The part of the BLS contract (bls.ts) about what is signed with: signatures and secret keys. The judge is
// @chainsafe/blst's own SecretKey.sign.

import { SecretKey } from '@chainsafe/blst';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BlsCore } from '../../signer/bls/bls.ts';
import type { KeyHandle } from '../../signer/keys/vault.ts';
import { bytesOf, expectedSignature, hex, outcome, ROOT, secretKeyOf } from '../support/bls.ts';
import { IS_WHOLE } from '../support/scale.ts';
import { vectorJson } from '../support/vectors.ts';

const DISTINCT_KEYS = IS_WHOLE ? 2000 : 300;
const KEYS_OF_ONE_ROOT = IS_WHOLE ? 312 : 100;
const ROOTS_OF_ONE_KEY = IS_WHOLE ? 300 : 100;
const GROUP_ORDER = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001n;

function scalar(value: bigint): Uint8Array {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
}

interface SigningVector {
  readonly secret_key: string;
  readonly pubkey: string;
  readonly signing_root_used_for_signature: string;
  readonly expected_signature: string;
}

export function blsSignaturesContract(open: () => BlsCore): void {
  let core: BlsCore;
  beforeAll(() => {
    core = open();
  });
  afterAll(() => core.close());

  const addKeys = (count: number) =>
    Array.from({ length: count }, (_, index) => {
      const secretKey = secretKeyOf(`key ${index}`);
      return { secretKey, ...core.addKey(secretKey) };
    });

  const sign = (handle: KeyHandle) => outcome(core.sign(handle, ROOT, 'normal'));

  describe('signatures equal those of blst', () => {
    it(`for ${DISTINCT_KEYS} keys and roots, each used once`, async () => {
      const jobs = Array.from({ length: DISTINCT_KEYS }, (_, index) => {
        const secretKey = secretKeyOf(`distinct ${index}`);
        const root = bytesOf(`distinct root ${index}`);
        return { secretKey, root, signature: core.sign(core.addKey(secretKey).handle, root, 'normal') };
      });
      for (const { secretKey, root, signature } of jobs)
        expect(hex(await signature)).toBe(expectedSignature(secretKey, root));
    });

    it('for many keys that sign one root', async () => {
      const root = bytesOf('the head of the slot');
      const jobs = addKeys(KEYS_OF_ONE_ROOT).map(({ secretKey, handle }) => ({
        secretKey,
        signature: core.sign(handle, root, 'normal'),
      }));
      for (const { secretKey, signature } of jobs)
        expect(hex(await signature)).toBe(expectedSignature(secretKey, root));
    });

    it('for one key that signs many roots, and the first ones again', async () => {
      const secretKey = secretKeyOf('one key');
      const { handle } = core.addKey(secretKey);
      const roots = Array.from({ length: ROOTS_OF_ONE_KEY }, (_, index) => bytesOf(`root ${index}`));
      const jobs = [...roots, ...roots.slice(0, 50)].map((root) => ({
        root,
        signature: core.sign(handle, root, 'normal'),
      }));
      for (const { root, signature } of jobs) expect(hex(await signature)).toBe(expectedSignature(secretKey, root));
    });

    it('for a few shared roots among many distinct ones, as in a slot', async () => {
      const jobs = addKeys(20).flatMap(({ secretKey, handle }, key) =>
        Array.from({ length: 20 }, (_, index) => {
          const root = bytesOf(index % 2 === 0 ? `shared ${index % 4}` : `own ${key} ${index}`);
          return { secretKey, root, signature: core.sign(handle, root, index % 3 === 0 ? 'priority' : 'normal') };
        }),
      );
      for (const { secretKey, root, signature } of jobs)
        expect(hex(await signature)).toBe(expectedSignature(secretKey, root));
    });

    it('for the published vectors of signing', async () => {
      const file = vectorJson<{ vectors: SigningVector[] }>('signing/web3signer-openapi-examples.json');
      for (const vector of file?.vectors ?? []) {
        const { handle, publicKey } = core.addKey(Buffer.from(vector.secret_key.slice(2), 'hex'));
        const root = Buffer.from(vector.signing_root_used_for_signature.slice(2), 'hex');
        expect(`0x${hex(publicKey)}`).toBe(vector.pubkey);
        expect(`0x${await outcome(core.sign(handle, root, 'normal'))}`).toBe(vector.expected_signature);
      }
      expect(file === undefined || file.vectors.length > 0).toBe(true);
    });

    it('and the public key is that of the secret key', () => {
      for (const { secretKey, publicKey } of addKeys(50)) {
        expect(hex(publicKey)).toBe(SecretKey.fromBytes(secretKey).toPublicKey().toHex().slice(2));
      }
    });

    it('a root changed by its owner after the call is signed as it was', async () => {
      const secretKey = secretKeyOf('a key');
      const root = bytesOf('as it was');
      const signature = core.sign(core.addKey(secretKey).handle, root, 'normal');
      root.fill(0xff);
      expect(hex(await signature)).toBe(expectedSignature(secretKey, bytesOf('as it was')));
    });
  });

  describe('a secret key', () => {
    it.each([
      ['zero', 0n],
      ['the group order', GROUP_ORDER],
      ['one above the group order', GROUP_ORDER + 1n],
      ['all ones', 2n ** 256n - 1n],
    ])('that is %s is refused with a RangeError, and takes no place', async (_, value) => {
      expect(() => core.addKey(scalar(value))).toThrow(RangeError);
      const secretKey = secretKeyOf('a good one');
      expect(await sign(core.addKey(secretKey).handle)).toBe(expectedSignature(secretKey));
    });

    it.each([
      ['one', 1n],
      ['one below the group order', GROUP_ORDER - 1n],
      ['a power of two', 2n ** 254n],
      ['half of the group order', GROUP_ORDER / 2n],
    ])('that is %s signs as blst does', async (_, value) => {
      expect(await sign(core.addKey(scalar(value)).handle)).toBe(expectedSignature(scalar(value)));
    });

    it.each([0, 31, 33])('of %i bytes is refused', (length) => {
      expect(() => core.addKey(new Uint8Array(length).fill(1))).toThrow(TypeError);
    });

    it('wiped by its owner after the call still signs: the core has a copy', async () => {
      const secretKey = Uint8Array.from(secretKeyOf('mine'));
      const { handle } = core.addKey(secretKey);
      secretKey.fill(0);
      expect(await sign(handle)).toBe(expectedSignature(secretKeyOf('mine')));
    });

    it('added twice has two handles that live on their own', async () => {
      const secretKey = secretKeyOf('twice');
      const first = core.addKey(secretKey);
      const second = core.addKey(secretKey);
      core.removeKey(first.handle);
      expect(await sign(first.handle)).toBe('signing_unavailable');
      expect(await sign(second.handle)).toBe(expectedSignature(secretKey));
    });
  });
}
