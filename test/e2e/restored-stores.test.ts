// What nothing notices without a state table (docs/security.md): the volume of a sqlite file that comes back or is
// cloned as a whole, a folder that is emptied, a database restored on the same timeline of its server. Each is shown
// twice over real processes: the next start signs what contradicts an earlier signature, and after `strongroom slashing
// jump` it does not. A key that left after the copy was made is back with the copy, and no jump ends it again. Volumes
// are images that root mounts; elsewhere they are left out. TEST keys.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { runStrongroom } from '../../tools/rehearsal/signer.ts';
import { CHAIN, presentEpoch, vote, WAIT } from '../support/asked-fleet.ts';
import { type Deployment, deploy } from '../support/deployment.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { rootOf, signCall, testKey } from '../support/requests.ts';
import { someOf } from '../support/scale.ts';

const VOLUME_BYTES = 16 * 1024 * 1024;
const SECOND_HEAD = rootOf(2);

interface Place {
  readonly antiSlashing: Readonly<Record<string, string>>;
  save(): void | Promise<void>;
  comeBack(): void | Promise<void>;
  close(): void;
}

const sqliteIn = (folder: string) => ({ backend: 'sqlite', path: join(folder, 'slashing_protection.sqlite') });

function run(program: string, ...args: readonly string[]): boolean {
  return spawnSync(program, args).status === 0;
}

/** An image in a folder of its own; undefined where it cannot be mounted. */
function volume(isCloned: boolean): Place | undefined {
  const home = mkdtempSync(join(tmpdir(), 'strongroom-volume-'));
  const [image, saved, folder] = [join(home, 'image'), join(home, 'saved'), join(home, 'mounted')];
  mkdirSync(folder);
  writeFileSync(image, '');
  truncateSync(image, VOLUME_BYTES);
  const mount = (file: string): boolean => run('mount', '-o', 'loop', file, folder);
  const unmount = (): boolean => run('umount', folder);
  if (!run('mkfs.ext4', '-q', image) || !mount(image)) {
    rmSync(home, { recursive: true });
    return undefined;
  }
  return {
    antiSlashing: sqliteIn(folder),
    save() {
      expect(unmount()).toBe(true);
      cpSync(image, saved);
      expect(mount(image)).toBe(true);
    },
    comeBack() {
      expect(unmount()).toBe(true);
      if (!isCloned) cpSync(saved, image);
      expect(mount(isCloned ? saved : image)).toBe(true);
    },
    close() {
      unmount();
      rmSync(home, { recursive: true });
    },
  };
}

function emptiedFolder(): Place {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-emptied-'));
  return {
    antiSlashing: sqliteIn(folder),
    save() {},
    comeBack() {
      for (const name of readdirSync(folder)) rmSync(join(folder, name));
    },
    close: () => rmSync(folder, { recursive: true }),
  };
}

async function database(): Promise<Place> {
  const name = await postgres.createDatabase();
  const saved = `${name}_saved`;
  return {
    antiSlashing: { backend: 'postgres', url: postgres.url(name) },
    save: async () => void (await postgres.query('postgres', `CREATE DATABASE ${saved} TEMPLATE ${name}`)),
    async comeBack() {
      await postgres.query('postgres', `DROP DATABASE ${name}`);
      await postgres.query('postgres', `ALTER DATABASE ${saved} RENAME TO ${name}`);
    },
    close() {},
  };
}

let postgres: PostgresServer;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

/** Started and ended in order: the statuses of the answers. */
async function asked(deployment: Deployment, epoch: number, ...heads: readonly string[]): Promise<readonly number[]> {
  const signer = await deployment.start();
  try {
    const statuses: number[] = [];
    for (const head of heads) {
      statuses.push((await signCall(signer.url, testKey(0).publicKey, vote(epoch, head))).status);
    }
    return statuses;
  } finally {
    await signer.stop();
  }
}

const probe = volume(false);
probe?.close();
const PLACES: readonly (readonly [string, () => Place | undefined | Promise<Place>])[] = [
  ['a folder that was emptied', emptiedFolder],
  ['a PostgreSQL database that was restored on its server', database],
  ...(probe === undefined
    ? []
    : ([
        ['a volume that was put back as a whole', () => volume(false)],
        ['a clone of the volume in its place', () => volume(true)],
      ] as const)),
];

const ENDINGS = [
  ['is noticed by nothing: an earlier vote is contradicted', false, 200],
  ['contradicts nothing after a jump by hand', true, 412],
] as const;

const returns = PLACES.flatMap(([name, open]) =>
  ENDINGS.map(([what, ...ending]) => [`${name} ${what}`, open, ...ending] as const),
);

it.each(someOf(returns, 3))('%s', async (_what, open, jumps, expected) => {
  const place = await open();
  if (place === undefined) throw new Error('it could be mounted before');
  const deployment = deploy(1, { ...CHAIN, anti_slashing: place.antiSlashing });
  try {
    const epoch = presentEpoch();
    expect(await asked(deployment, epoch - 1, rootOf(1))).toEqual([200]);
    await place.save();
    expect(await asked(deployment, epoch, rootOf(1), SECOND_HEAD)).toEqual([200, 412]);
    await place.comeBack();
    if (jumps) {
      const jump = ['slashing', 'jump', '-c', join(deployment.folder, 'strongroom.yaml')];
      expect((await runStrongroom(jump)).code).toBe(0);
    }
    expect(await asked(deployment, epoch, SECOND_HEAD)).toEqual([expected]);
  } finally {
    place.close();
    rmSync(deployment.folder, { recursive: true, force: true });
  }
});

describe('a key that left after the copy of its store was made', () => {
  const retire = ['retire', testKey(0).publicKey];
  const ways = [
    ['signs nothing when it is retired again before the start', [['jump'], retire], 'key_retired'],
    ['is noticed by nothing, and a jump does not end it again', [['jump']], 'signed'],
  ] as const;
  it.each(someOf(ways, 1))('%s', async (_what, commands, expected) => {
    const place = await database();
    const deployment = deploy(1, { ...CHAIN, anti_slashing: place.antiSlashing });
    const slashing = async (...command: readonly string[]): Promise<void> =>
      expect(
        (await runStrongroom(['slashing', ...command, '-c', join(deployment.folder, 'strongroom.yaml')])).code,
      ).toBe(0);
    try {
      expect(await asked(deployment, presentEpoch() - 1, rootOf(1))).toEqual([200]);
      await place.save();
      await slashing(...retire);
      expect(await asked(deployment, presentEpoch(), rootOf(1))).toEqual([412]);
      await place.comeBack();
      for (const command of commands) await slashing(...command);
      const signer = await deployment.start();
      try {
        // The jump covers the present: an epoch that begins after it is asked for.
        await vi.waitFor(async () => {
          const answer = await signCall(signer.url, testKey(0).publicKey, vote(presentEpoch(), rootOf(1)));
          expect(answer.json['reason'] ?? 'signed').toBe(expected);
        }, WAIT);
      } finally {
        await signer.stop();
      }
    } finally {
      place.close();
      rmSync(deployment.folder, { recursive: true, force: true });
    }
  });
});
