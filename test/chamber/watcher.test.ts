// The watcher against a table that a test plays: what it does with what it reads, and when it says that it has lost
// sight.

import { beforeEach, describe, expect, it } from 'vitest';
import type { Latch } from '../../signer/chamber/state-rows.ts';
import type { WatchedRows } from '../../signer/chamber/state-table.ts';
import { type WatchedHead, Watcher } from '../../signer/chamber/watcher.ts';
import { recordingLog } from '../support/recording-log.ts';

const LATCH: Latch = { reason: 'drill', accessor: 'acc_1', sealedAt: '2026-01-02T03:04:05.000Z' };

let now: number;
let rows: WatchedRows;
let failure: Error | undefined;
let latches: Latch[];
let held: WatchedHead;
let refreshes: number;
let refresh: () => Promise<void>;
let log: ReturnType<typeof recordingLog>;

beforeEach(() => {
  now = 1_000;
  rows = { latch: undefined, generation: 1, authHead: headOf(7) };
  failure = undefined;
  latches = [];
  held = headOf(7);
  refreshes = 0;
  refresh = install;
  log = recordingLog();
});

function headOf(revision: number, code = revision): WatchedHead {
  return { revision, mac: Buffer.alloc(32, code) };
}

/** The table moves: another replica committed, or somebody restored it. */
function tableAt(authHead: WatchedHead | undefined): void {
  rows = { latch: undefined, generation: 1, authHead };
}

/** As the authenticator does: what is in the table becomes effective, unless it went back. */
async function install(): Promise<void> {
  const authHead = 'authHead' in rows ? rows.authHead : undefined;
  if (authHead === undefined || authHead.revision <= held.revision) throw new Error('rolled back');
  held = authHead;
}

function open(intervalSeconds = 1): Watcher {
  return openSince(now, intervalSeconds);
}

function openSince(readAt: number, intervalSeconds = 1): Watcher {
  return new Watcher(
    { intervalSeconds, generation: 1, readAt },
    {
      table: {
        watch: async () => {
          if (failure !== undefined) throw failure;
          return rows;
        },
      },
      onLatch: (latch) => void latches.push(latch),
      auth: {
        head: () => held,
        refresh: async () => {
          refreshes += 1;
          await refresh();
        },
      },
      clock: { now: () => now, monotonic: () => now },
      log,
    },
  );
}

describe('staleness', () => {
  it.each([
    [1, 10],
    [2, 10],
    [3, 15],
    [60, 300],
  ])('with an interval of %d s the state is stale after %d s without a read', (intervalSeconds, boundSeconds) => {
    const watcher = open(intervalSeconds);
    now += boundSeconds * 1000;
    expect(watcher.stale).toBe(false);
    now += 1;
    expect(watcher.stale).toBe(true);
  });

  it('ends by itself with the first read that succeeds, and begins when that read began', async () => {
    const watcher = open();
    failure = new Error('no answer');
    now += 60_000;
    await watcher.poll();
    expect(watcher.stale).toBe(true);
    failure = undefined;
    await watcher.poll();
    expect(watcher.stale).toBe(false);
    expect(watcher.ageSeconds()).toBe(0);
    expect(log.lines.map(({ message }) => message)).toContain('the state table is in sight again');
  });

  it('a read that began too long ago does not count as fresh', async () => {
    const watcher = open();
    tableAt(headOf(8));
    refresh = async () => {
      now += 11_000;
      await install();
    };
    await watcher.poll();
    expect(watcher.stale).toBe(true);
  });

  it('a process that was stopped is stale the moment it goes on', async () => {
    const watcher = open();
    await watcher.poll();
    now += 3_600_000;
    expect(watcher.stale).toBe(true);
  });
});

it('a replica that read the table long ago is stale until it has looked again', async () => {
  const readAt = now;
  now += 10_001;
  const watcher = open();
  expect(watcher.stale).toBe(false);
  const late = openSince(readAt);
  expect(late.stale).toBe(true);
  await late.start();
  late.stop();
  expect(late.stale).toBe(false);
});

describe('the auth state', () => {
  it('is read again only when the table says something else than what is held', async () => {
    const watcher = open();
    await watcher.poll();
    expect(refreshes).toBe(0);
    tableAt(headOf(8));
    await watcher.poll();
    await watcher.poll();
    expect([refreshes, held.revision]).toEqual([1, 8]);
  });

  it('is not read again for a commit of this replica', async () => {
    const watcher = open();
    held = headOf(8);
    tableAt(headOf(8));
    await watcher.poll();
    expect(refreshes).toBe(0);
  });

  it('that went back between two looks is noticed, though the table looks as it did the last time', async () => {
    const watcher = open();
    await watcher.poll();
    // a commit of this replica, which was answered, and then the table is restored to what it was before
    held = headOf(8);
    now += 11_000;
    await watcher.poll();
    expect([refreshes, held.revision, watcher.stale]).toEqual([1, 8, true]);
    await watcher.poll();
    expect([refreshes, watcher.stale]).toEqual([2, true]);
  });

  it('that took another way to the same revision is noticed', async () => {
    const watcher = open();
    tableAt(headOf(7, 99));
    now += 11_000;
    await watcher.poll();
    expect([refreshes, watcher.stale]).toEqual([1, true]);
  });

  it('that cannot be read is asked for again at the next poll, and leads to staleness', async () => {
    const watcher = open();
    tableAt(headOf(8));
    refresh = async () => {
      throw new Error('no answer');
    };
    now += 11_000;
    await watcher.poll();
    expect(watcher.stale).toBe(true);
    refresh = install;
    await watcher.poll();
    expect(watcher.stale).toBe(false);
    expect(refreshes).toBe(2);
  });

  it('whose head is gone is not taken for an empty one', async () => {
    const watcher = open();
    tableAt(undefined);
    now += 11_000;
    await watcher.poll();
    expect(refreshes).toBe(0);
    expect(watcher.stale).toBe(true);
  });

  it('that takes its time is asked for once, and keeps no latch from being seen', async () => {
    const watcher = open();
    tableAt(headOf(8));
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    refresh = () => released.then(install);
    const first = watcher.poll();
    const second = watcher.poll();
    rows = { latch: LATCH };
    await watcher.look();
    expect([refreshes, latches]).toEqual([1, [LATCH]]);
    release();
    await Promise.all([first, second]);
  });
});

describe('what it sees', () => {
  it('a latch is told once, and is the end of watching', async () => {
    const watcher = open();
    rows = { latch: LATCH };
    await watcher.poll();
    await watcher.poll();
    expect(latches).toEqual([LATCH]);
    expect(refreshes).toBe(0);
  });

  it('another generation is told and changes nothing: the master key is the same', async () => {
    const watcher = open();
    rows = { latch: undefined, authHead: headOf(7), generation: 2 };
    await watcher.poll();
    await watcher.poll();
    expect(log.lines).toMatchObject([{ level: 'info', fields: { generation: 2, was: 1 } }]);
    expect(watcher.stale).toBe(false);
  });

  it('a MASTER_KEY row that vanished is an error in the log while there is time to restore it', async () => {
    const watcher = open();
    rows = { latch: undefined, authHead: headOf(7), generation: undefined };
    await watcher.poll();
    await watcher.poll();
    expect(log.lines).toMatchObject([{ level: 'error', message: expect.stringContaining('MASTER_KEY is gone') }]);
  });

  it('nothing any more after it was stopped', async () => {
    const watcher = open();
    watcher.stop();
    rows = { latch: LATCH };
    await watcher.poll();
    expect(latches).toEqual([]);
  });
});
