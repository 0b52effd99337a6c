// Stores that come back without a state table (docs/security.md). What nothing notices: the volume of a sqlite file
// that comes back or is cloned as a whole within two epochs, a folder that is emptied, rows of a database that are
// put back into the same tables while no signer runs. Each is shown twice over real processes: the next start signs
// what contradicts an earlier signature, and after `strongroom slashing jump` it does not. What is noticed: a folder
// that is renamed back later, a database that was made anew on the same server, and what is put back under running
// signers. A key that left after the copy was made is back with the copy, and no jump ends it again. Volumes are
// images that root mounts; elsewhere they are left out. What waits for a jump runs at once. TEST keys.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RunningSigner, runStrongroom } from '../../rehearsal/signer.ts';
import { AskedFleets, CHAIN, presentEpoch, vote, WAIT } from '../support/asked-fleet.ts';
import { type Deployment, deploy } from '../support/deployment.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { call, rootOf, signCall, testKey } from '../support/requests.ts';
import { someOf } from '../support/scale.ts';
import { skipNow, skipWithout } from '../support/skip.ts';

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

/** An image in a folder of its own. */
function volume(isCloned: boolean): Place {
  skipWithout('Linux', 'root', 'mkfs.ext4');
  const home = mkdtempSync(join(tmpdir(), 'strongroom-volume-'));
  const [image, saved, folder] = [join(home, 'image'), join(home, 'saved'), join(home, 'mounted')];
  mkdirSync(folder);
  writeFileSync(image, '');
  truncateSync(image, VOLUME_BYTES);
  const mount = (file: string): boolean => run('mount', '-o', 'loop', file, folder);
  const unmount = (): boolean => run('umount', folder);
  if (!run('mkfs.ext4', '-q', image) || !mount(image)) {
    rmSync(home, { recursive: true });
    skipNow('a kernel that lets root mount an image');
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

/** Another database of the server comes under its name. */
async function madeAnew(): Promise<Place> {
  const name = await postgres.createDatabase();
  const saved = `${name}_saved`;
  /** Without connections to it; a signer may come with one at any moment. */
  const alone = (sql: string): Promise<unknown> =>
    vi.waitFor(async () => {
      const sessions = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`;
      await postgres.query('postgres', sessions);
      await postgres.query('postgres', sql);
    }, WAIT);
  return {
    antiSlashing: { backend: 'postgres', url: postgres.url(name) },
    save: async () => void (await alone(`CREATE DATABASE ${saved} TEMPLATE ${name}`)),
    async comeBack() {
      await alone(`ALTER DATABASE ${name} RENAME TO ${name}_lost`);
      await postgres.query('postgres', `ALTER DATABASE ${saved} RENAME TO ${name}`);
    },
    close() {},
  };
}

const TABLES = ['store', 'validators', 'blocks', 'attestations'] as const;
const EMPTY = TABLES.toReversed().map((table) => `DELETE FROM strongroom.${table}`);
/** As `pg_restore --clean` does it. */
const MAKE = [
  'DROP SCHEMA IF EXISTS lost CASCADE; ALTER SCHEMA strongroom RENAME TO lost; CREATE SCHEMA strongroom',
  ...['schema_version', 'binding'].map((table) => `ALTER TABLE lost.${table} SET SCHEMA strongroom`),
  ...TABLES.map((table) => `CREATE TABLE strongroom.${table} (LIKE lost.${table} INCLUDING ALL)`),
];

/** Its rows come back into the tables as they are, as by `pg_restore --data-only`, or into tables made for them. */
async function rowsPutBack(before: readonly string[] = EMPTY): Promise<Place> {
  const name = await postgres.createDatabase();
  const each = (sql: (table: string) => string): Promise<unknown> =>
    postgres.query(name, TABLES.map((table) => sql(table)).join(';\n'));
  return {
    antiSlashing: { backend: 'postgres', url: postgres.url(name) },
    async save() {
      await postgres.query(name, 'DROP SCHEMA IF EXISTS saved CASCADE; CREATE SCHEMA saved');
      await each((table) => `CREATE TABLE saved.${table} AS SELECT * FROM strongroom.${table}`);
    },
    async comeBack() {
      const put = TABLES.map(
        (table) => `INSERT INTO strongroom.${table} OVERRIDING SYSTEM VALUE SELECT * FROM saved.${table}`,
      );
      await postgres.query(name, [...before, ...put].join(';\n')); // in one transaction
    },
    close() {},
  };
}

/** A folder that was closed in order is renamed back, with its file and its mark. */
function renamedBack(): Place {
  const home = mkdtempSync(join(tmpdir(), 'strongroom-renamed-'));
  const [folder, old] = [join(home, 'store'), join(home, 'old')];
  mkdirSync(folder);
  return {
    antiSlashing: sqliteIn(folder),
    save() {
      renameSync(folder, old);
      cpSync(old, folder, { recursive: true, preserveTimestamps: true });
    },
    comeBack() {
      rmSync(folder, { recursive: true });
      renameSync(old, folder);
    },
    close: () => rmSync(home, { recursive: true }),
  };
}

let postgres: PostgresServer;
let fleets: Promise<AskedFleets> | undefined;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(async () => {
  await (await fleets)?.close();
  await postgres.close();
});

/** Started and ended in order: the statuses of the answers. */
async function asked(
  deployment: Pick<Deployment, 'start'>,
  epoch: number,
  ...heads: readonly string[]
): Promise<readonly number[]> {
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

const PLACES: readonly (readonly [string, () => Place | Promise<Place>])[] = [
  ['a folder that was emptied', emptiedFolder],
  ['rows of a PostgreSQL database that were put back into its tables', () => rowsPutBack()],
  ['a volume that was put back as a whole', () => volume(false)],
  ['a clone of the volume in its place', () => volume(true)],
];

const ENDINGS = [
  ['is noticed by nothing: an earlier vote is contradicted', false, 200],
  ['contradicts nothing after a jump by hand', true, 412],
] as const;

/** Its epochs are so long that a store which comes back within two of them does so within a test. */
const SLOW_SLOT_SECONDS = 75;
const SLOW_GENESIS = Math.floor(Date.now() / 1000) - 1_000 * 8 * SLOW_SLOT_SECONDS;
const SLOW_CHAIN = {
  ...CHAIN,
  custom_network: {
    ...CHAIN.custom_network,
    genesis_time: SLOW_GENESIS,
    slot_duration_ms: SLOW_SLOT_SECONDS * 1_000,
  },
};

const returns = PLACES.flatMap(([name, open]) =>
  ENDINGS.map(([what, ...ending]) => [`${name} ${what}`, open, ...ending] as const),
);

it.each(someOf(returns, 3))('%s', async (_what, open, jumps, expected) => {
  const place = await open();
  const deployment = deploy(1, { ...SLOW_CHAIN, anti_slashing: place.antiSlashing });
  try {
    const epoch = Math.floor((Date.now() / 1_000 - SLOW_GENESIS) / (8 * SLOW_SLOT_SECONDS));
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

const NOTICED: readonly (readonly [string, () => Place | Promise<Place>, RegExp])[] = [
  ['a database that was made anew on its server', madeAnew, /cause="other_server"\} 1$/m],
  ['a folder that was renamed back two epochs after it was closed', renamedBack, /cause="late_start"\} 1$/m],
];

it.concurrent.each(NOTICED)(
  '%s: the next start jumps, and an earlier vote is not contradicted',
  async (_what, open, cause) => {
    const place = await open();
    const deployment = deploy(1, { ...CHAIN, anti_slashing: place.antiSlashing });
    try {
      expect(await asked(deployment, presentEpoch() - 20, rootOf(1))).toEqual([200]);
      const closedAt = presentEpoch();
      await place.save();
      await vi.waitFor(() => expect(presentEpoch()).toBeGreaterThan(closedAt + 3), WAIT);
      let epoch = 0;
      // A late start jumps by itself, and signs the epoch after.
      const later = await deployment.start();
      await vi.waitFor(async () => {
        epoch = presentEpoch();
        expect((await signCall(later.url, testKey(0).publicKey, vote(epoch, rootOf(1)))).status).toBe(200);
      }, WAIT);
      await later.stop();
      await place.comeBack();
      const signer = await deployment.start();
      try {
        // What is asked while it jumps is 503, and what is signed once is 200 for ever.
        await vi.waitFor(async () => {
          expect((await signCall(signer.url, testKey(0).publicKey, vote(epoch, SECOND_HEAD))).status).toBe(412);
        }, WAIT);
        expect((await call(signer.metricsUrl)).text).toMatch(cause);
      } finally {
        await signer.stop();
      }
    } finally {
      place.close();
      rmSync(deployment.folder, { recursive: true, force: true });
    }
  },
);

interface Two {
  readonly signers: readonly [RunningSigner, RunningSigner];
  readonly token: { readonly token?: string };
  close(): Promise<void>;
}

async function twoAlone(antiSlashing: Place['antiSlashing']): Promise<Two> {
  const deployments = [1, 2].map(() => deploy(1, { ...CHAIN, anti_slashing: antiSlashing }));
  const [one, other] = await Promise.all(deployments.map((deployment) => deployment.start()));
  if (one === undefined || other === undefined) throw new Error('two were started');
  return {
    signers: [one, other],
    token: {},
    async close() {
      await Promise.all([one.kill(), other.kill()]);
      for (const { folder } of deployments) rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** As instances of an image, which refuse everything up to their start. */
async function twoOfAStateTable(antiSlashing: Place['antiSlashing']): Promise<Two> {
  fleets ??= AskedFleets.start();
  const fleet = await (await fleets).open();
  const ofImage = { ...antiSlashing, jump_at_boot: true };
  const one = await fleet.start('first', ofImage);
  const token = await fleet.token(one);
  const other = await fleet.start('second', ofImage);
  return { signers: [one, other], token: { token }, close: () => fleet.close() };
}

/** Two signers over one store, which is put back under them: the one that signed is asked first, or the other. */
const UNDER = [
  ['a database that was made anew', madeAnew, 0],
  ['tables that were made anew in their database', () => rowsPutBack(MAKE), 0],
  ['rows that were put back, from before the last renewal', () => rowsPutBack(), 20_000],
] as const;
const SIGNERS = [
  ['signers', twoAlone],
  ['signers of a state table', twoOfAStateTable],
] as const;
const undersigned = UNDER.flatMap(([name, open, waitMs]) =>
  SIGNERS.flatMap(([of, start]) =>
    (['the one that signed', 'the other one'] as const).map(
      (asked) => [of, `${name}, ${asked} is asked`, open, { start, waitMs, asked }] as const,
    ),
  ),
);

it.concurrent.each(someOf(undersigned, 4))(
  'under running %s, %s first: nothing is contradicted',
  async (_of, _what, open, { start, waitMs, asked: asks }) => {
    const place = await open();
    const { signers, token, close } = await start(place.antiSlashing);
    const [one, other] = signers;
    const ask = async (signer: { readonly url: string }, epoch: number, head: string): Promise<number> => {
      const statuses: number[] = [];
      // A connection that was ended is found by the request that meets it.
      await vi.waitFor(async () => {
        const { status, json } = await signCall(signer.url, testKey(0).publicKey, vote(epoch, head), token);
        expect(json['reason']).not.toBeOneOf(['slashing_unavailable', 'slashing_unbound']);
        statuses.push(status);
      }, WAIT);
      return statuses.at(-1) ?? 0;
    };
    const signLater = async (than: number): Promise<number> => {
      let epoch = than;
      await vi.waitFor(async () => {
        epoch = presentEpoch();
        expect(epoch).toBeGreaterThan(than);
        expect(await ask(one, epoch, rootOf(1))).toBe(200);
      }, WAIT);
      return epoch;
    };
    try {
      const before = await signLater(0);
      await place.save();
      const savedAt = performance.now();
      await vi.waitFor(() => expect(performance.now() - savedAt).toBeGreaterThanOrEqual(waitMs), WAIT);
      const epoch = await signLater(before);
      await place.comeBack();
      expect(await ask(asks === 'the one that signed' ? one : other, epoch, SECOND_HEAD)).not.toBe(200);
      for (const signer of signers) expect(await ask(signer, epoch, SECOND_HEAD)).not.toBe(200);
      // And it goes on by itself.
      for (const signer of signers) {
        await vi.waitFor(async () => {
          const { status } = await signCall(signer.url, testKey(0).publicKey, vote(presentEpoch(), rootOf(1)), token);
          expect(status).toBe(200);
        }, WAIT);
      }
    } finally {
      await close();
      place.close();
    }
  },
);

describe('a key that left after the copy of its store was made', () => {
  const retire = ['retire', testKey(0).publicKey];
  const ways = [
    ['signs nothing when it is retired again before the start', [['jump'], retire], 'key_retired'],
    ['is noticed by nothing, and a jump does not end it again', [['jump']], 'signed'],
  ] as const;
  it.each(someOf(ways, 1))('%s', async (_what, commands, expected) => {
    const place = await rowsPutBack();
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

it('a record that may lack signatures leaves with no key: no export of a folder put back until a jump', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-put-back-'));
  const saved = `${folder}-saved`;
  const deployment = deploy(1, { ...CHAIN, anti_slashing: sqliteIn(folder) });
  const command = (...words: readonly string[]) =>
    runStrongroom(['slashing', ...words, '-c', join(deployment.folder, 'strongroom.yaml')]);
  const signer = await deployment.start();
  const epoch = presentEpoch() - 3;
  const { publicKey } = testKey(0);
  expect((await signCall(signer.url, publicKey, vote(epoch, rootOf(1)))).status).toBe(200);
  await signer.stop();
  const whole = await command('export');
  expect([whole.code, whole.stderr]).toEqual([0, expect.not.stringMatching(/nothing is exported/)]);
  cpSync(folder, saved, { recursive: true });
  const later = await deployment.start();
  let next = 0;
  await vi.waitFor(async () => {
    next = presentEpoch(); // on a slow machine the signer has jumped, because the folder was closed long ago
    expect((await signCall(later.url, publicKey, vote(next, rootOf(1)))).status).toBe(200);
  }, WAIT);
  await later.stop();
  rmSync(folder, { recursive: true });
  cpSync(saved, folder, { recursive: true });

  const refused = await command('export');
  expect([refused.code, refused.stdout]).toEqual([1, '']);
  expect(refused.stderr).toMatch(/nothing is exported: the slashing database was not closed in order.*slashing jump/);
  expect((await command('export')).code).toBe(1); // looking at it settles nothing
  expect((await command('jump')).code).toBe(0);
  const raised = await command('export');
  expect(raised.code).toBe(0);
  const [{ signed_attestations: votes }] = (
    JSON.parse(raised.stdout) as { data: [{ signed_attestations: { target_epoch: string }[] }] }
  ).data;
  expect(Math.max(...votes.map(({ target_epoch }) => Number(target_epoch)))).toBeGreaterThan(next);
  for (const path of [folder, saved, deployment.folder]) rmSync(path, { recursive: true });
});
