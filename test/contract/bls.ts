// What every BLS core must do, whichever computes: run by test/signing/bls-native.test.ts and bls-portable.test.ts. The judge is
// @chainsafe/blst's own SecretKey.sign.

import { createHash } from 'node:crypto';
import { SecretKey } from '@chainsafe/blst';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SignerError } from '../../enclave/api/errors.ts';
import type { BlsCore, KeyHandle } from '../../enclave/signing/bls.ts';
import { MAX_QUEUED_JOBS } from '../../enclave/signing/bls-queue.ts';
import { vectorJson } from '../support/vectors.ts';

/** The most jobs a core may have under way per thread, by the bound on how long a priority job waits. */
const MAX_RUNNING_PER_CORE = 16;

/** Threads of the core under test, and so the first jobs of a long queue that are under way together. */
const CORES = 2;
const UNDER_WAY = CORES * MAX_RUNNING_PER_CORE;

/** A core starts jobs in a microtask that their `sign` queued; this one comes after it, and before any signature can be done. */
const jobsHaveStarted = () => Promise.resolve();

const GROUP_ORDER = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001n;

/** Bytes that look random and are the same in every run. */
export function bytesOf(label: string): Uint8Array {
  return createHash('sha256').update(label).digest();
}

export function secretKeyOf(label: string): Uint8Array {
  return SecretKey.fromKeygen(bytesOf(label)).toBytes();
}

const ROOT = bytesOf('a root');

function scalar(value: bigint): Uint8Array {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex');
}

