// Two replicas on one slashing store and one key table, and requests that stand still between two of their steps: a key
// that was answered as deleted signs nothing that its file lacks, and nothing that fails has begun anything. On a real
// key table and slashing protection on SQLite.

import { beforeEach, expect, it } from 'vitest';
import { SignerError } from '../../../signer/api/errors.ts';
import type { KeyManagementParts, SlashingFiles } from '../../../signer/keys/management/management.ts';
import { changeOne, deleteOne, importOne, type ManagedSigner } from '../../support/managed-signer.ts';
import { checkOne, verdictName, vote } from '../../support/slashing.ts';
import { publicKey, secretKey, statusOfRow, world } from './managed-world.ts';

let one: ManagedSigner;
let other: ManagedSigner;
let otherParts: KeyManagementParts;

beforeEach(async () => {
  one = await world.start();
  other = await world.start();
  other.readTenuresFrom((keys) => one.backend.tenures(keys));
  otherParts = { ...other.parts, slashing: one.parts.slashing };
  await importOne(one.parts, secretKey, { persist: true });
  await other.loader.refresh();
});

/** What the shared store says to a vote of the copy that this replica has loaded. */
async function asked({ store }: ManagedSigner, source: number, target: number): Promise<string> {
  const key = store.find(publicKey);
  if (key === undefined) return 'unknown_key';
  const message = { ...vote(0, source, target, `${source}>${target}`), publicKey, tenure: key.tenure };
  return verdictName(await checkOne(one.backend, message));
}

async function tenure(): Promise<number> {
  return (await one.backend.tenures([publicKey])).get(publicKey) ?? 0;
}

/** The same parts, with something that happens right after a call of the slashing files has answered. */
function after<Call extends keyof SlashingFiles>(
  parts: KeyManagementParts,
  call: Call,
  happens: () => Promise<unknown>,
): KeyManagementParts {
  let isOver = false;
  const original = parts.slashing[call] as (...given: unknown[]) => unknown;
  const replaced = async (...given: unknown[]) => {
    const answer = await original(...given);
    if (!isOver) {
      isOver = true;
      await happens();
    }
    return answer;
  };
  return { ...parts, slashing: { ...parts.slashing, [call]: replaced } };
}

it('a PATCH that stood still while the key was deleted takes nothing back', async () => {
  expect(await changeOne(one.parts, publicKey, 'inactive')).toMatchObject({ status: 'updated' });
  await other.loader.refresh();
  const late = after(otherParts, 'tenures', () => deleteOne(one.parts, publicKey, true));
  expect(await changeOne(late, publicKey, 'active')).toMatchObject({ status: 'not_found' });
  expect((await tenure()) % 2).toBe(1);
  await other.loader.refresh();
  expect(await asked(other, 20, 21)).toBe('unknown_key');
});

it('a PATCH whose row is deleted before its last step is an error, and begins nothing', async () => {
  await changeOne(one.parts, publicKey, 'inactive');
  await other.loader.refresh();
  const { table } = otherParts;
  if (table === undefined) throw new Error('this world has a table');
  const rows = {
    ...table.rows,
    setStatus: async (...given: Parameters<typeof table.rows.setStatus>) => {
      const answer = await table.rows.setStatus(...given);
      await deleteOne(one.parts, publicKey, true);
      return answer;
    },
  };
  const late = { ...otherParts, table: { ...table, rows } };
  expect(await changeOne(late, publicKey, 'active')).toMatchObject({ status: 'error' });
  expect((await tenure()) % 2).toBe(1);
  expect(await statusOfRow(one)).toBeUndefined();
});

it('a key that is made active while it is deleted: what it signed meanwhile is in the file', async () => {
  expect(await asked(one, 10, 11)).toBe('safe');
  const deleting = after(one.parts, 'export', async () => {
    expect(await changeOne(otherParts, publicKey, 'active')).toMatchObject({ status: 'updated' });
    await other.store.renewTenures([publicKey]);
    expect(await asked(other, 20, 21)).toBe('safe');
  });
  const deleted = await deleteOne(deleting, publicKey, true);
  expect(deleted).toMatchObject({ status: 'deleted' });
  expect(JSON.stringify(deleted.records)).toContain('"target_epoch":"21"');
  expect(await asked(other, 21, 22)).toMatch(/key_retired|unknown_key/);
});

it('a copy that was loaded in an earlier tenure is refused until its source is read again', async () => {
  expect(await asked(other, 10, 11)).toBe('safe');
  const deleted = await deleteOne(one.parts, publicKey, true);
  expect(deleted).toMatchObject({ status: 'deleted' });
  expect(await asked(other, 11, 12)).toBe('key_retired');
  expect(await importOne(one.parts, secretKey, { persist: true })).toMatchObject({ status: 'imported' });
  expect(await tenure()).toBe(4);
  expect(await asked(one, 11, 12)).toBe('safe');
  expect(await asked(other, 12, 13)).toBe('key_retired');
  await other.loader.refresh();
  expect(await asked(other, 12, 13)).toBe('safe');
});

it('an import whose row cannot be written begins nothing', async () => {
  await deleteOne(one.parts, publicKey, true);
  await other.loader.refresh();
  const { table } = one.parts;
  if (table === undefined) throw new Error('this world has a table');
  const rows = { ...table.rows, create: () => Promise.reject(new SignerError('key_table_unavailable')) };
  const failing = { ...one.parts, table: { ...table, rows } };
  await expect(importOne(failing, secretKey, { persist: true })).rejects.toMatchObject({
    reason: 'key_table_unavailable',
  });
  expect(await tenure()).toBe(3);
});

