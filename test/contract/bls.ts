// What every BLS core must do, whichever computes: run by test/signing/bls/native.test.ts and bls-portable.test.ts.
// Signatures and secret keys are in bls-signatures.ts, many keys added together in bls-many-keys.ts; here are handles,
// the queue, and the core's life.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SignerError } from '../../enclave/api/errors.ts';
import type { KeyHandle } from '../../enclave/keys/vault.ts';
import type { BlsCore } from '../../enclave/signing/bls/bls.ts';
import { MAX_QUEUED_JOBS } from '../../enclave/signing/bls/queue.ts';
import { bytesOf, expectedSignature, hex, outcome, ROOT, secretKeyOf } from '../support/bls.ts';
import { blsManyKeysContract } from './bls-many-keys.ts';
import { blsSignaturesContract } from './bls-signatures.ts';

/** The most jobs a core may have under way per thread, by the bound on how long a priority job waits. */
const MAX_RUNNING_PER_CORE = 16;

/** Threads of the core under test, and so the first jobs of a long queue that are under way together. */
const CORES = 2;
const UNDER_WAY = CORES * MAX_RUNNING_PER_CORE;

/**
 * A core starts jobs in a microtask that their `sign` queued; this one comes after it, and before any signature can be
 * done.
 */
const jobsHaveStarted = () => Promise.resolve();

export function blsCoreContract(open: (cores: number) => BlsCore): void {
  describe('its signatures', () => {
    blsSignaturesContract(() => open(CORES));
  });

  describe('many keys added together', () => {
    blsManyKeysContract(() => open(CORES));
  });

  describe('its keys and jobs', () => {
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

    describe('a group', () => {
      const groupOutcomes = async (group: ReturnType<BlsCore['signGroup']>): Promise<string[]> =>
        (await group).map((signature) => (signature instanceof SignerError ? signature.reason : hex(signature)));

      test.each([1, 15, 16, 17, 300])(
        'of %i keys has the signatures of blst, in the order of the handles',
        async (size) => {
          const keys = addKeys(size).toReversed();
          for (const label of ['one root', 'another root', 'one root']) {
            const root = bytesOf(`${label} of ${size}`);
            const outcomes = await groupOutcomes(
              core.signGroup(
                keys.map(({ handle }) => handle),
                root,
                'normal',
              ),
            );
            expect(outcomes).toEqual(keys.map(({ secretKey }) => expectedSignature(secretKey, root)));
          }
        },
      );

      test('of no keys is empty', async () => {
        expect(await core.signGroup([], ROOT, 'normal')).toEqual([]);
      });

      test('beside others, in either lane, gets its own signatures', async () => {
        const keys = addKeys(60);
        const handles = keys.map(({ handle }) => handle);
        const roots = Array.from({ length: 20 }, (_, index) => bytesOf(`group ${index}`));
        const groups = roots.map((root, index) =>
          core.signGroup(handles, root, index % 3 === 0 ? 'priority' : 'normal'),
        );
        const alone = keys.map(({ handle }, index) =>
          outcome(core.sign(handle, roots[index % 20] as Uint8Array, 'normal')),
        );
        for (const [index, { secretKey }] of keys.entries()) {
          expect(await alone[index]).toBe(expectedSignature(secretKey, roots[index % 20]));
        }
        for (const [index, group] of groups.entries()) {
          const expected = keys.map(({ secretKey }) => expectedSignature(secretKey, roots[index]));
          expect(await groupOutcomes(group)).toEqual(expected);
        }
      });

      test('signs with the keys that are there, and says of the others that they are gone', async () => {
        const keys = addKeys(40);
        for (const { handle } of keys.slice(10, 20)) core.removeKey(handle);
        const outcomes = await groupOutcomes(
          core.signGroup(
            keys.map(({ handle }) => handle),
            ROOT,
            'normal',
          ),
        );
        expect(outcomes).toEqual(
          keys.map(({ secretKey }, index) =>
            index >= 10 && index < 20 ? 'signing_unavailable' : expectedSignature(secretKey),
          ),
        );
      });

      test('that is wiped while it waits: what is under way is signed, the rest is refused', async () => {
        const keys = addKeys(1000);
        const group = core.signGroup(
          keys.map(({ handle }) => handle),
          ROOT,
          'normal',
        );
        await jobsHaveStarted();
        const underWay = core.load().running;
        core.wipe();
        const outcomes = await groupOutcomes(group);
        expect(outcomes.slice(0, underWay)).toEqual(
          keys.slice(0, underWay).map(({ secretKey }) => expectedSignature(secretKey)),
        );
        expect(new Set(outcomes.slice(underWay))).toEqual(new Set(['signing_unavailable']));
      });

      test('does not keep a job waiting that comes alone after it', async () => {
        const [key, other] = addKeys(2);
        if (key === undefined || other === undefined) throw new Error('unreachable');
        const order: string[] = [];
        const group = core.signGroup(Array(8192).fill(key.handle), ROOT, 'normal').then(() => order.push('group'));
        await jobsHaveStarted();
        const alone = core.sign(other.handle, bytesOf('alone'), 'normal').then(() => order.push('alone'));
        await Promise.all([group, alone]);
        expect(order).toEqual(['alone', 'group']);
      });

      test('is not kept waiting for good by jobs that come alone', async () => {
        const [key] = addKeys(1);
        if (key === undefined) throw new Error('unreachable');
        const state = { isDone: false };
        const group = core.signGroup(Array(64).fill(key.handle), ROOT, 'normal').then((signatures) => {
          state.isDone = true;
          return signatures;
        });
        const comeAgain = async (name: string): Promise<void> => {
          for (let count = 0; !state.isDone; count++)
            await core.sign(key.handle, bytesOf(`${name} ${count}`), 'normal');
        };
        await Promise.all(Array.from({ length: 200 }, (_, index) => comeAgain(`alone ${index}`)));
        expect(await group).toHaveLength(64);
      });

      test('that does not fit the queue is refused whole, and a closed core refuses it', async () => {
        const { handle } = core.addKey(secretKeyOf('a key'));
        const tooMany = core.signGroup(Array(MAX_QUEUED_JOBS + 1).fill(handle), ROOT, 'normal');
        await expect(tooMany).rejects.toMatchObject({ reason: 'overloaded' });
        const waiting = core.signGroup(Array(500).fill(handle), ROOT, 'normal');
        await jobsHaveStarted();
        await core.close();
        expect((await groupOutcomes(waiting)).at(-1)).toBe('signing_unavailable');
        await expect(core.signGroup([handle], ROOT, 'normal')).rejects.toMatchObject({ reason: 'signing_unavailable' });
      });
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
  });
}
