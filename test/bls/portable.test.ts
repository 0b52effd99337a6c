import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SecretKey } from '@chainsafe/blst';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PortableBlsCore } from '../../signer/bls/portable.ts';
import { blsCoreContract } from '../contract/bls.ts';
import { bytesOf, secretKeyOf } from '../support/bls.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

describe('the portable BLS core', () => {
  blsCoreContract((cores) => new PortableBlsCore({ log: quiet, cores }));

  it('does not claim locked memory', async () => {
    const core = new PortableBlsCore({ log: quiet, cores: 1 });
    expect(core.memoryLocked).toBe(false);
    await core.close();
  });

  it('signs most single jobs before those of groups, and some of groups among them', async () => {
    const single = new PortableBlsCore({ log: quiet, cores: 1 });
    const { handle } = single.addKey(secretKeyOf('a key'));
    const order: string[] = [];
    const groups = Array.from({ length: 40 }, (_, index) =>
      single.signGroup(Array(16).fill(handle), bytesOf(`group ${index}`), 'normal').then(() => order.push('group')),
    );
    await Promise.resolve(); // the first have begun
    const alone = Array.from({ length: 400 }, (_, index) =>
      single.sign(handle, bytesOf(`alone ${index}`), 'normal').then(() => order.push('alone')),
    );
    await Promise.all([...groups, ...alone]);
    const [firstAlone, lastAlone] = [order.indexOf('alone'), order.lastIndexOf('alone')];
    // Each thread first finishes the task that it has begun. Then come those that are alone, with some of groups among
    // them.
    expect(order.slice(0, firstAlone).length).toBeLessThanOrEqual(2);
    expect(order.slice(firstAlone, lastAlone).filter((what) => what === 'group').length).toBeGreaterThan(3);
    expect(order.slice(lastAlone).filter((what) => what === 'group').length).toBeGreaterThan(3);
    await single.close();
  });
});

describe('when a signing worker ends', () => {
  const poison = new Uint8Array(32).fill(0xee);
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'strongroom-worker-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** The real worker, whose blst throws at the poisoned root. */
  const fragileCore = (cores: number, errors: string[]) => {
    const file = join(folder, 'fragile.mjs');
    writeFileSync(
      file,
      `import blst from ${JSON.stringify(import.meta.resolve('@chainsafe/blst'))};
       const sign = blst.SecretKey.prototype.sign;
       blst.SecretKey.prototype.sign = function (root) {
         if (root.every((byte) => byte === 0xee)) throw new Error('poisoned');
         return sign.call(this, root);
       };
       await import(${JSON.stringify(new URL('../../signer/bls/portable-worker.ts', import.meta.url).href)});`,
    );
    const log = { ...quiet, error: (_: object, message: string) => errors.push(message) };
    return new PortableBlsCore({ log, cores, workerUrl: pathToFileURL(file) });
  };

  it('its jobs reject with signing_unavailable, the event is logged, and a new worker signs', async () => {
    const errors: string[] = [];
    const core = fragileCore(1, errors);
    const secretKey = secretKeyOf('survivor');
    const { handle } = core.addKey(secretKey);
    await expect(core.sign(handle, poison, 'normal')).rejects.toMatchObject({ reason: 'signing_unavailable' });
    expect(errors).toContain('a signing worker ended; it is started again');
    const signature = await core.sign(handle, bytesOf('next'), 'normal');
    expect(Buffer.from(signature)).toEqual(Buffer.from(SecretKey.fromBytes(secretKey).sign(bytesOf('next')).toBytes()));
    expect(core.load()).toEqual({ queued: 0, running: 0 });
    await core.close();
  });

  it('jobs of other workers and of the queue are signed all the same', async () => {
    const core = fragileCore(2, []);
    const { handle } = core.addKey(secretKeyOf('survivor'));
    const jobs = Array.from({ length: 200 }, (_, index) =>
      core.sign(handle, index === 100 ? poison : bytesOf(`${index}`), 'normal').then(
        () => 'signed',
        (error) => error.reason,
      ),
    );
    const outcomes = await Promise.all(jobs);
    expect(outcomes[100]).toBe('signing_unavailable');
    expect(outcomes.filter((outcome) => outcome === 'signed').length).toBeGreaterThanOrEqual(200 - 16);
    await core.close();
  });

  it('again and again, and none is left: jobs are refused at once instead of waiting', async () => {
    const core = fragileCore(1, []);
    const { handle } = core.addKey(secretKeyOf('unlucky'));
    await expect(core.sign(handle, poison, 'normal')).rejects.toMatchObject({ reason: 'signing_unavailable' });
    const waiting = Promise.allSettled(
      Array.from({ length: 50 }, (_, index) => core.sign(handle, bytesOf(`${index}`), 'normal')),
    );
    await expect(core.sign(handle, poison, 'priority')).rejects.toMatchObject({ reason: 'signing_unavailable' });
    await expect(core.sign(handle, bytesOf('late'), 'normal')).rejects.toMatchObject({ reason: 'signing_unavailable' });
    await waiting;
    await core.close();
  });

  it('no job of the batches it leaves behind gets the signature of another', async () => {
    const core = fragileCore(1, []);
    const secretKey = secretKeyOf('survivor');
    const { handle } = core.addKey(secretKey);
    const roots = [poison, ...Array.from({ length: 15 }, (_, index) => bytesOf(`${index}`))];
    const results = await Promise.allSettled(roots.map((root) => core.sign(handle, root, 'normal')));
    const signed = results.map((result, index) => ({ root: roots[index] as Uint8Array, result }));
    expect(results[0]?.status).toBe('rejected');
    for (const { root, result } of signed.filter(({ result }) => result.status === 'fulfilled')) {
      expect(result).toEqual({ status: 'fulfilled', value: SecretKey.fromBytes(secretKey).sign(root).toBytes() });
    }
    await core.close();
  });

  it('a key removed while the worker held it can be replaced without its handle coming back', async () => {
    const core = fragileCore(1, []);
    const { handle } = core.addKey(secretKeyOf('first'));
    const failing = core.sign(handle, poison, 'normal');
    core.removeKey(handle);
    await expect(failing).rejects.toMatchObject({ reason: 'signing_unavailable' });
    const next = core.addKey(secretKeyOf('second'));
    expect(next.handle).not.toBe(handle);
    await expect(core.sign(handle, bytesOf('x'), 'normal')).rejects.toMatchObject({ reason: 'signing_unavailable' });
    await core.close();
  });
});
