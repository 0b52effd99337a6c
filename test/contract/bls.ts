// What every BLS core must do, whichever computes: run by test/bls/native.test.ts and
// test/bls/portable.test.ts.
// Signatures and secret keys are in bls-signatures.ts, many keys added together in bls-many-keys.ts, groups in
// bls-groups.ts; here are handles, the queue, and the core's life.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SignerError } from '../../signer/api/errors.ts';
import type { BlsCore } from '../../signer/bls/bls.ts';
import { MAX_QUEUED_JOBS } from '../../signer/bls/queue.ts';
import type { KeyHandle } from '../../signer/keys/vault.ts';
import { bytesOf, expectedSignature, jobsHaveStarted, keysOf, outcome, ROOT, secretKeyOf } from '../support/bls.ts';
import { IS_WHOLE, someOf } from '../support/scale.ts';
import { blsGroupsContract } from './bls-groups.ts';
import { blsManyKeysContract } from './bls-many-keys.ts';
import { blsSignaturesContract } from './bls-signatures.ts';

/**
 * The most jobs with roots of their own that a core may have under way per thread, by the bound on how long a priority
 * job waits. Jobs of one root may be more, where they take less (test/bls/native.test.ts).
 */
const MAX_RUNNING_PER_CORE = 16;

/** Threads of the core under test, and so the first jobs of a long queue that are under way together. */
const CORES = 2;
const UNDER_WAY = CORES * MAX_RUNNING_PER_CORE;

const WIPED_KEYS = IS_WHOLE ? 600 : 150;
const OVERTAKEN_JOBS = IS_WHOLE ? 400 : 150;
const HAMMER_STEPS = IS_WHOLE ? 1500 : 500;
const MIN_HAMMERED = IS_WHOLE ? 100 : 30;

