// Tenures in a DynamoDB table: the number stands in both items of a key, under their codes, and no write of a signer
// passes an ended one, whatever the signer remembers and however it writes.

import { describe, expect, it } from 'vitest';
import { decodeHex, encodeHex } from '../../../common/formats/hex.ts';
import type { Item } from '../../../signer/aws/dynamodb.ts';
import { markPartition } from '../../../signer/slashing/dynamodb/tables/items.ts';
import { rowIntegrity } from '../../../signer/slashing/history/codes.ts';
import { FAULTS, faultTimes, randomFaults } from '../../support/fault-proxy.ts';
import {
  block,
  checkOne,
  history,
  inTenure,
  MAIN_ROOT,
  publicKeyOf,
  reinstate,
  retiredKeys,
  stream,
  vote,
} from '../../support/slashing.ts';
import { BLOCK, outcome, SlashingTablesBehindProxy, VOTE } from '../../support/slashing-dynamodb-world.ts';

const KEYS = 6;

const world = new SlashingTablesBehindProxy();
const { open, itemAt } = world;

/** As the specification says of an item that only checks wrote, of the numbers that stand in it. */
function codeBySpecification(item: Item): string {
  const genesisValidatorsRoot = decodeHex(MAIN_ROOT, 32) ?? Buffer.alloc(0);
  const integrity = rowIntegrity({ key: Buffer.alloc(32, 7), genesisValidatorsRoot });
  const root = decodeHex(item['signing_root']?.S ?? '', 32) ?? null;
  const key = decodeHex(publicKeyOf(1), 48) ?? Buffer.alloc(0);
  const tenure = 0;
  const numbers = [Number(item['slot']?.N), null, null, root, null, null, null, tenure];
  return encodeHex(integrity.code('dynamodb block v1', key, numbers));
}

describe('the items of a retired key', () => {
  it('keep their numbers and roots beside the mark, and what was not signed yet is an item without numbers', async () => {
    const backend = await open();
    await checkOne(backend, block(1, 10, 'a'));
    const before = await itemAt(BLOCK);
    expect(before['integrity']?.S).toBe(codeBySpecification(before));
    await backend.endTenures([publicKeyOf(1)]);
    const retired = await itemAt(BLOCK);
    expect(retired).toEqual({ ...before, tenure: { N: '1' }, integrity: retired['integrity'] });
    const unsigned = await itemAt(VOTE);
    expect(unsigned).toEqual({ pk: { S: VOTE }, tenure: { N: '1' }, integrity: unsigned['integrity'] });
    expect(retired['integrity']?.S).not.toBe(codeBySpecification(retired));
    await reinstate(backend, [publicKeyOf(1)]);
    expect(await itemAt(BLOCK)).toMatchObject({ ...before, tenure: { N: '2' }, integrity: expect.anything() });
    expect(Object.keys(await itemAt(VOTE)).toSorted()).toEqual(['integrity', 'pk', 'tenure']);
    expect(await outcome(backend, inTenure(2, vote(1, 0, 1, 'a')))).toBe('safe');
    expect(await itemAt(VOTE)).toMatchObject({ target_epoch: { N: '1' }, tenure: { N: '2' } });
  });

  const alterations: [name: string, change: (item: Item) => Item][] = [
    ['without the tenure', ({ tenure: _tenure, ...rest }) => rest],
    ['with another tenure', (item) => ({ ...item, tenure: { N: '2' } })],
    ['with tenure 0, which no item states', (item) => ({ ...item, tenure: { N: '0' } })],
    ['with a tenure of another type', (item) => ({ ...item, tenure: { S: '1' } })],
  ];
  it.each(alterations)('%s are damaged: nothing is signed, exported, retired or reinstated', async (_name, change) => {
    const backend = await open();
    await checkOne(backend, block(1, 10, 'a'));
    await checkOne(backend, vote(1, 1, 2, 'a'));
    await backend.endTenures([publicKeyOf(1)]);
    for (const pk of [BLOCK, VOTE]) await world.tables.putItem(world.tableName, change(await itemAt(pk)));
    expect(await outcome(backend, block(1, 11, 'b'))).toBe('slashing_integrity');
    expect(await outcome(backend, vote(1, 2, 3, 'b'))).toBe('slashing_integrity');
    const damaged = { reason: 'slashing_integrity' };
    await expect(backend.endTenures([publicKeyOf(1)])).rejects.toMatchObject(damaged);
    await expect(reinstate(backend, [publicKeyOf(1)])).rejects.toMatchObject(damaged);
    await expect(retiredKeys(backend, [publicKeyOf(1)])).rejects.toMatchObject(damaged);
  });
});

