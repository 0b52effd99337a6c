// The rules that keep a fleet on one slashing store, on a real table, with clocks that the test moves.

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { dynamoDBClientOptions } from '../../rehearsal/dynamodb.ts';
import { noteRaisedByHand } from '../../service/commands/slashing-notes.ts';
import { createDynamoDBClient, type DynamoDBClient, GetItemCommand, type Item } from '../../signer/aws/dynamodb.ts';
import { bindingCodes, SLASHING_STORE, SLASHING_STORE_END } from '../../signer/chamber/binding-row.ts';
import { type BindingTable, bindingTable } from '../../signer/chamber/binding-table.ts';
import { StoreBinding, type StoreBindingOptions } from '../../signer/chamber/store-binding.ts';
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

/** What the binding knows of a store: its identity, whose incarnation signers renew. */
function storeRecord() {
  const record = { id: randomBytes(16).toString('hex'), incarnation: '', jumps: 0, canJump: true };
  return {
    record,
    backend: {
      name: 'sqlite' as const,
      identity: async () => ({ id: record.id, incarnation: record.incarnation, floor: null }),
      incarnate: async (expected: string, next: string) => {
        if (record.incarnation !== expected) return false;
        record.incarnation = next;
        return true;
      },
    },
    jump: async () => {
      if (!record.canJump) throw new Error('no clock can be believed');
      record.jumps += 1;
    },
  };
}
type Store = ReturnType<typeof storeRecord>;

/** Byte for byte, as a cloned volume or a restored snapshot is. */
function copyOf(store: Store): Store {
  const copy = storeRecord();
  Object.assign(copy.record, store.record, { jumps: 0 });
  return copy;
}

function clocks() {
  const began = Date.parse('2026-11-22T10:00:00Z');
  let [monotonic, wall, world] = [1_000_000, began, began];
  return {
    clock: { monotonic: () => monotonic, now: () => wall },
    pass(milliseconds: number) {
      monotonic += milliseconds;
      wall += milliseconds;
      world += milliseconds;
    },
    /** This machine's, while the world's goes on. */
    suspend(milliseconds: number) {
      wall += milliseconds;
      world += milliseconds;
    },
    /** A step of this machine's wall clock. */
    step(milliseconds: number) {
      wall += milliseconds;
    },
    world: () => world,
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
    { boundMs: BOUND_MS, isFreshTable: false, replica: randomBytes(4).toString('hex'), ...options },
    {
      table: tableAt(table, time, through),
      backend: store.backend,
      jump: store.jump,
      clock: time.clock,
      log,
    },
  );
  return { binding, lines: log.lines };
}

/** The table, whose service has the clock of the world. */
function tableAt(table: string, time: Pick<ReturnType<typeof clocks>, 'world'>, through = client): BindingTable {
  const called = bindingTable(through, table, bindingCodes(Buffer.from(KEY)));
  return { ...called, read: async () => ({ ...(await called.read()), tableTime: time.world() }) };
}

async function beatFor(time: ReturnType<typeof clocks>, milliseconds: number, ...bindings: readonly StoreBinding[]) {
  for (let passed = 0; passed < milliseconds; passed += 2_000) {
    time.pass(2_000);
    for (const binding of bindings) await binding.beat();
  }
}

/** The joiner writes into the store, a signer that is bound confirms it, the joiner sees that. */
async function join(bound: { readonly binding: StoreBinding }, joiner: { readonly binding: StoreBinding }) {
  await joiner.binding.beat();
  await bound.binding.beat();
  await joiner.binding.beat();
}

