// The watcher against a table that a test plays: what it does with what it reads, and when it says that it has lost sight.

import { beforeEach, describe, expect, test } from 'vitest';
import type { SealOverride } from '../../enclave/chamber/state-rows.ts';
import type { WatchedRows } from '../../enclave/chamber/state-table.ts';
import { Watcher } from '../../enclave/chamber/watcher.ts';
import { recordingLog } from '../support/recording-log.ts';

const LATCH: SealOverride = { reason: 'drill', accessor: 'acc_1', sealedAt: '2026-01-02T03:04:05.000Z' };

let now: number;
let rows: WatchedRows;
let failure: Error | undefined;
let latches: SealOverride[];
let revisions: number[];
let refresh: () => Promise<void>;
let log: ReturnType<typeof recordingLog>;

beforeEach(() => {
  now = 1_000;
  rows = { sealOverride: undefined, generation: 1, authRevision: 7 };
  failure = undefined;
  latches = [];
  revisions = [];
  refresh = async () => undefined;
  log = recordingLog();
});

function open(intervalSeconds = 1): Watcher {
  return new Watcher(
    { intervalSeconds, generation: 1, authRevision: 7 },
    {
      table: {
        watch: async () => {
          if (failure !== undefined) throw failure;
          return rows;
        },
      },
      onLatch: (latch) => void latches.push(latch),
      onAuthRevision: async (revision) => {
        revisions.push(revision);
        await refresh();
      },
      clock: { now: () => now, monotonic: () => now },
      log,
    },
  );
}

describe('staleness', () => {
  test.each([
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

  test('ends by itself with the first read that succeeds, and begins when that read began', async () => {
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

  test('a read that began too long ago does not count as fresh', async () => {
    const watcher = open();
    rows = { ...rows, authRevision: 8 };
    refresh = async () => {
      now += 11_000;
    };
    await watcher.poll();
    expect(watcher.stale).toBe(true);
  });

  test('a process that was stopped is stale the moment it goes on', async () => {
    const watcher = open();
    await watcher.poll();
    now += 3_600_000;
    expect(watcher.stale).toBe(true);
  });
});

describe('the auth state', () => {
  test('is read again only when the revision moved', async () => {
    const watcher = open();
    await watcher.poll();
    expect(revisions).toEqual([]);
    rows = { ...rows, authRevision: 8 };
    await watcher.poll();
    await watcher.poll();
    expect(revisions).toEqual([8]);
  });

  test('that cannot be read is asked for again at the next poll, and leads to staleness', async () => {
    const watcher = open();
    rows = { ...rows, authRevision: 8 };
    refresh = async () => {
      throw new Error('no answer');
    };
    now += 11_000;
    await watcher.poll();
    expect(watcher.stale).toBe(true);
    refresh = async () => undefined;
    await watcher.poll();
    expect(watcher.stale).toBe(false);
    expect(revisions).toEqual([8, 8]);
  });

  test('whose head is gone is not taken for an empty one', async () => {
    const watcher = open();
    rows = { ...rows, authRevision: undefined };
    now += 11_000;
    await watcher.poll();
    expect(revisions).toEqual([]);
    expect(watcher.stale).toBe(true);
  });
});

describe('what it sees', () => {
  test('a latch is told once, and is the end of watching', async () => {
    const watcher = open();
    rows = { ...rows, sealOverride: LATCH, authRevision: 8 };
    await watcher.poll();
    await watcher.poll();
    expect(latches).toEqual([LATCH]);
    expect(revisions).toEqual([]);
  });

  test('another generation is told and changes nothing: the master key is the same', async () => {
    const watcher = open();
    rows = { ...rows, generation: 2 };
    await watcher.poll();
    await watcher.poll();
    expect(log.lines).toMatchObject([{ level: 'info', fields: { generation: 2, was: 1 } }]);
    expect(watcher.stale).toBe(false);
  });

  test('a MASTER_KEY row that vanished is an error in the log while there is time to restore it', async () => {
    const watcher = open();
    rows = { ...rows, generation: undefined };
    await watcher.poll();
    await watcher.poll();
    expect(log.lines).toMatchObject([{ level: 'error', message: expect.stringContaining('MASTER_KEY is gone') }]);
  });

  test('nothing any more after it was stopped', async () => {
    const watcher = open();
    watcher.stop();
    rows = { ...rows, sealOverride: LATCH };
    await watcher.poll();
    expect(latches).toEqual([]);
  });
});