describe('a mark that came after a signer looked', () => {
  /** Beside the old code, as nobody writes it: the condition itself is asked, not the code. */
  async function mark(key: number): Promise<Item> {
    const pk = markPartition({ kind: 'attestation', publicKey: publicKeyOf(key) });
    const marked = { ...(await itemAt(pk)), tenure: { N: '1' } };
    await world.tables.putItem(world.tableName, marked);
    return marked;
  }

  const votes = (target: number) => Array.from({ length: KEYS }, (_, key) => vote(key, target - 1, target, 'a'));

  it('is not written over by a write of its own', async () => {
    const backend = await open();
    await checkOne(backend, vote(1, 1, 2, 'a'));
    const marked = await mark(1);
    expect(await outcome(backend, vote(1, 2, 3, 'b'))).toBe('slashing_integrity');
    expect(await itemAt(VOTE)).toEqual(marked);
  });

  it('is not written over by a statement in a shared request', async () => {
    const backend = await open();
    await Promise.all(votes(2).map((message) => outcome(backend, message)));
    const marked = await mark(1);
    let statements = '';
    world.proxy.setRule(({ operation, body }) => {
      if (operation === 'BatchExecuteStatement') statements += body;
      return undefined;
    });
    const outcomes = await Promise.all(votes(3).map((message) => outcome(backend, message)));
    expect(outcomes).toEqual(votes(3).map((_, key) => (key === 1 ? 'slashing_integrity' : 'safe')));
    expect(statements).toContain('IS MISSING');
    expect(await itemAt(VOTE)).toEqual(marked);
  });

  it('is obeyed by a service that takes no such statement: every write is made by itself then', async () => {
    const backend = await open();
    await Promise.all(votes(2).map((message) => outcome(backend, message)));
    const other = await open({ table: world.tableName });
    await other.endTenures([publicKeyOf(1)]);
    const invalid = { kind: 'error', status: 400, name: 'ValidationException' } as const;
    world.proxy.setRule(({ body }) => (body.includes('IS MISSING') ? invalid : undefined));
    for (const target of [3, 4]) {
      const outcomes = await Promise.all(votes(target).map((message) => outcome(backend, message)));
      expect(outcomes).toEqual(votes(target).map((_, key) => (key === 1 ? 'key_retired' : 'safe')));
    }
  });

  it('meets a first record that is on its way', async () => {
    const backend = await open();
    const other = await open({ table: world.tableName, endpoint: world.tables.server.endpoint });
    let isRetired = false;
    world.proxy.setRule(async ({ operation }) => {
      if (operation === 'TransactWriteItems' && !isRetired) {
        isRetired = true;
        await other.endTenures([publicKeyOf(1)]);
      }
      return undefined;
    });
    expect(await outcome(backend, block(1, 10, 'a'))).toBe('key_retired');
    expect(isRetired).toBe(true);
  });

  it('and one that a signer sets between the read and the write of an import stays', async () => {
    const backend = await open();
    const other = await open({ table: world.tableName, endpoint: world.tables.server.endpoint });
    await checkOne(other, block(1, 10, 'a'));
    let isRetired = false;
    world.proxy.setRule(async ({ operation }) => {
      if (operation === 'TransactWriteItems' && !isRetired) {
        isRetired = true;
        await other.endTenures([publicKeyOf(1)]);
      }
      return undefined;
    });
    await backend.importHistories(stream([history(1, [[20, null]], [[1, 2, null]])]));
    expect(await retiredKeys(other)).toEqual([publicKeyOf(1)]);
    expect(await itemAt(BLOCK)).toMatchObject({ slot: { N: '20' }, tenure: { N: '1' } });
  });
});

describe('a retirement that is disturbed', () => {
  it('has marked both items of a key or none, and can be repeated', async () => {
    const backend = await open({ client: { maxAttempts: 1 } });
    const keys = Array.from({ length: KEYS }, (_, key) => publicKeyOf(key));
    for (let key = 0; key < KEYS; key++) await checkOne(backend, block(key, 10, 'a'));
    let transactions = 0;
    world.proxy.setRule(({ operation }) =>
      operation === 'TransactWriteItems' && transactions++ === 2 ? FAULTS.resetBefore : undefined,
    );
    await expect(backend.endTenures(keys)).rejects.toMatchObject({ reason: 'slashing_unavailable' });
    let marks = 0;
    for (const publicKey of keys) {
      const [one, two] = await Promise.all(
        (['block', 'attestation'] as const).map((kind) =>
          world.tables.item(world.tableName, markPartition({ kind, publicKey })),
        ),
      );
      expect(one?.['tenure']).toEqual(two?.['tenure']);
      if (one?.['tenure'] !== undefined) marks += 1;
    }
    expect(marks).toBeLessThan(KEYS);
    await backend.endTenures(keys);
    expect(await retiredKeys(backend)).toEqual(keys);
  });

  it('by a lost answer is done all the same', async () => {
    const backend = await open();
    await checkOne(backend, block(1, 10, 'a'));
    world.proxy.setRule(faultTimes(1, FAULTS.dropAnswer, 'TransactWriteItems'));
    await backend.endTenures([publicKeyOf(1)]);
    world.proxy.setRule(faultTimes(1, FAULTS.dropAnswer, 'TransactWriteItems'));
    expect(await reinstate(backend, [publicKeyOf(1)])).toEqual([publicKeyOf(1)]);
  });

  it.each([1, 2, 3])('while 30 %% of all requests fail, nothing is signed once it is done (seed %d)', async (seed) => {
    const backend = await open();
    const signer = await open({ table: world.tableName });
    const { dropAnswer, resetBefore, resetAfter, internalErrorAfterApplying, transactionConflict } = FAULTS;
    world.proxy.setRule(
      randomFaults(seed, 0.3, [dropAnswer, resetBefore, resetAfter, internalErrorAfterApplying, transactionConflict]),
    );
    let isDone = false;
    const signing = Array.from({ length: KEYS }, async (_, key) => {
      for (let step = 1; step < 400; step++) {
        const startedAfter = isDone;
        const name = await outcome(signer, step % 2 === 0 ? block(key, step, 'a') : vote(key, step, step + 1, 'a'));
        if (startedAfter) expect(['key_retired', '503 slashing_unavailable']).toContain(name);
        if (startedAfter && name === 'key_retired') return;
      }
    });
    const keys = Array.from({ length: KEYS }, (_, key) => publicKeyOf(key));
    while (!isDone)
      isDone = await backend.endTenures(keys).then(
        () => true,
        () => false,
      );
    await Promise.all(signing);
    world.proxy.setRule(undefined);
    expect(await retiredKeys(signer)).toEqual(keys);
  });
});