describe('a fleet and its store', () => {
  it('the start that made the table binds its store at once, and a signer with that store signs as soon as it is confirmed', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true });
    await one.binding.beat();
    expect(one.binding.hindrance).toBeUndefined();
    const other = signer(table, store, time);
    await join(one, other);
    expect(other.binding.hindrance).toBeUndefined();
    expect(one.binding.hindrance).toBeUndefined();
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
  it('that is older, put back under a running signer, signs nothing until it is raised to the present', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true });
    await one.binding.beat();
    const older = store.record.incarnation;
    await beatFor(time, 12_000, one.binding);
    store.record.incarnation = older;
    await one.binding.beat();
    expect(one.binding.hindrance).toBe('slashing_unbound');
    await beatFor(time, WAIT_MS + 4_000, one.binding);
    expect(one.binding.hindrance).toBeUndefined();
    expect(store.record.jumps).toBe(1);
  });

  it('that is older, put back while no signer runs, goes on only by a jump, also at once after an end in order', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true });
    await one.binding.beat();
    const older = store.record.incarnation;
    await beatFor(time, 12_000, one.binding);
    await one.binding.end();
    expect(store.record.incarnation).not.toEqual(older);
    store.record.incarnation = older;
    const next = signer(table, store, time);
    await next.binding.beat();
    expect(next.binding.hindrance).toBe('slashing_unbound');
    expect(store.record.jumps).toBe(0);
    await beatFor(time, WAIT_MS, next.binding);
    expect(next.binding.hindrance).toBeUndefined();
    expect(store.record.jumps).toBe(1);
  });

  it('is never confirmed while a signer of the original lives, and the original goes on', async () => {
    const [table, original, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, original, time, { isFreshTable: true });
    await one.binding.beat();
    await beatFor(time, 6_000, one.binding);
    const other = signer(table, copyOf(original), time);
    for (let round = 0; round < 30; round++) {
      await beatFor(time, 2_000, one.binding, other.binding);
      expect(other.binding.hindrance).toBe('slashing_unbound');
      expect(one.binding.hindrance).toBeUndefined();
    }
  });

  it('of any number of copies after an end in order, exactly one goes on, without a jump', async () => {
    for (let run = 0; run < 10; run++) {
      const [table, original, time] = [await world.createTable(), storeRecord(), clocks()];
      const one = signer(table, original, time, { isFreshTable: true });
      await one.binding.beat();
      await one.binding.end();
      const stores = [original, copyOf(original), copyOf(original)];
      const signers = stores.map((store) => signer(table, store, time));
      await Promise.all(signers.map(({ binding }) => binding.beat()));
      for (let beat = 0; beat < 10; beat++) {
        await beatFor(time, 2_000, ...signers.map(({ binding }) => binding));
        expect(signers.filter(({ binding }) => binding.hindrance === undefined)).toHaveLength(1);
      }
      expect(stores.map(({ record }) => record.jumps)).toEqual([0, 0, 0]);
    }
  });

  it('two signers that ran over one store, of which one gets a copy: at most one signs from the next renewal on', async () => {
    const [table, original, time] = [await world.createTable(), storeRecord(), clocks()];
    // The second signer's way leads to a copy later, as a name or a proxy may.
    let led = original;
    const first = signer(table, original, time, { isFreshTable: true });
    const second = signer(table, { ...original, backend: viewOf(() => led) }, time);
    await first.binding.beat();
    await join(first, second);
    led = copyOf(original);
    await beatFor(time, 12_000, first.binding, second.binding);
    const bound = [first, second].filter(({ binding }) => binding.hindrance === undefined);
    expect(bound.length).toBeLessThanOrEqual(1);
  });
});

function viewOf(store: () => Store): Store['backend'] {
  return {
    name: 'sqlite',
    identity: () => store().backend.identity(),
    incarnate: (expected, next) => store().backend.incarnate(expected, next),
  };
}

describe('an end', () => {
  it('in order lets the same store go on at once; each signer of a fleet leaves, and the last one closes', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true });
    const other = signer(table, store, time);
    await one.binding.beat();
    await join(one, other);
    await one.binding.end();
    expect(one.binding.hindrance).toBe('slashing_unbound');
    await other.binding.beat();
    expect(other.binding.hindrance).toBeUndefined();
    await other.binding.end();
    const next = signer(table, store, time);
    await next.binding.beat();
    expect(next.binding.hindrance).toBeUndefined();
    expect(store.record.jumps).toBe(0);
  });

  it('of two at the same moment is in order, too', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true });
    const other = signer(table, store, time);
    await one.binding.beat();
    await join(one, other);
    await Promise.all([one.binding.end(), other.binding.end()]);
    const next = signer(table, store, time);
    await next.binding.beat();
    expect(next.binding.hindrance).toBeUndefined();
  });

  it('in order that lies further back than another signer would have waited costs a wait and a jump', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true });
    await one.binding.beat();
    await one.binding.end();
    time.pass(BOUND_MS);
    const next = signer(table, store, time);
    for (let looks = 0; looks < 15; looks++) await next.binding.beat(); // as many as the start waits for
    expect(next.binding.hindrance).toBe('slashing_unbound');
    const said = () => next.lines.filter(({ message }) => message.includes('costs a validator one vote, two at most'));
    expect(said()[0]?.message).toMatch(/^nothing is signed yet: .* ended longer ago/);
    expect(said()[0]?.fields).toMatchObject({ seconds: WAIT_MS / 1000 });
    await beatFor(time, WAIT_MS, next.binding);
    expect(next.binding.hindrance).toBeUndefined();
    expect(store.record.jumps).toBe(1);
    expect(said()).toHaveLength(2);
  });

  it('by kill -9 costs a wait and a jump, also when another signer had left in order before', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true });
    const killed = signer(table, store, time);
    await one.binding.beat();
    await join(one, killed);
    killed.binding.stop();
    await one.binding.end();
    const next = signer(table, store, time);
    await beatFor(time, WAIT_MS - 2_000, next.binding);
    expect(next.binding.hindrance).toBe('slashing_unbound');
    await beatFor(time, 4_000, next.binding);
    expect(next.binding.hindrance).toBeUndefined();
    expect(store.record.jumps).toBe(1);
  });

  it('by kill -9 beside a signer that lives costs nothing: it confirms the next start', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true });
    const killed = signer(table, store, time);
    await one.binding.beat();
    await join(one, killed);
    killed.binding.stop();
    const next = signer(table, store, time);
    await join(one, next);
    expect(next.binding.hindrance).toBeUndefined();
    expect(store.record.jumps).toBe(0);
  });

  it('on a network without a genesis time goes on after a jump by hand, over the store that was used last', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    store.record.canJump = false;
    const one = signer(table, store, time, { isFreshTable: true });
    await one.binding.beat();
    one.binding.stop();
    const refused = signer(table, store, time);
    await beatFor(time, 2 * WAIT_MS, refused.binding);
    expect(refused.binding.hindrance).toBe('slashing_unbound');
    refused.binding.stop();
    await noteRaisedByHand(store.backend);
    const stranger = storeRecord();
    stranger.record.canJump = false;
    await noteRaisedByHand(stranger.backend);
    const [other, next] = [signer(table, stranger, time), signer(table, store, time)];
    await beatFor(time, 2 * WAIT_MS, other.binding, next.binding);
    expect(other.binding.hindrance).toBe('slashing_unbound');
    expect(next.binding.hindrance).toBeUndefined();
  });
});

