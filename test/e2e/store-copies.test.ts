// Copies of a slashing store, and older rows and files that come back: real processes on a chain of short epochs, which
// ask for votes of the present all the time, each signer for another head. Without incarnations each of these ways
// yielded slashable pairs. TEST keys.
//
// The ways run at once, because most of the time all of them wait. TEST_SCALE=200 goes each way 200 times, a few
// rounds of it at once.

import { cpSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RunningSigner, runStrongroom } from '../../rehearsal/signer.ts';
import {
  type AskedFleet,
  AskedFleets,
  CHAIN,
  expectInRounds,
  goesOn,
  presentEpoch,
  signs,
  vote,
  WAIT,
} from '../support/asked-fleet.ts';
import { deploy } from '../support/deployment.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { call, rootOf, signCall, testKey } from '../support/requests.ts';
import { sized, someOf } from '../support/scale.ts';

const ROUNDS = sized(1, 1);
const TEST_LIMIT_MS = LONGEST_WAIT_MS * ROUNDS;
const expectRounds = (way: () => Promise<void>) => expectInRounds(ROUNDS, way);

let fleets: AskedFleets;
let postgres: Promise<PostgresServer> | undefined;
beforeAll(async () => {
  fleets = await AskedFleets.start();
});
afterAll(async () => {
  await Promise.all([fleets.close(), postgres?.then((server) => server.close())]);
});

describe.concurrent('the row of the store, put back from a backup', () => {
  const way = async (isFrozen: boolean) =>
    fleets.with(async (fleet) => {
      const former = await fleet.start('first', fleet.sqlite('x'));
      const token = await fleet.token(former);
      const votes = await fleet.asked(token, async (votes) => {
        await signs(votes.first);
        const backup = await fleet.row();
        if (isFrozen) process.kill(former.pid, 'SIGSTOP');
        else await former.stop();
        await fleet.start('second', fleet.sqlite('y'));
        await signs(votes.second, 3);
        if (isFrozen) process.kill(former.pid, 'SIGCONT');
        await fleet.putRow(backup);
        if (!isFrozen) await fleet.start('first', fleet.sqlite('x'));
        await goesOn(votes);
      });
      expect(votes.pairs()).toEqual([]);
    });

  const former = [
    ['in a process that waited', true],
    ['after a restart of its signer', false],
  ] as const;
  it.each(someOf(former, 1))(
    'lets the former store go on by a jump only, %s',
    (_name, isFrozen) => expectRounds(() => way(isFrozen)),
    TEST_LIMIT_MS,
  );
});

/** Two starts, and a vote between them, fall into the bound of the end before them: five of these. */
const WITHIN_THE_BOUND = { SVC_SIGNER_STATE__REFRESH_INTERVAL_SECONDS: '6' };

describe.concurrent('the row of an end in order, put back at once with a copy of the store from that end', () => {
  it(
    'lets the copy go on by a jump only: an end is used once',
    () =>
      expectRounds(() =>
        fleets.with(async (fleet) => {
          const [original, copied] = [fleet.sqlite('x'), fleet.sqlite('copy')];
          const former = await fleet.start('first', original, WITHIN_THE_BOUND);
          const token = await fleet.token(former);
          const votes = await fleet.asked(token, async (votes) => {
            await signs(votes.first);
            await former.stop();
            const end = await fleet.row();
            cpSync(original.path, copied.path, { preserveTimestamps: true });
            await fleet.start('first', original, WITHIN_THE_BOUND);
            await signs(votes.first);
            await fleet.putRow(end);
            await fleet.start('second', copied, WITHIN_THE_BOUND);
            await goesOn(votes);
            await goesOn(votes);
          });
          expect(votes.pairs()).toEqual([]);
        }),
      ),
    TEST_LIMIT_MS,
  );
});

describe.concurrent('a store older than its fleet knows, put back while no signer runs', () => {
  it(
    'goes on by a jump only, also at once after an end in order',
    () =>
      expectRounds(() =>
        fleets.with(async (fleet) => {
          const [store, backup] = [fleet.sqlite('x'), fleet.sqlite('backup')];
          const former = await fleet.start('first', store, WITHIN_THE_BOUND);
          const token = await fleet.token(former);
          const votes = await fleet.asked(token, async (votes) => {
            await signs(votes.first);
            await former.stop();
            cpSync(store.path, backup.path, { preserveTimestamps: true });
            const later = await fleet.start('first', store, WITHIN_THE_BOUND);
            await signs(votes.first);
            await later.stop();
            await fleet.start('second', backup, WITHIN_THE_BOUND);
            await goesOn(votes);
          });
          expect(votes.pairs()).toEqual([]);
        }),
      ),
    TEST_LIMIT_MS,
  );
});

