// The rules that keep a fleet on one slashing store, on a real table, with clocks that the test moves.

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDynamoDBClient, type DynamoDBClient } from '../../enclave/aws/dynamodb.ts';
import { bindingCodes, SLASHING_STORE } from '../../enclave/chamber/binding-row.ts';
import { bindingTable } from '../../enclave/chamber/binding-table.ts';
import { StoreBinding, type StoreBindingOptions } from '../../enclave/chamber/store-binding.ts';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { dynamoDBClientOptions } from '../../rehearsal/dynamodb.ts';
import { FAULTS, faultTimes, startFaultProxy } from '../support/fault-proxy.ts';
import { recordingLog } from '../support/recording-log.ts';

const BOUND_MS = 10_000;
/** What a signer waits before it takes over: the bound and a fifth. */
const WAIT_MS = 12_000;
const KEY = randomBytes(32);

let world: CustodyWorld;
let client: DynamoDBClient;
beforeAll(async () => {
  world = await startCustody();
  client = createDynamoDBClient(dynamoDBClientOptions(world.dynamodb.endpoint));
});
afterAll(async () => {
  client.destroy();
  await world.close();
});

/** What the binding knows of a store: its identity, which jumps and signers count up. */
function storeRecord() {
  const record = { id: randomBytes(16).toString('hex'), revision: 0, jumps: 0, canJump: true };
  return {
    record,
    backend: {
      name: 'sqlite' as const,
      identity: async () => ({ id: record.id, revision: record.revision, floor: null }),
      advance: async () => ++record.revision,
    },
    jump: async (atLeast: number) => {
      if (!record.canJump) throw new Error('no clock can be believed');
      record.jumps += 1;
      record.revision = Math.max(record.revision + 1, atLeast);
    },
  };
}
type Store = ReturnType<typeof storeRecord>;

/** Clocks of one machine. */
function clocks() {
  let [monotonic, wall] = [1_000_000, Date.parse('2026-11-22T10:00:00Z')];
  return {
    clock: { monotonic: () => monotonic, now: () => wall },
    pass(milliseconds: number) {
      monotonic += milliseconds;
      wall += milliseconds;
    },
    suspend(milliseconds: number) {
      wall += milliseconds;
    },
  };
}

function signer(
  table: string,
  store: Store,
  time: ReturnType<typeof clocks>,
  options: Partial<StoreBindingOptions> = {},
  through = client,
) {
  const log = recordingLog();
  const binding = new StoreBinding(
    { boundMs: BOUND_MS, isFreshTable: false, replica: randomBytes(4).toString('hex'), seat: '', ...options },
    {
      table: bindingTable(through, table, bindingCodes(Buffer.from(KEY))),
      backend: store.backend,
      jump: store.jump,
      clock: time.clock,
      log,
    },
  );
  return { binding, lines: log.lines };
}

async function beatFor(time: ReturnType<typeof clocks>, milliseconds: number, ...bindings: readonly StoreBinding[]) {
  for (let passed = 0; passed < milliseconds; passed += 2_000) {
    time.pass(2_000);
    for (const binding of bindings) await binding.beat();
  }
}

describe('a fleet and its store', () => {
  it('the start that made the table binds its store at once, and whoever has that store signs at once', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true });
    await one.binding.beat();
    expect(one.binding.hindrance).toBeUndefined();
    const other = signer(table, store, time);
    await other.binding.beat();
    expect(other.binding.hindrance).toBeUndefined();
    expect(store.record.jumps).toBe(0);
  });

  it('a signer with another store signs nothing while a replica of the bound one is alive', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true, replica: 'the first' });
    await one.binding.beat();
    const stranger = signer(table, storeRecord(), time);
    await stranger.binding.beat();
    for (let round = 0; round < 20; round++) {
      await beatFor(time, 2_000, one.binding, stranger.binding);
      expect(one.binding.hindrance).toBeUndefined();
      expect(stranger.binding.hindrance).toBe('slashing_unbound');
    }
    const [line] = stranger.lines.filter(({ message }) => message.startsWith('NOTHING IS SIGNED'));
    expect(line?.fields).toMatchObject({ other_replica: 'the first', other_store: store.record.id });
  });

  it('takes over with a jump once nobody can have the right to sign any more, and not before', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const gone = signer(table, store, time, { isFreshTable: true });
    await gone.binding.beat();
    const mine = storeRecord();
    const heir = signer(table, mine, time);
    await heir.binding.beat();
    await beatFor(time, WAIT_MS - 2_000, heir.binding);
    expect(heir.binding.hindrance).toBe('slashing_unbound');
    expect(gone.binding.hindrance).toBe('slashing_unbound');
    await beatFor(time, 2_000, heir.binding);
    expect(heir.binding.hindrance).toBeUndefined();
    expect(mine.record.jumps).toBe(1);
  });

  it('whoever was taken over signs nothing from that moment, and waits for its turn', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const frozen = signer(table, store, time, { isFreshTable: true });
    await frozen.binding.beat();
    const heir = signer(table, storeRecord(), time);
    await heir.binding.beat();
    await beatFor(time, WAIT_MS, heir.binding);
    expect(heir.binding.hindrance).toBeUndefined();
    expect(frozen.binding.hindrance).toBe('slashing_unbound');
    await frozen.binding.beat();
    await frozen.binding.beat();
    expect(frozen.binding.hindrance).toBe('slashing_unbound');
    expect(frozen.lines.map(({ message }) => message).join('\n')).toContain('lost the right to sign');
  });

  it('never two at once, however beats, freezes and lost answers fall', async () => {
    const random = seeded(20_261_122);
    for (let run = 0; run < 20; run++) {
      const [table, time] = [await world.createTable(), clocks()];
      const signers = [storeRecord(), storeRecord(), storeRecord()].map((store, index) =>
        signer(table, store, time, { isFreshTable: index === 0 }),
      );
      for (let step = 0; step < 60; step++) {
        time.pass(random() * 3_000);
        const alive = signers.filter(({ binding }) => binding.hindrance === undefined);
        expect(alive.length, `run ${run}, step ${step}`).toBeLessThanOrEqual(1);
        // Some sleep for a while: bursts of steps in which one of them does not beat.
        for (const [index, { binding }] of signers.entries()) {
          if ((Math.floor(step / 10) + run) % 4 !== index && random() < 0.8) await binding.beat();
        }
      }
    }
  });
});