describe('a row that was put back', () => {
  it.each(['in use', 'closed'])('as the former store left it %s lets that store go on only by a jump', async (left) => {
    const [table, former, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, former, time, { isFreshTable: true });
    await one.binding.beat();
    const used = await rowOf(table);
    await one.binding.end();
    const older = left === 'closed' ? await rowOf(table) : used;
    const heir = signer(table, storeRecord(), time);
    await beatFor(time, WAIT_MS + 2_000, heir.binding);
    expect(heir.binding.hindrance).toBeUndefined();
    const again = signer(table, former, time);
    await beatFor(time, 2_000, heir.binding, again.binding);
    await world.putRow(table, older);
    for (let beat = 0; beat < 12; beat++) {
      await beatFor(time, 2_000, heir.binding, again.binding);
      const bound = [heir, again].filter(({ binding }) => binding.hindrance === undefined);
      expect(bound.length).toBeLessThanOrEqual(1);
      if (bound[0] === again) expect(former.record.jumps).toBe(1);
    }
    expect(heir.lines.map(({ message }) => message).join('\n')).toContain('lost the right to sign');
  });

  it('as it was before a freeze does not renew the right of the signer that wakes', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const frozen = signer(table, store, time, { isFreshTable: true });
    await frozen.binding.beat();
    const last = await rowOf(table);
    const heir = signer(table, storeRecord(), time);
    await beatFor(time, WAIT_MS + 2_000, heir.binding);
    expect(heir.binding.hindrance).toBeUndefined();
    await world.putRow(table, last);
    await frozen.binding.beat();
    expect(frozen.binding.hindrance).toBe('slashing_unbound');
    await beatFor(time, WAIT_MS + 4_000, frozen.binding);
    expect(frozen.binding.hindrance).toBeUndefined();
    expect(store.record.jumps).toBe(1);
  });

  it('for good: a process that saw a later binding waits and jumps, whatever the row says', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const frozen = signer(table, store, time, { isFreshTable: true });
    await frozen.binding.beat();
    const older = await rowOf(table);
    const heir = signer(table, storeRecord(), time);
    await beatFor(time, WAIT_MS + 2_000, heir.binding);
    await frozen.binding.beat();
    await frozen.binding.beat();
    heir.binding.stop();
    await world.putRow(table, older);
    await beatFor(time, WAIT_MS - 2_000, frozen.binding);
    expect(frozen.binding.hindrance).toBe('slashing_unbound');
    await beatFor(time, 6_000, frozen.binding);
    expect(frozen.binding.hindrance).toBeUndefined();
    expect(store.record.jumps).toBe(1);
  });
});

/** A signer ended in order, and another went on from it: the row and a copy of the store as of the end. */
async function endUsed() {
  const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
  const one = signer(table, store, time, { isFreshTable: true });
  await one.binding.beat();
  await one.binding.end();
  const [end, copied] = [await rowOf(table), copyOf(store)];
  const next = signer(table, store, time);
  await next.binding.beat();
  return { table, time, end, copied, next };
}

