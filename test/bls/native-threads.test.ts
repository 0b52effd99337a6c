// The threads of a keyring, each time in a program of its own: how many there are, how they are scheduled, and that
// they end with it.

import { spawnSync } from 'node:child_process';
import { getPriority } from 'node:os';
import { describe, expect, it } from 'vitest';
import { ADDON_PATH } from '../../signer/native/load.ts';
import { addonForTests } from '../support/addon.ts';
import { secretKeyOf } from '../support/bls.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';

const KEY = secretKeyOf('a');
/** setpriority(2): nothing stands further back. */
const MOST_NICE = 19;
const LINUX = process.platform === 'linux';

describe.skipIf(!addonForTests())('with the native addon', () => {
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

    it('keep the process while a batch is under way, and only then', () => {
      expect(run(`open().batch(16).then((signatures) => console.log(signatures.byteLength));`)).toEqual({
        output: '1536\n',
        status: 0,
      });
      expect(run(`globalThis.kept = open(); console.log('idle');`)).toEqual({ output: 'idle\n', status: 0 });
    });

    it.runIf(LINUX)('are as many as were asked for, and end when it is closed or nobody has it any more', () => {
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

    it.runIf(LINUX)('that sign for groups stand back behind all others', () => {
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
      const behind = Math.min(10, MOST_NICE - getPriority()); // the tests may run nicely, up to the end of the scale
      expect(behind).toBeGreaterThan(0);
      expect(result).toEqual({ output: `[[0,0],[${behind},${behind}],[0]] true\n`, status: 0 });
    });

    it.runIf(LINUX)('end with the JavaScript thread that opened it, whatever is under way', () => {
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
});