export function blsCoreContract(open: (cores: number) => BlsCore): void {
  describe('its signatures', () => {
    blsSignaturesContract(() => open(CORES));
  });

  describe('many keys added together', () => {
    blsManyKeysContract(() => open(CORES));
  });

  describe('a group', () => {
    blsGroupsContract(() => open(CORES));
  });

  describe('its keys and jobs', () => {
    let core: BlsCore;
    beforeEach(() => {
      core = open(CORES);
    });
    afterEach(() => core.close());

    const sign = (handle: KeyHandle) => outcome(core.sign(handle, ROOT, 'normal'));

    describe('a handle', () => {
      it('of a removed key refuses with signing_unavailable, and the others sign on', async () => {
        const [first, removed, last] = keysOf(core, 3);
        if (first === undefined || removed === undefined || last === undefined) throw new Error('unreachable');
        core.removeKey(removed.handle);
        expect(await sign(removed.handle)).toBe('signing_unavailable');
        expect(await sign(first.handle)).toBe(expectedSignature(first.secretKey));
        expect(await sign(last.handle)).toBe(expectedSignature(last.secretKey));
      });

      it('that is stale never signs with, nor removes, the key that took its place', async () => {
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

      it.each(someOf([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 2 ** 52, -0], 4))(
        'that no key ever had (%d) refuses, and removing it does nothing',
        async (number) => {
          const secretKey = secretKeyOf('bystander');
          const bystander = core.addKey(secretKey);
          core.removeKey(number as KeyHandle);
          expect(await sign(number as KeyHandle)).toBe('signing_unavailable');
          expect(await sign(bystander.handle)).toBe(expectedSignature(secretKey));
        },
      );

      it('removed while its jobs wait: the ones under way give the right signature, the others refuse', async () => {
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

    it('wipe makes every handle stale, also those of waiting jobs, and new keys can be added', async () => {
      const keys = keysOf(core, WIPED_KEYS);
      const rootOf = (index: number) => bytesOf(`wiped ${index}`);
      const waiting = keys.map(({ handle }, index) => outcome(core.sign(handle, rootOf(index), 'normal')));
      await jobsHaveStarted();
      core.wipe();
      const signed = keys
        .slice(0, UNDER_WAY)
        .map(({ secretKey }, index) => expectedSignature(secretKey, rootOf(index)));
      expect(await Promise.all(waiting)).toEqual([
        ...signed,
        ...Array(WIPED_KEYS - UNDER_WAY).fill('signing_unavailable'),
      ]);
      for (const { handle } of keys) expect(await sign(handle)).toBe('signing_unavailable');
      const secretKey = secretKeyOf('after the wipe');
      expect(await sign(core.addKey(secretKey).handle)).toBe(expectedSignature(secretKey));
    });

    it('a priority job overtakes a long queue: it waits for the jobs under way and no others', async () => {
      const single = open(1);
      const { handle } = single.addKey(secretKeyOf('a key'));
      let normalDone = 0;
      const normal = Array.from({ length: OVERTAKEN_JOBS }, async (_, index) => {
        await single.sign(handle, bytesOf(`normal ${index}`), 'normal');
        normalDone += 1;
      });
      await jobsHaveStarted();
      expect(single.load()).toEqual({ queued: OVERTAKEN_JOBS - MAX_RUNNING_PER_CORE, running: MAX_RUNNING_PER_CORE });
      await single.sign(handle, bytesOf('urgent'), 'priority');
      expect(normalDone).toBeLessThanOrEqual(MAX_RUNNING_PER_CORE);
      await Promise.all(normal);
      await single.close();
    });

    it('no core waits for answers: the next jobs are under way before those that are done are answered', async () => {
      const single = open(1);
      const { handle } = single.addKey(secretKeyOf('a key'));
      const jobs = Array.from({ length: 4 * MAX_RUNNING_PER_CORE }, (_, index) =>
        single.sign(handle, bytesOf(`job ${index}`), 'normal').then(() => single.load()),
      );
      expect((await jobs[0])?.running).toBeGreaterThan(0);
      await Promise.all(jobs);
      await single.close();
    });

    it('load tells what waits and what is under way, and both are zero when all is done', async () => {
      const { handle } = core.addKey(secretKeyOf('a key'));
      expect(core.load()).toEqual({ queued: 0, running: 0 });
      const jobs = Array.from({ length: 100 }, (_, index) => core.sign(handle, bytesOf(`load ${index}`), 'normal'));
      await jobsHaveStarted();
      expect(core.load()).toEqual({ queued: 100 - UNDER_WAY, running: UNDER_WAY });
      await Promise.all(jobs);
      expect(core.load()).toEqual({ queued: 0, running: 0 });
    });

    it('a queue at its limit refuses with overloaded and keeps what it has', async () => {
      const { handle } = core.addKey(secretKeyOf('a key'));
      const accepted = Array.from({ length: MAX_QUEUED_JOBS }, () => outcome(core.sign(handle, ROOT, 'normal')));
      expect(await outcome(core.sign(handle, ROOT, 'priority'))).toBe('overloaded');
      core.removeKey(handle);
      expect(new Set(await Promise.all(accepted))).toContain('signing_unavailable');
    });

    it('close settles every pending job, and a closed core takes neither jobs nor keys', async () => {
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

    it('close called twice ends twice, when the jobs under way are over', async () => {
      const { handle } = core.addKey(secretKeyOf('a key'));
      const jobs = Array.from({ length: MAX_RUNNING_PER_CORE }, (_, index) =>
        outcome(core.sign(handle, bytesOf(`${index}`), 'normal')),
      );
      await jobsHaveStarted();
      await Promise.all([core.close(), core.close()]);
      expect(core.load()).toEqual({ queued: 0, running: 0 });
      expect(await Promise.all(jobs)).not.toContain('signing_unavailable');
    });

    it('keys come and go while others sign: a signature is always that of the key that was asked', async () => {
      const live: { handle: KeyHandle; secretKey: Uint8Array }[] = [];
      const asked: { secretKey: Uint8Array; root: Uint8Array; result: Promise<string> }[] = [];
      for (let step = 0; step < HAMMER_STEPS; step++) {
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
      expect(results.filter((result) => result !== 'signing_unavailable').length).toBeGreaterThan(MIN_HAMMERED);
    });
  });
}