describe('an end in order is used once: the row of it, put back at once, lets no copy of the store from it join', () => {
  it.each(['lives', 'was killed', 'ended in order, too'])('while the signer that went on from it %s', async (left) => {
    const { table, time, end, copied, next } = await endUsed();
    expect(next.binding.hindrance).toBeUndefined();
    if (left === 'ended in order, too') await next.binding.end();
    await world.putRow(table, end);
    time.pass(1_000);
    const late = signer(table, copied, time);
    await late.binding.beat();
    expect(late.binding.hindrance).toBe('slashing_unbound');
    for (let beat = 0; beat < 12; beat++) {
      await beatFor(time, 2_000, ...(left === 'lives' ? [next.binding] : []), late.binding);
      const bound = [next, late].filter(({ binding }) => binding.hindrance === undefined);
      expect(bound.length).toBeLessThanOrEqual(1);
      if (bound[0] === late) expect(copied.record.jumps).toBe(1);
    }
  });

  it('and a signer that made the table goes on at once for a moment only', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true });
    const heir = signer(table, storeRecord(), time);
    await heir.binding.beat();
    await beatFor(time, WAIT_MS, heir.binding);
    expect(heir.binding.hindrance).toBeUndefined();
    await world.deleteRow(table, SLASHING_STORE);
    await one.binding.beat();
    expect(one.binding.hindrance).toBe('slashing_unbound');
  });
});

describe('what nothing notices (docs/security.md)', () => {
  it('is the row of an end in order, put back at once without the note that it was used', async () => {
    const { table, time, end, copied, next } = await endUsed();
    await world.putRow(table, end);
    await world.deleteRow(table, SLASHING_STORE_END);
    const late = signer(table, copied, time);
    await late.binding.beat();
    expect([next, late].map(({ binding }) => binding.hindrance)).toEqual([undefined, undefined]);
  });

  it('is a row that is put back before every look: a second signer takes over, until the first one beats', async () => {
    const [table, time] = [await world.createTable(), clocks()];
    const holder = signer(table, storeRecord(), time, { isFreshTable: true });
    await holder.binding.beat();
    const older = await rowOf(table);
    const heir = signer(table, storeRecord(), time);
    for (let passed = 0; passed <= WAIT_MS; passed += 2_000) {
      await holder.binding.beat();
      await world.putRow(table, older);
      await heir.binding.beat();
      time.pass(2_000);
    }
    expect([holder, heir].map(({ binding }) => binding.hindrance)).toEqual([undefined, undefined]);
    await holder.binding.beat();
    expect(holder.binding.hindrance).toBe('slashing_unbound');
    expect(heir.binding.hindrance).toBeUndefined();
  });

  it('is a copy of the whole state table: the signers of each copy have a store of their own', async () => {
    const [table, copy, store, time] = [await world.createTable(), await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true });
    await one.binding.beat();
    await world.putRow(copy, await rowOf(table));
    const other = signer(copy, copyOf(store), time);
    await beatFor(time, WAIT_MS + 2_000, one.binding, other.binding);
    expect([one, other].map(({ binding }) => binding.hindrance)).toEqual([undefined, undefined]);
  });
});

describe('the clock', () => {
  it('of a candidate that is behind the table, or the last signer, keeps it from taking over, and it says so', async () => {
    const [table, time] = [await world.createTable(), clocks()];
    const one = signer(table, storeRecord(), time, { isFreshTable: true });
    await one.binding.beat();
    const [mine, late] = [storeRecord(), clocks()];
    late.step(-60_000);
    const heir = signer(table, mine, late);
    await beatFor(late, 3 * WAIT_MS, heir.binding);
    expect(heir.binding.hindrance).toBe('slashing_unbound');
    expect(heir.lines.map(({ message }) => message).join('\n')).toContain('is behind that of the state table');
    late.step(60_000);
    await heir.binding.beat();
    expect(heir.binding.hindrance).toBeUndefined();
    expect(mine.record.jumps).toBe(1);
  });

  it('that steps against the other one ends the right until the next beat', async () => {
    const [table, store, time] = [await world.createTable(), storeRecord(), clocks()];
    const one = signer(table, store, time, { isFreshTable: true });
    await one.binding.beat();
    time.step(-3_000);
    expect(one.binding.hindrance).toBe('slashing_unbound');
    await one.binding.beat();
    expect(one.binding.hindrance).toBeUndefined();
  });
});

async function rowOf(table: string): Promise<Item> {
  const get = new GetItemCommand({ TableName: table, Key: { pk: { S: SLASHING_STORE } }, ConsistentRead: true });
  const { Item: item } = await client.send(get);
  if (item === undefined) throw new Error('the fleet is not bound');
  return item;
}

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