describe('the right to sign', () => {
  it('ends when the table cannot be reached for as long as the bound, by the clock at the signature', async () => {
    const proxy = await startFaultProxy(world.dynamodb.endpoint);
    const through = createDynamoDBClient(dynamoDBClientOptions(proxy.endpoint));
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true }, through);
    await one.binding.beat();
    proxy.setRule(() => FAULTS.accessDenied);
    time.pass(BOUND_MS - 1);
    await one.binding.beat();
    expect(one.binding.hindrance).toBeUndefined();
    time.pass(1);
    expect(one.binding.hindrance).toBe('slashing_unbound');
    proxy.setRule(() => undefined);
    await one.binding.beat();
    expect(one.binding.hindrance).toBeUndefined();
    through.destroy();
    await proxy.close();
  });

  it('is had when the answer to the write that took it was lost', async () => {
    const proxy = await startFaultProxy(world.dynamodb.endpoint);
    const through = createDynamoDBClient(dynamoDBClientOptions(proxy.endpoint));
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    proxy.setRule(faultTimes(1, FAULTS.dropAnswer, 'PutItem'));
    const one = signer(table, store, time, { isFreshTable: true }, through);
    await one.binding.beat();
    expect(one.binding.hindrance).toBeUndefined();
    through.destroy();
    await proxy.close();
  });

  it('ends in a machine that was suspended, whose monotonic clock stood still', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true });
    await one.binding.beat();
    time.suspend(BOUND_MS);
    expect(one.binding.hindrance).toBe('slashing_unbound');
  });
});

describe('a row that says nothing good', () => {
  it('is waited for and taken over with a jump when it is gone from a table that was in use', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time);
    await one.binding.beat();
    expect(one.binding.hindrance).toBe('slashing_unbound');
    await beatFor(time, WAIT_MS, one.binding);
    expect(one.binding.hindrance).toBeUndefined();
    expect(store.record.jumps).toBe(1);
  });

  it('made by somebody without the master key is a row of another store', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    await world.putRow(table, {
      pk: { S: SLASHING_STORE },
      store_id: { S: store.record.id },
      seat: { S: '' },
      binding: { N: '1' },
      mac: { B: randomBytes(32) },
      revision: { N: '0' },
      heartbeat: { N: '1' },
    });
    const one = signer(table, store, time);
    await one.binding.beat();
    expect(one.binding.hindrance).toBe('slashing_unbound');
    await beatFor(time, WAIT_MS, one.binding);
    expect(one.binding.hindrance).toBeUndefined();
    expect(store.record.jumps).toBe(1);
  });

  it('keeps everybody from signing when no clock can be believed', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    store.record.canJump = false;
    const one = signer(table, store, time);
    await beatFor(time, 3 * WAIT_MS, one.binding);
    expect(one.binding.hindrance).toBe('slashing_unbound');
  });
});

describe('a copy of the store', () => {
  it('that is older than what was noted signs nothing until it is raised to the present', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true });
    await one.binding.beat();
    await beatFor(time, 30_000, one.binding);
    expect(store.record.revision).toBeGreaterThan(1);
    store.record.revision -= 1;
    await one.binding.beat();
    expect(one.binding.hindrance).toBe('slashing_unbound');
    await beatFor(time, WAIT_MS + 2_000, one.binding);
    expect(one.binding.hindrance).toBeUndefined();
    expect(store.record.jumps).toBe(1);
  });

  it('beside the original, which lives on: only one of them signs', async () => {
    const [table, original, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, original, time, { isFreshTable: true, seat: 'file 1' });
    await one.binding.beat();
    await beatFor(time, 30_000, one.binding);
    const copy = storeRecord();
    Object.assign(copy.record, original.record);
    const other = signer(table, copy, time, { seat: 'file 2' });
    for (let round = 0; round < 20; round++) {
      await beatFor(time, 2_000, one.binding, other.binding);
      expect(other.binding.hindrance).toBe('slashing_unbound');
      expect(one.binding.hindrance).toBeUndefined();
    }
  });
});

/** A small generator of its own, so that a failing run can be run again (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