/** The time within which the next start goes on is five of these, and starts take long on a busy machine. */
const UNHURRIED = { SVC_SIGNER_STATE__REFRESH_INTERVAL_SECONDS: '120' };

describe.concurrent('a fleet that ended in order', () => {
  it('goes on at once over the same store, without a jump', async () => {
    await fleets.with(async (fleet) => {
      const before = await fleet.start('first', fleet.sqlite('x'), UNHURRIED);
      const token = await fleet.token(before);
      await before.stop();
      const next = await fleet.start('first', fleet.sqlite('x'), UNHURRIED);
      // A jump would refuse all of the past.
      expect((await signCall(next.url, testKey(0).publicKey, vote(10, rootOf(1)), { token })).status).toBe(200);
      expect((await call(next.metricsUrl)).text).not.toMatch(/^svc_slashing_jumps_total\{.*\} [1-9]/m);
    });
  });
});

describe.concurrent('two copies of one store, started at the same moment', () => {
  type CopyOf = (fleet: AskedFleet) => Promise<{ original: object; copy: () => Promise<object> }>;
  const way = async (copyOf: CopyOf) =>
    fleets.with(async (fleet) => {
      const { original, copy } = await copyOf(fleet);
      const one = await fleet.start('first', { ...original });
      const token = await fleet.token(one);
      const votes = await fleet.asked(token, async (votes) => {
        await signs(votes.first);
        await one.stop();
        const copied = await copy();
        await Promise.all([fleet.start('first', { ...original }), fleet.start('second', { ...copied })]);
        await goesOn(votes);
        await goesOn(votes);
      });
      expect(votes.pairs()).toEqual([]);
    });

  const stores: readonly (readonly [string, CopyOf])[] = [
    [
      'a file',
      async (fleet) => {
        const [original, copied] = [fleet.sqlite('x'), fleet.sqlite('copy')];
        return {
          original,
          async copy() {
            cpSync(original.path, copied.path, { preserveTimestamps: true });
            return copied;
          },
        };
      },
    ],
    [
      'a PostgreSQL database, by TEMPLATE',
      async () => {
        postgres ??= startPostgres();
        const server = await postgres;
        const database = await server.createDatabase();
        const at = (name: string) => ({ backend: 'postgres', url: server.url(name) });
        return {
          original: at(database),
          async copy() {
            const clone = `${database}_clone`;
            await server.query('postgres', `CREATE DATABASE ${clone} TEMPLATE ${database}`);
            return at(clone);
          },
        };
      },
    ],
  ];

  it.each(someOf(stores, 1))(
    'of %s: one of them signs',
    (_name, copyOf) => expectRounds(() => way(copyOf)),
    TEST_LIMIT_MS,
  );

  it(
    'of a file whose signer lives: the copy signs nothing, and the original goes on',
    () =>
      expectRounds(() =>
        fleets.with(async (fleet) => {
          const [original, copied] = [fleet.sqlite('x'), fleet.sqlite('copy')];
          const one = await fleet.start('first', original, WITHIN_THE_BOUND);
          const token = await fleet.token(one);
          const votes = await fleet.asked(token, async (votes) => {
            await signs(votes.first);
            process.kill(one.pid, 'SIGSTOP');
            for (const suffix of ['', '-wal']) cpSync(`${original.path}${suffix}`, `${copied.path}${suffix}`);
            process.kill(one.pid, 'SIGCONT');
            await fleet.start('second', copied, WITHIN_THE_BOUND);
            await signs(votes.first, 8);
          });
          expect(votes.pairs()).toEqual([]);
          expect([...votes.second]).toEqual([]);
        }),
      ),
    TEST_LIMIT_MS,
  );
});

