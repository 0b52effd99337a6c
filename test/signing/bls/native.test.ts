import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { SecretKey } from '@chainsafe/blst';
import { beforeAll, describe, expect, test } from 'vitest';
import { ADDON_PATH, type Addon, type Keyring, loadAddon } from '../../../enclave/native/load.ts';
import { NativeBlsCore } from '../../../enclave/signing/bls/native.ts';
import { blsCoreContract } from '../../contract/bls.ts';
import { addonForTests, PROJECT_ROOT } from '../../support/addon.ts';
import { bytesOf, secretKeyOf } from '../../support/bls.ts';
import { LONGEST_WAIT_MS } from '../../support/patience.ts';

const KEY = secretKeyOf('a');
const LINUX = process.platform === 'linux';

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

  describe('jobs are refused, every one,', () => {
    const JOBS = 60_000;
    test.each<[string, Partial<Addon>]>([
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

    test.each([true, false])('has the signatures of any other; tables: %s', async (rootTables) => {
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

  describe('a batch', () => {
    test('gives zeros for a stale handle and signatures for the others', async () => {
      const keyring = addon.openKeyring('best_effort', true, 1);
      const handles = ['a', 'b', 'c'].map((label) => addon.addKey(keyring, secretKeyOf(label), new Uint8Array(48)));
      addon.removeKey(keyring, handles[1] as number);
      const signatures = new Uint8Array(await addon.signBatch(keyring, Float64Array.from(handles), new Uint8Array(96)));
      expect(signatures.subarray(96, 192)).toEqual(new Uint8Array(96));
      expect((signatures[0] as number) & 0x80).toBe(0x80);
      expect((signatures[192] as number) & 0x80).toBe(0x80);
      addon.closeKeyring(keyring);
    });

    test('under way when its keyring is wiped and closed ends with right signatures, and its memory is given back', async () => {
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

    test('of one keyring cannot use the handle of another', async () => {
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

  describe('the threads of a keyring', () => {
    /**
     * A program of its own with the addon and a keyring of 2 threads that has one key; what it printed, and how it
     * ended.
     */
    function run(body: string): { readonly output: string; readonly status: number | null } {
      const program = `
        const { existsSync, readdirSync, readFileSync } = require('node:fs');
        const { Worker } = require('node:worker_threads');
        const addon = require(${JSON.stringify(ADDON_PATH)});
        const open = () => {
          const keyring = addon.openKeyring('off', true, 2);
          const handle = addon.addKey(keyring, Buffer.from('${Buffer.from(KEY).toString('hex')}', 'hex'), new Uint8Array(48));
          const batch = (jobs) => addon.signBatch(keyring, new Float64Array(jobs).fill(handle), new Uint8Array(32 * jobs));
          return { keyring, batch };
        };
        const nameOf = (id) => {
          try { return readFileSync('/proc/self/task/' + id + '/comm', 'utf8'); } catch { return 'gone'; }
        };
        const threadsOf = (name) => readdirSync('/proc/self/task').filter((id) => nameOf(id) === name + '\\n');
        const signingThreads = () => threadsOf('bls signing').length + threadsOf('bls groups').length;
        ${body}`;
      const { stdout, stderr, status } = spawnSync(process.execPath, ['--expose-gc', '-e', program], {
        encoding: 'utf8',
        timeout: LONGEST_WAIT_MS,
      });
      return { output: stdout + stderr, status };
    }

    test('keep the process while a batch is under way, and only then', () => {
      expect(run(`open().batch(16).then((signatures) => console.log(signatures.byteLength));`)).toEqual({
        output: '1536\n',
        status: 0,
      });
      expect(run(`globalThis.kept = open(); console.log('idle');`)).toEqual({ output: 'idle\n', status: 0 });
    });

    test.runIf(LINUX)('are as many as were asked for, and end when it is closed or nobody has it any more', () => {
      // A thread that was waited for stays in /proc for a moment.
      const result = run(`(async () => {
        const until = async (count) => {
          while (signingThreads() !== count) { gc(); await new Promise((later) => setTimeout(later, 10)); }
          console.log(count);
        };
        const closed = open();
        await until(4);
        const last = closed.batch(16);
        addon.closeKeyring(closed.keyring);
        await last;
        await until(0);
        let others = [open(), open()];
        others[0].batch(1);
        await until(8);
        others = undefined;
        await until(0);
        console.log(JSON.stringify(addon.secretMemory()));
      })();`);
      expect(result).toEqual({ output: '4\n0\n8\n0\n{"lockedBytes":0,"unlockedBytes":0}\n', status: 0 });
    });

    test.runIf(LINUX)('that sign for groups stand back behind all others', () => {
      const result = run(`
        globalThis.kept = open();
        const stat = (id) => readFileSync('/proc/self/task/' + id + '/stat', 'utf8').split(') ')[1].split(' ');
        const niceOf = (id) => Number(stat(id)[16]) - Number(stat(process.pid)[16]); // the tests may run nicely
        // Linux shows slices from 6.12 on, if it was built to; before it has none for a thread.
        const sliceOf = (id) => Number(/^se\\.slice *: *(\\d+)$/m.exec(readFileSync('/proc/self/task/' + id + '/sched', 'utf8'))?.[1]);
        const hasLongSlice = (id) => !existsSync('/proc/self/sched') || Number.isNaN(sliceOf(id)) || sliceOf(id) > sliceOf(process.pid);
        const look = () => {
          const found = [threadsOf('bls signing').map(niceOf), threadsOf('bls groups').map(niceOf), [niceOf(process.pid)]];
          if (found.flat().length < 5 || found[1].includes(0)) setTimeout(look, 10); // a thread sets it as it starts
          else console.log(JSON.stringify(found), threadsOf('bls groups').every(hasLongSlice));
        };
        look();`);
      expect(result).toEqual({ output: '[[0,0],[10,10],[0]] true\n', status: 0 });
    });

    test.runIf(LINUX)('end with the JavaScript thread that opened it, whatever is under way', () => {
      const result = run(`(async () => {
        const work = '(' + (async () => {
          const addon = require(process.env.ADDON);
          const keyring = addon.openKeyring('off', true, 2);
          const handle = addon.addKey(keyring, new Uint8Array(32).fill(1), new Uint8Array(48));
          for (let batch = 0; batch < 40; batch++) addon.signBatch(keyring, new Float64Array(16).fill(handle), new Uint8Array(512));
          require('node:worker_threads').parentPort.postMessage('signing');
          await addon.signBatch(keyring, new Float64Array(1).fill(handle), new Uint8Array(32));
        }) + ')()';
        for (let round = 0; round < 10; round++) {
          const worker = new Worker(work, { eval: true, env: { ADDON: ${JSON.stringify(ADDON_PATH)} } });
          await new Promise((signing) => worker.once('message', signing));
          if (round % 2 === 1) await new Promise((later) => setTimeout(later, 5));
          await worker.terminate();
        }
        while (signingThreads() > 0) await new Promise((later) => setTimeout(later, 10));
        console.log(JSON.stringify(addon.secretMemory()));
      })();`);
      expect(result).toEqual({ output: '{"lockedBytes":0,"unlockedBytes":0}\n', status: 0 });
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
      ['17 jobs', (keyring) => addon.signBatch(keyring, new Float64Array(17), new Uint8Array(17 * 32))],
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
    test.each(cases)('%s', (_, call) => {
      const keyring = addon.openKeyring('off', true, 1);
      expect(() => call(keyring)).toThrow(TypeError);
      addon.closeKeyring(keyring);
    });

    test('a closed keyring takes neither keys nor batches', () => {
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
    test('is counted while it is open and grows with the keys', () => {
      const before = addon.secretMemory();
      const keyring = addon.openKeyring('off', true, 1);
      const first = addon.secretMemory().unlockedBytes - before.unlockedBytes;
      expect(first).toBeGreaterThanOrEqual(16 * 1024);
      for (let index = 0; index <= first / 32; index++) addon.addKey(keyring, secretKeyOf('a'), new Uint8Array(48));
      expect(addon.secretMemory().unlockedBytes - before.unlockedBytes).toBe(2 * first);
      addon.closeKeyring(keyring);
      expect(addon.secretMemory()).toEqual(before);
    });

    test('slots of removed keys are used again', () => {
      const keyring = addon.openKeyring('off', true, 1);
      const { unlockedBytes } = addon.secretMemory();
      for (let index = 0; index < 5000; index++) {
        addon.removeKey(keyring, addon.addKey(keyring, secretKeyOf('a'), new Uint8Array(48)));
      }
      expect(addon.secretMemory().unlockedBytes).toBe(unlockedBytes);
      addon.closeKeyring(keyring);
    });

    test('comes as a zeroed buffer of the length that was asked for', () => {
      const secret = new Uint8Array(addon.allocateSecret(33, 'best_effort'));
      expect(secret).toEqual(new Uint8Array(33));
      secret.fill(7);
      expect(secret[32]).toBe(7);
    });

    test.runIf(LINUX)('is locked, and left out of core dumps and child processes, in the eyes of the kernel', () => {
      const keyring = addon.openKeyring('required', true, 1);
      const mappings = readFileSync('/proc/self/smaps', 'utf8').split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m);
      const slabs = mappings.filter((text) => /^Size: +16 kB$/m.test(text) && /^VmFlags:.* lo .*dc .*dd /m.test(text));
      expect(slabs.length).toBeGreaterThan(0);
      addon.closeKeyring(keyring);
    });
  });

  test('the addon exports nothing but its own entry points and keeps blst to itself', () => {
    const listed = spawnSync('nm', ['-D', '--defined-only', 'build/native/strongroom.node'], {
      cwd: PROJECT_ROOT,
      encoding: 'utf8',
    });
    if (listed.status !== 0) return console.warn('SKIPPED: nm cannot list the symbols here');
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
