// The native BLS core on its addon: the contract of every core, jobs that the addon fails, roots that many keys sign,
// and what the addon exports.

import { spawnSync } from 'node:child_process';
import { SecretKey } from '@chainsafe/blst';
import { beforeAll, describe, expect, it } from 'vitest';
import { NativeBlsCore } from '../../signer/bls/native.ts';
import { type Addon, loadAddon } from '../../signer/native/load.ts';
import { blsCoreContract } from '../contract/bls.ts';
import { addonForTests, PROJECT_ROOT } from '../support/addon.ts';
import { bytesOf, jobsHaveStarted, secretKeyOf } from '../support/bls.ts';
import { lacking } from '../support/needs.ts';

const KEY = secretKeyOf('a');

describe.skipIf(!addonForTests())('with the native addon', () => {
  let addon: Addon;
  beforeAll(() => {
    const loaded = loadAddon();
    if (loaded === undefined) throw new Error('the addon was there a moment ago');
    addon = loaded;
  });

  describe('the native BLS core', () => {
    blsCoreContract((cores) => new NativeBlsCore(addon, { cores }));
  });

  describe('jobs of one root', () => {
    const UNDER_WAY = { true: 64, false: 16 };

    it.each([true, false])(
      'are at most so many under way, and those with priority overtake them (tables: %s)',
      async (rootTables) => {
        const core = new NativeBlsCore(addon, { cores: 1, rootTables });
        const { handle } = core.addKey(KEY);
        const most = UNDER_WAY[`${rootTables}`];
        let done = 0;
        const jobs = Array.from({ length: 400 }, async () => {
          await core.sign(handle, bytesOf('of many'), 'normal');
          done += 1;
        });
        await jobsHaveStarted();
        expect(core.load()).toEqual({ queued: 400 - most, running: most });
        await core.sign(handle, bytesOf('of many'), 'priority');
        expect(done).toBeLessThanOrEqual(most + 3); // and of those that were signed with it
        await Promise.all(jobs);
        await core.close();
      },
    );
  });

  describe('jobs are refused, every one,', () => {
    const JOBS = 60_000;
    it.each<[string, Partial<Addon>]>([
      [
        'when the addon throws',
        {
          signBatch: () => {
            throw new Error('no memory for a batch');
          },
        },
      ],
      ['when the addon fails', { signBatch: () => Promise.reject(new Error('no memory for signatures')) }],
      [
        'when signatures are missing',
        { signBatch: (_, handles) => Promise.resolve(new ArrayBuffer(handles.length * 96 - 1)) },
      ],
    ])('%s', async (_, fault) => {
      const core = new NativeBlsCore({ ...addon, ...fault }, { cores: 2 });
      const { handle } = core.addKey(KEY);
      const jobs = Array.from({ length: JOBS }, () => core.sign(handle, bytesOf('root'), 'normal'));
      const outcomes = await Promise.allSettled(jobs);
      expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
      expect(core.load()).toEqual({ queued: 0, running: 0 });
      await core.close();
    });
  });

  describe('a root that many keys sign', () => {
    const labels = Array.from({ length: 40 }, (_, index) => `key ${index}`);
    /**
     * More roots than there are tables, in turns, so that tables are made, used and thrown out while others read them.
     */
    const roots = Array.from({ length: 6 }, (_, index) => bytesOf(`shared root ${index}`));

    it.each([true, false])('has the signatures of any other; tables: %s', async (rootTables) => {
      const core = new NativeBlsCore(addon, { rootTables });
      const keys = labels.map((label) => ({ label, handle: core.addKey(secretKeyOf(label)).handle }));
      const jobs = keys.flatMap((key) => roots.map((root) => ({ ...key, root })));
      const signatures = await Promise.all(jobs.map(({ handle, root }) => core.sign(handle, root, 'normal')));
      for (const [index, { label, root }] of jobs.entries()) {
        const expected = SecretKey.fromBytes(secretKeyOf(label)).sign(root).toBytes();
        expect(Buffer.from(signatures[index] ?? []).equals(expected)).toBe(true);
      }
      await core.close();
    });
  });

  it.skipIf(lacking('nm'))('the addon exports nothing but its own entry points and keeps blst to itself', () => {
    const listed = spawnSync('nm', ['-D', '--defined-only', 'build/native/strongroom.node'], {
      cwd: PROJECT_ROOT,
      encoding: 'utf8',
    });
    const names = listed.stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' ').at(-1));
    expect(
      names.filter(
        (name) =>
          !/^_|napi_register_module_v1|node_api_module_get_api_version_v1|blst_sha256_block_data_order/.test(
            name ?? '',
          ),
      ),
    ).toEqual([]);
  });
});