describe.concurrent('without a state table, a file that is not the one that was closed in order', () => {
  const older = (path: string, to: string) => {
    for (const suffix of ['', '-wal', '-closed']) {
      rmSync(`${to}${suffix}`, { force: true });
      if (statSync(`${path}${suffix}`, { throwIfNoEntry: false }) !== undefined)
        cpSync(`${path}${suffix}`, `${to}${suffix}`, { preserveTimestamps: true });
    }
  };
  const remove = (path: string, ...suffixes: readonly string[]) => {
    for (const suffix of suffixes) rmSync(path + suffix, { force: true });
  };
  const ways: readonly (readonly [string, 'kill' | 'stop', (path: string, backup: string) => void])[] = [
    ['was killed', 'kill', () => undefined],
    ['killed, and database and log replaced', 'kill', (path, backup) => older(backup, path)],
    ['killed, and the database removed', 'kill', (path) => remove(path, '', '-wal', '-shm')],
    ['killed, and the log removed', 'kill', (path) => remove(path, '-wal', '-shm')],
    ['closed, and an older copy put back with its mark', 'stop', (path, backup) => older(backup, path)],
    [
      'closed, and written over with an older copy and its mark',
      'stop',
      (path, backup) => {
        for (const suffix of ['', '-closed']) writeFileSync(path + suffix, readFileSync(backup + suffix));
      },
    ],
    [
      'closed, and an older copy renamed into its place',
      'stop',
      (path, backup) => {
        cpSync(backup, `${path}.new`, { preserveTimestamps: true });
        renameSync(`${path}.new`, path);
      },
    ],
  ];

  it.each(someOf(ways, 2))(
    '%s: the next start jumps',
    (_name, end, replace) =>
      expectRounds(async () => {
        const deployment = deploy(1, CHAIN);
        const path = join(deployment.folder, 'slashing_protection.sqlite');
        const backup = join(deployment.folder, 'backup.sqlite');
        const ask = (signer: RunningSigner, epoch: number, head: string) =>
          signCall(signer.url, testKey(0).publicKey, vote(epoch, head));
        const before = await deployment.start();
        expect((await ask(before, presentEpoch(), rootOf(1))).status).toBe(200);
        await before.stop();
        older(path, backup);
        const signer = await deployment.start();
        // A restart in order costs nothing: the epoch after is signed at once.
        let epoch = 0;
        await vi.waitFor(async () => {
          epoch = presentEpoch();
          expect((await ask(signer, epoch, rootOf(1))).status).toBe(200);
        }, WAIT);
        expect(signer.output()).not.toContain('was not closed in order');
        await signer[end]();
        replace(path, backup);
        const next = await deployment.start();
        try {
          const rival = await ask(next, epoch, rootOf(2));
          expect(rival.status).toBe(412);
          expect((await call(next.metricsUrl)).text).toMatch(
            /^svc_slashing_jumps_total\{cause="(unclean_end|other_file)"\} 1$/m,
          );
          await vi.waitFor(async () => expect((await ask(next, presentEpoch(), rootOf(2))).status).toBe(200), WAIT);
        } finally {
          await next.stop();
          rmSync(deployment.folder, { recursive: true, force: true });
        }
      }),
    TEST_LIMIT_MS,
  );

  it('as it was written over while it was in use: no end in order is noted, and the next start jumps', async () => {
    const deployment = deploy(1, CHAIN);
    const path = join(deployment.folder, 'slashing_protection.sqlite');
    const signed = (signer: RunningSigner) =>
      vi.waitFor(async () => {
        const epoch = presentEpoch();
        expect((await signCall(signer.url, testKey(0).publicKey, vote(epoch, rootOf(1)))).status).toBe(200);
        return epoch;
      }, WAIT);
    const signer = await deployment.start();
    const first = await signed(signer);
    const older = ['', '-wal', '-shm'].map((suffix) => [suffix, readFileSync(path + suffix)] as const);
    await vi.waitFor(() => expect(presentEpoch()).toBeGreaterThan(first), WAIT);
    const second = await signed(signer);
    for (const [suffix, bytes] of older) writeFileSync(path + suffix, bytes);
    await signer.stop();
    expect(signer.output()).toContain('the slashing database lacks what this process recorded');
    const next = await deployment.start();
    const rival = await signCall(next.url, testKey(0).publicKey, vote(second, rootOf(2)));
    expect([rival.status, rival.json['reason']]).toEqual([412, expect.stringMatching(/_low_water_mark/)]);
    expect((await call(next.metricsUrl)).text).toMatch(/^svc_slashing_jumps_total\{cause="unclean_end"\} 1$/m);
    await next.stop();
    rmSync(deployment.folder, { recursive: true, force: true });
  });

  it('stops the start where the genesis time is not known, until it was raised by hand', async () => {
    const { genesis_time: _unknown, ...rest } = CHAIN.custom_network;
    const deployment = deploy(1, { ...CHAIN, custom_network: rest });
    const killed = await deployment.start();
    await killed.kill();
    await expect(deployment.start()).rejects.toThrow(/strongroom slashing jump/);
    const jump = [
      'slashing',
      'jump',
      '-c',
      join(deployment.folder, 'strongroom.yaml'),
      '--slot',
      '800',
      '--epoch',
      '100',
    ];
    expect((await runStrongroom(jump)).code).toBe(0);
    const next = await deployment.start();
    expect((await signCall(next.url, testKey(0).publicKey, vote(100, rootOf(1)))).status).toBe(412);
    expect((await signCall(next.url, testKey(0).publicKey, vote(101, rootOf(1)))).status).toBe(200);
    await next.stop();
    rmSync(deployment.folder, { recursive: true, force: true });
  });
});
