// Imports into a DynamoDB table: the parts of one key count together, what a reader left out counts, and however much
// one key has, signing goes on.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { SlashableMessage, SlashingBackend, ValidatorHistory } from '../../../signer/slashing/types.ts';
import { block, checkOne, collect, history, publicKeyOf, stream, verdictName, vote } from '../../support/slashing.ts';
import { type SlashingTables, startSlashingTables } from '../../support/slashing-dynamodb.ts';

const ENTRIES = 900_000;
const PARTS = 9;
/** Entries between two turns of the event loop at most: a few milliseconds. */
const MAX_STEP_ENTRIES = 2_500;

let tables: SlashingTables;
let tableName: string;
const backends: SlashingBackend[] = [];

beforeAll(async () => {
  tables = await startSlashingTables();
});

afterEach(async () => {
  for (const backend of backends.splice(0)) await backend.close();
});

afterAll(() => tables?.close());

async function open(): Promise<SlashingBackend> {
  tableName = await tables.create();
  const backend = await tables.open(tableName);
  backends.push(backend);
  return backend;
}

async function verdict(backend: SlashingBackend, message: SlashableMessage): Promise<string> {
  return verdictName(await checkOne(backend, message));
}

const leftOut = { slot: 90, sourceEpoch: 8, targetEpoch: 9, blocks: 40, attestations: 41 };

describe('entries that a reader left out', () => {
  it('count by their highest numbers, and in the summary; their numbers contradict nothing', async () => {
    const backend = await open();
    const part = { ...history(1, [[95, 'a']], [[9, 10, 'a']]), leftOut };
    const summary = await backend.importHistories(stream([part]));
    expect(summary).toEqual({
      validators: 1,
      blocks: 41,
      attestations: 42,
      alreadyPresent: 0,
      conflicts: 0,
      conflicting: [],
    });
    const [exported] = await collect(backend.exportHistories());
    expect(exported).toEqual(history(1, [[95, null]], [[9, 10, null]]));
  });

  it('lie above what another part of the key says: they are refused', async () => {
    const backend = await open();
    const parts: ValidatorHistory[] = [
      { ...history(1, [], []), leftOut },
      history(1, [[20, 'a']], [[3, 4, 'a']]),
      { ...history(2, [], []), leftOut: { ...leftOut, slot: null } },
    ];
    await backend.importHistories(stream(parts));
    expect(await verdict(backend, block(1, 90, 'n'))).toBe('double_block');
    expect(await verdict(backend, vote(1, 7, 10, 'n'))).toBe('source_below_low_water_mark');
    expect(await verdict(backend, vote(2, 8, 9, 'n'))).toBe('double_vote');
    expect(await verdict(backend, block(2, 1, 'n'))).toBe('safe');
    expect(await verdict(backend, block(1, 91, 'n'))).toBe('safe');
  });
});

it('a key with 900,000 entries in parts is merged in small steps, and other keys sign meanwhile', async () => {
  const backend = await open();
  let turns = 0;
  const merge = { isOver: false };
  const signed: string[] = [];
  const signing = (async () => {
    for (let slot = 1; !merge.isOver; slot++) signed.push(await verdict(backend, block(5, slot, slot)));
  })();
  const count = (): void => {
    turns += 1;
    if (!merge.isOver) setImmediate(count);
  };
  setImmediate(count);
  async function* parts(): AsyncGenerator<ValidatorHistory> {
    for (let part = 0; part < PARTS; part++) {
      const attestations = Array.from({ length: ENTRIES / PARTS }, (_, at) => {
        const epoch = part * (ENTRIES / PARTS) + at;
        return { sourceEpoch: epoch, targetEpoch: epoch + 1, signingRoot: null };
      });
      yield { publicKey: publicKeyOf(1), blocks: [], attestations };
    }
  }
  expect(await backend.importHistories(parts())).toMatchObject({ validators: 1, attestations: ENTRIES, conflicts: 0 });
  merge.isOver = true;
  await signing;
  expect(turns).toBeGreaterThan(ENTRIES / MAX_STEP_ENTRIES);
  expect(signed.length).toBeGreaterThan(1);
  expect(new Set(signed)).toEqual(new Set(['safe']));
  expect(await verdict(backend, vote(1, ENTRIES - 1, ENTRIES, 'n'))).toBe('double_vote');
  expect(await verdict(backend, vote(1, ENTRIES - 1, ENTRIES + 1, 'n'))).toBe('safe');
  expect(await collect(backend.exportHistories([publicKeyOf(1)]))).toHaveLength(1);
});