function expectedSignature(secretKey: Uint8Array, root = ROOT): string {
  return hex(SecretKey.fromBytes(secretKey).sign(root).toBytes());
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

/** A signature as hex, or the reason of the refusal. Anything else fails the test. */
async function outcome(signature: Promise<Uint8Array>): Promise<string> {
  try {
    return hex(await signature);
  } catch (error) {
    if (error instanceof SignerError) return error.reason;
    throw error;
  }
}

interface SigningVector {
  readonly secret_key: string;
  readonly pubkey: string;
  readonly signing_root_used_for_signature: string;
  readonly expected_signature: string;
}

export function blsCoreContract(open: (cores: number) => BlsCore): void {
  let core: BlsCore;
  beforeEach(() => {
    core = open(CORES);
  });
  afterEach(() => core.close());

  const addKeys = (count: number) =>
    Array.from({ length: count }, (_, index) => {
      const secretKey = secretKeyOf(`key ${index}`);
      return { secretKey, ...core.addKey(secretKey) };
    });

  const sign = (handle: KeyHandle) => outcome(core.sign(handle, ROOT, 'normal'));

  describe('signatures equal those of blst', () => {
    test('for two thousand keys and roots, each used once', async () => {
      const jobs = Array.from({ length: 2000 }, (_, index) => {
        const secretKey = secretKeyOf(`distinct ${index}`);
        const root = bytesOf(`distinct root ${index}`);
        return { secretKey, root, signature: core.sign(core.addKey(secretKey).handle, root, 'normal') };
      });
      for (const { secretKey, root, signature } of jobs)
        expect(hex(await signature)).toBe(expectedSignature(secretKey, root));
    });

    test('for many keys that sign one root', async () => {
      const root = bytesOf('the head of the slot');
      const jobs = addKeys(312).map(({ secretKey, handle }) => ({
        secretKey,
        signature: core.sign(handle, root, 'normal'),
      }));
      for (const { secretKey, signature } of jobs)
        expect(hex(await signature)).toBe(expectedSignature(secretKey, root));
    });

    test('for one key that signs many roots, and the first ones again', async () => {
      const secretKey = secretKeyOf('one key');
      const { handle } = core.addKey(secretKey);
      const roots = Array.from({ length: 300 }, (_, index) => bytesOf(`root ${index}`));
      const jobs = [...roots, ...roots.slice(0, 50)].map((root) => ({
        root,
        signature: core.sign(handle, root, 'normal'),
      }));
      for (const { root, signature } of jobs) expect(hex(await signature)).toBe(expectedSignature(secretKey, root));
    });

    test('for a few shared roots among many distinct ones, as in a slot', async () => {
      const jobs = addKeys(20).flatMap(({ secretKey, handle }, key) =>
        Array.from({ length: 20 }, (_, index) => {
          const root = bytesOf(index % 2 === 0 ? `shared ${index % 4}` : `own ${key} ${index}`);
          return { secretKey, root, signature: core.sign(handle, root, index % 3 === 0 ? 'priority' : 'normal') };
        }),
      );
      for (const { secretKey, root, signature } of jobs)
        expect(hex(await signature)).toBe(expectedSignature(secretKey, root));
    });

    test('for the published vectors of signing', async () => {
      const file = vectorJson<{ vectors: SigningVector[] }>('signing/web3signer-openapi-examples.json');
      for (const vector of file?.vectors ?? []) {
        const { handle, publicKey } = core.addKey(Buffer.from(vector.secret_key.slice(2), 'hex'));
        const root = Buffer.from(vector.signing_root_used_for_signature.slice(2), 'hex');
        expect(`0x${hex(publicKey)}`).toBe(vector.pubkey);
        expect(`0x${await outcome(core.sign(handle, root, 'normal'))}`).toBe(vector.expected_signature);
      }
      expect(file === undefined || file.vectors.length > 0).toBe(true);
    });

    test('and the public key is that of the secret key', () => {
      for (const { secretKey, publicKey } of addKeys(50)) {
        expect(hex(publicKey)).toBe(SecretKey.fromBytes(secretKey).toPublicKey().toHex().slice(2));
      }
    });

    test('a root changed by its owner after the call is signed as it was', async () => {
      const secretKey = secretKeyOf('a key');
      const root = bytesOf('as it was');
      const signature = core.sign(core.addKey(secretKey).handle, root, 'normal');
      root.fill(0xff);
      expect(hex(await signature)).toBe(expectedSignature(secretKey, bytesOf('as it was')));
    });
  });

  describe('a secret key', () => {
    test.each([
      ['zero', 0n],
      ['the group order', GROUP_ORDER],
      ['one above the group order', GROUP_ORDER + 1n],
      ['all ones', 2n ** 256n - 1n],
    ])('that is %s is refused with a RangeError, and takes no place', async (_, value) => {
      expect(() => core.addKey(scalar(value))).toThrow(RangeError);
      const secretKey = secretKeyOf('a good one');
      expect(await sign(core.addKey(secretKey).handle)).toBe(expectedSignature(secretKey));
    });

    test.each([
      ['one', 1n],
      ['one below the group order', GROUP_ORDER - 1n],
      ['a power of two', 2n ** 254n],
      ['half of the group order', GROUP_ORDER / 2n],
    ])('that is %s signs as blst does', async (_, value) => {
      expect(await sign(core.addKey(scalar(value)).handle)).toBe(expectedSignature(scalar(value)));
    });

    test.each([0, 31, 33])('of %i bytes is refused', (length) => {
      expect(() => core.addKey(new Uint8Array(length).fill(1))).toThrow(TypeError);
    });

    test('wiped by its owner after the call still signs: the core has a copy', async () => {
      const secretKey = Uint8Array.from(secretKeyOf('mine'));
      const { handle } = core.addKey(secretKey);
      secretKey.fill(0);
      expect(await sign(handle)).toBe(expectedSignature(secretKeyOf('mine')));
    });

    test('added twice has two handles that live on their own', async () => {
      const secretKey = secretKeyOf('twice');
      const first = core.addKey(secretKey);
      const second = core.addKey(secretKey);
      core.removeKey(first.handle);
      expect(await sign(first.handle)).toBe('signing_unavailable');
      expect(await sign(second.handle)).toBe(expectedSignature(secretKey));
    });
  });

  describe('a handle', () => {
    test('of a removed key refuses with signing_unavailable, and the others sign on', async () => {
      const [first, removed, last] = addKeys(3);
      if (first === undefined || removed === undefined || last === undefined) throw new Error('unreachable');
      core.removeKey(removed.handle);
      expect(await sign(removed.handle)).toBe('signing_unavailable');
      expect(await sign(first.handle)).toBe(expectedSignature(first.secretKey));
      expect(await sign(last.handle)).toBe(expectedSignature(last.secretKey));
    });

    test('that is stale never signs with, nor removes, the key that took its place', async () => {
      const stale: KeyHandle[] = [];
      for (let round = 0; round < 20; round++) {
        const secretKey = secretKeyOf(`round ${round}`);
        const { handle } = core.addKey(secretKey);
        for (const old of stale) {
          core.removeKey(old);
          expect(await sign(old)).toBe('signing_unavailable');
        }
        expect(await sign(handle)).toBe(expectedSignature(secretKey));
        core.removeKey(handle);
        stale.push(handle);
      }
      expect(new Set(stale).size).toBe(stale.length);
    });

    test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 2 ** 52, -0])(
      'that no key ever had (%d) refuses, and removing it does nothing',
      async (number) => {
        const secretKey = secretKeyOf('bystander');
        const bystander = core.addKey(secretKey);
        core.removeKey(number as KeyHandle);
        expect(await sign(number as KeyHandle)).toBe('signing_unavailable');
        expect(await sign(bystander.handle)).toBe(expectedSignature(secretKey));
      },
    );

    test('removed while its jobs wait: the ones under way give the right signature, the others refuse', async () => {
      const secretKey = secretKeyOf('going');
      const { handle } = core.addKey(secretKey);
      const roots = Array.from({ length: 200 }, (_, index) => bytesOf(`going ${index}`));
      const jobs = roots.map((root) => outcome(core.sign(handle, root, 'normal')));
      await jobsHaveStarted();
      core.removeKey(handle);
      const successor = secretKeyOf('coming');
      const coming = core.addKey(successor);
      const outcomes = await Promise.all(jobs);
      const signed = roots.slice(0, UNDER_WAY).map((root) => expectedSignature(secretKey, root));
      expect(outcomes).toEqual([...signed, ...Array(200 - UNDER_WAY).fill('signing_unavailable')]);
      expect(await sign(coming.handle)).toBe(expectedSignature(successor));
    });
  });

  test('wipe makes every handle stale, also those of waiting jobs, and new keys can be added', async () => {
    const keys = addKeys(600);
    const waiting = keys.map(({ handle }) => sign(handle));
    await jobsHaveStarted();
    core.wipe();
    const signed = keys.slice(0, UNDER_WAY).map(({ secretKey }) => expectedSignature(secretKey));
    expect(await Promise.all(waiting)).toEqual([...signed, ...Array(600 - UNDER_WAY).fill('signing_unavailable')]);
    for (const { handle } of keys) expect(await sign(handle)).toBe('signing_unavailable');
    const secretKey = secretKeyOf('after the wipe');
    expect(await sign(core.addKey(secretKey).handle)).toBe(expectedSignature(secretKey));
  });

  test('a priority job overtakes a long queue: it waits for the jobs under way and no others', async () => {
    const single = open(1);
    const { handle } = single.addKey(secretKeyOf('a key'));
    let normalDone = 0;
    const normal = Array.from({ length: 400 }, async (_, index) => {
      await single.sign(handle, bytesOf(`normal ${index}`), 'normal');
      normalDone += 1;
    });
    await jobsHaveStarted();
    expect(single.load()).toEqual({ queued: 400 - MAX_RUNNING_PER_CORE, running: MAX_RUNNING_PER_CORE });
    await single.sign(handle, bytesOf('urgent'), 'priority');
    expect(normalDone).toBeLessThanOrEqual(MAX_RUNNING_PER_CORE);
    await Promise.all(normal);
    await single.close();
  });

  test('no core waits for answers: the next jobs are under way before those that are done are answered', async () => {
    const single = open(1);
    const { handle } = single.addKey(secretKeyOf('a key'));
    const jobs = Array.from({ length: 4 * MAX_RUNNING_PER_CORE }, (_, index) =>
      single.sign(handle, bytesOf(`job ${index}`), 'normal').then(() => single.load()),
    );
    expect((await jobs[0])?.running).toBeGreaterThan(0);
    await Promise.all(jobs);
    await single.close();
  });

  test('load tells what waits and what is under way, and both are zero when all is done', async () => {
    const { handle } = core.addKey(secretKeyOf('a key'));
    expect(core.load()).toEqual({ queued: 0, running: 0 });
    const jobs = Array.from({ length: 100 }, (_, index) => core.sign(handle, bytesOf(`load ${index}`), 'normal'));
    await jobsHaveStarted();
    expect(core.load()).toEqual({ queued: 100 - UNDER_WAY, running: UNDER_WAY });
    await Promise.all(jobs);
    expect(core.load()).toEqual({ queued: 0, running: 0 });
  });

  test('a queue at its limit refuses with overloaded and keeps what it has', async () => {
    const { handle } = core.addKey(secretKeyOf('a key'));
    const accepted = Array.from({ length: MAX_QUEUED_JOBS }, () => outcome(core.sign(handle, ROOT, 'normal')));
    expect(await outcome(core.sign(handle, ROOT, 'priority'))).toBe('overloaded');
    core.removeKey(handle);
    expect(new Set(await Promise.all(accepted))).toContain('signing_unavailable');
  });

  test('close settles every pending job, and a closed core takes neither jobs nor keys', async () => {
    const secretKey = secretKeyOf('a key');
    const { handle } = core.addKey(secretKey);
    const jobs = Array.from({ length: 300 }, (_, index) =>
      outcome(core.sign(handle, bytesOf(`close ${index}`), 'normal')),
    );
    await jobsHaveStarted();
    await core.close();
    const signed = Array.from({ length: UNDER_WAY }, (_, index) =>
      expectedSignature(secretKey, bytesOf(`close ${index}`)),
    );
    expect(await Promise.all(jobs)).toEqual([...signed, ...Array(300 - UNDER_WAY).fill('signing_unavailable')]);
    expect(await sign(handle)).toBe('signing_unavailable');
    expect(() => core.addKey(secretKey)).toThrow(SignerError);
    core.removeKey(handle);
    core.wipe();
    await core.close();
  });

  test('close called twice ends twice, when the jobs under way are over', async () => {
    const { handle } = core.addKey(secretKeyOf('a key'));
    const jobs = Array.from({ length: MAX_RUNNING_PER_CORE }, (_, index) =>
      outcome(core.sign(handle, bytesOf(`${index}`), 'normal')),
    );
    await jobsHaveStarted();
    await Promise.all([core.close(), core.close()]);
    expect(core.load()).toEqual({ queued: 0, running: 0 });
    expect(await Promise.all(jobs)).not.toContain('signing_unavailable');
  });

  test('keys come and go while others sign: a signature is always that of the key that was asked', async () => {
    const live: { handle: KeyHandle; secretKey: Uint8Array }[] = [];
    const asked: { secretKey: Uint8Array; root: Uint8Array; result: Promise<string> }[] = [];
    for (let step = 0; step < 1500; step++) {
      const dice = bytesOf(`dice ${step}`);
      const pick = live[(dice[1] as number) % Math.max(1, live.length)];
      if (pick === undefined || (dice[0] as number) < 40) {
        const secretKey = secretKeyOf(`hammer key ${step}`);
        live.push({ secretKey, handle: core.addKey(secretKey).handle });
      } else if ((dice[0] as number) < 75) {
        core.removeKey(pick.handle); // and stays in the list: stale handles are asked to sign, too
      } else {
        const root = bytesOf(`hammer ${step % 7}`);
        const result = outcome(core.sign(pick.handle, root, 'normal'));
        asked.push({ secretKey: pick.secretKey, root, result });
      }
      if (step % 10 === 0) await asked.at(-5)?.result;
    }
    const results = await Promise.all(asked.map(({ result }) => result));
    for (const [index, { secretKey, root }] of asked.entries()) {
      expect([expectedSignature(secretKey, root), 'signing_unavailable']).toContain(results[index]);
    }
    expect(results.filter((result) => result !== 'signing_unavailable').length).toBeGreaterThan(100);
  });
}
