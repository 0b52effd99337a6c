// What a kept demonstration says of a signer that ends by itself; a restart and the end of the world are no such thing.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { tracked } from '../../rehearsal/signer.ts';

const ROOT = join(import.meta.dirname, '../..');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-kept-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Replicas that are other programs, whose process ids it prints. */
const WORLD = `
import { spawn } from 'node:child_process';
import { ended, keep } from '${ROOT}/demo/keep.ts';
const start = (name) => {
  const child = spawn('sleep', ['600']);
  console.log('started', name, child.pid);
  return { name, child, ended: ended(child) };
};
let replicas = [start('first'), start('other')];
const stop = () => replicas.map(({ child }) => child.kill());
await keep({
  folder: process.argv[1],
  tokens: {},
  profiles: {},
  tries: [],
  running: () => replicas,
  ...(process.argv[2] === 'restart' && {
    restart: async () => {
      stop();
      await Promise.all(replicas.map(({ ended }) => ended));
      replicas = [start('first'), start('other')];
    },
  }),
});
stop();
`;

it('says which one has ended, how, and what starts it again', async () => {
  const world = await keepWorld('restart');
  const [first = 0, other = 0] = world.pids();
  process.kill(other, 'SIGKILL');
  await world.says(`other has ended by itself (SIGKILL): kill -USR2 ${world.child.pid} restarts it`);
  world.child.kill('SIGUSR2');
  await world.says('restarted\n');
  expect(world.pids()).toHaveLength(4);
  expect(world.output()).not.toContain('first has ended');
  process.kill(world.pids()[2] ?? first, 'SIGTERM');
  await world.says(`first has ended by itself (SIGTERM): kill -USR2 ${world.child.pid} restarts it`);
  await world.stop();
  expect(world.output().match(/has ended/g)).toHaveLength(2);
});

it('where nothing restarts it, says so', async () => {
  const world = await keepWorld();
  process.kill(world.pids()[0] ?? 0, 'SIGKILL');
  await world.says('first has ended by itself (SIGKILL): stop this, and start it again');
  await world.stop();
  expect(world.output()).toContain('stopped\n');
});

async function keepWorld(...args: readonly string[]) {
  const node = [join(ROOT, 'bin/pinned-node'), '--input-type=module', '-e', WORLD, folder, ...args];
  const child = tracked<ChildProcess>(spawn(node[0] ?? '', node.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] }));
  const exited = once(child, 'exit');
  let text = '';
  const looks = new Set<() => void>();
  child.stdout?.setEncoding('utf8').on('data', (more: string) => {
    text += more;
    for (const look of looks) look();
  });
  const says = (wanted: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (text.includes(wanted)) resolve();
      };
      looks.add(look);
      look();
      exited.then((how) => reject(new Error(`it ended (${how}) without saying ${wanted}: ${text}`)), reject);
    });
  await says('To stop it:');
  return {
    child,
    says,
    output: () => text,
    pids: () => [...text.matchAll(/^started \w+ (\d+)$/gm)].map(([, pid]) => Number(pid)),
    async stop() {
      child.kill('SIGTERM');
      expect(await exited).toEqual([0, null]);
    },
  };
}