it('an import whose file cannot be written begins nothing', async () => {
  await deleteOne(one.parts, publicKey, true);
  const full = { keep: () => Promise.reject(new Error('ENOSPC')), remove: async () => undefined };
  const failing = { ...one.parts, imported: full };
  expect(await importOne(failing, secretKey, { persist: false })).toMatchObject({ status: 'error' });
  expect(await tenure()).toBe(3);
});

it('an import that is overtaken by a deletion is an error, and leaves no row and no copy', async () => {
  await deleteOne(one.parts, publicKey, true);
  const late = after(one.parts, 'tenures', () => one.backend.endTenures([publicKey]));
  expect(await importOne(late, secretKey, { persist: true })).toMatchObject({ status: 'error' });
  expect(await tenure()).toBe(5);
  expect(await statusOfRow(one)).toBeUndefined();
  expect(one.store.find(publicKey)).toBeUndefined();
});

/** The store begins the tenure, and the answer is lost. */
function losingAnswer(parts: KeyManagementParts, isBegun: boolean): KeyManagementParts {
  const { slashing } = parts;
  const beginTenures: SlashingFiles['beginTenures'] = async (from) => {
    if (isBegun) await slashing.beginTenures(from);
    throw new SignerError('slashing_unavailable');
  };
  return { ...parts, slashing: { ...slashing, beginTenures } };
}

it('an import whose beginning fails is an error, and leaves nothing', async () => {
  await deleteOne(one.parts, publicKey, true);
  const failing = losingAnswer(one.parts, false);
  expect(await importOne(failing, secretKey, { persist: true })).toMatchObject({ status: 'error' });
  expect((await tenure()) % 2).toBe(1);
  expect(await statusOfRow(one)).toBeUndefined();
  expect(one.store.find(publicKey)).toBeUndefined();
});

// Another replica loads the row, and signs, between the lost answer and whatever would take it back: no file has that.
it('an import whose last answer is lost is done, and never taken back', async () => {
  await deleteOne(one.parts, publicKey, true);
  const losing = losingAnswer(one.parts, true);
  expect(await importOne(losing, secretKey, { persist: true })).toMatchObject({ status: 'imported' });
  expect(await tenure()).toBe(4);
  expect(await statusOfRow(one)).toBe('active');
  expect(await asked(one, 20, 21)).toBe('safe');
});

it('an import that a PATCH overtakes, whose replica signs by then, is no error that takes nothing back', async () => {
  await deleteOne(one.parts, publicKey, true);
  const { table } = one.parts;
  if (table === undefined) throw new Error('this world has a table');
  const create: typeof table.rows.create = async (keys) => {
    const created = await table.rows.create(keys);
    expect(await changeOne(otherParts, publicKey, 'active')).toMatchObject({ status: 'updated' });
    await other.loader.refresh();
    expect(await asked(other, 20, 21)).toBe('safe');
    return created;
  };
  const overtaken = { ...one.parts, table: { ...table, rows: { ...table.rows, create } } };
  expect(await importOne(overtaken, secretKey, { persist: true })).toMatchObject({ status: 'imported' });
  expect(await statusOfRow(one)).toBe('active');
  expect(await asked(one, 20, 21)).toBe('repeat');
  expect(await asked(one, 19, 21)).toBe('double_vote');
});

/** The last step of a request waits until it is let go; `reached` resolves when it is about to begin. */
function stalledBeginning(parts: KeyManagementParts) {
  const { slashing } = parts;
  const [reached, letGo] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const beginTenures: SlashingFiles['beginTenures'] = async (from) => {
    reached.resolve();
    await letGo.promise;
    return slashing.beginTenures(from);
  };
  return {
    parts: { ...parts, slashing: { ...slashing, beginTenures } },
    reached: reached.promise,
    letGo: letGo.resolve,
  };
}

it.each([
  ['deleted', (parts: KeyManagementParts) => deleteOne(parts, publicKey, true)],
  ['updated', (parts: KeyManagementParts) => changeOne(parts, publicKey, 'inactive')],
] as const)(
  'a PATCH that read the ended tenure, and stood still until that was answered %s, is an error',
  async (status, leave) => {
    const { parts: late, reached, letGo } = stalledBeginning(otherParts);
    let patched: ReturnType<typeof changeOne> | undefined;
    const leaving = after(one.parts, 'endTenures', async () => {
      patched = changeOne(late, publicKey, 'active');
      await reached;
    });
    expect(await leave(leaving)).toMatchObject({ status });
    letGo();
    expect(await patched).toMatchObject({ status: 'error' });
    expect((await tenure()) % 2).toBe(1);
  },
);

it('an import that created its row before that was deleted, and stood still until then, is an error', async () => {
  await deleteOne(one.parts, publicKey, true);
  await other.loader.refresh();
  const { parts: late, reached, letGo } = stalledBeginning(otherParts);
  const imported = importOne(late, secretKey, { persist: true });
  await reached;
  const ended = (await tenure()) + 2;
  expect(await deleteOne(one.parts, publicKey, true)).toMatchObject({ status: 'deleted' });
  expect(await tenure()).toBeGreaterThanOrEqual(ended);
  letGo();
  expect(await imported).toMatchObject({ status: 'error' });
  expect((await tenure()) % 2).toBe(1);
});

it('a key made inactive beside a PATCH that takes it in stays inactive everywhere', async () => {
  const slow = after(one.parts, 'endTenures', () => changeOne(otherParts, publicKey, 'active'));
  expect(await changeOne(slow, publicKey, 'inactive')).toMatchObject({ status: 'updated' });
  expect(await statusOfRow(one)).toBe('inactive');
  expect((await tenure()) % 2).toBe(1);
});
