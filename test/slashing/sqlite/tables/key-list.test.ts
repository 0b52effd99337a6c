// New keys of a large set: a commit does not walk over all heads, and a head that is taken away is noticed
// all the same.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { rowIntegrity } from '../../../../signer/slashing/history/codes.ts';
import { block, history, MAIN_ROOT, publicKeyOf, verdictName } from '../../../support/slashing.ts';
import { storeInProcess } from '../../../support/slashing-in-process.ts';

let folder: string;
let path: string;
let database: ReturnType<typeof openHere>;

function openHere(onTurn: () => void = () => undefined) {
  const genesisValidatorsRoot = Buffer.from(MAIN_ROOT.slice(2), 'hex');
  const integrity = rowIntegrity({ genesisValidatorsRoot, key: new Uint8Array(32).fill(3) });
  const here = storeInProcess({ path, genesisValidatorsRoot, integrity }, onTurn);
  const sign = (slot: number, ...ofKeys: number[]) =>
    here.check(ofKeys.map((key) => block(key, slot, `${slot}`))).map(verdictName);
  return { ...here, sign };
}

/** What somebody beside this process does through SQLite. */
function tamper(statements: string): void {
  const other = new DatabaseSync(path, { defensive: false });
  other.exec(statements);
  other.close();
}

const WITHOUT_KEY_1 = 'DELETE FROM validators WHERE id = 1; DELETE FROM blocks WHERE validator = 1;';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slashing-keys-'));
  path = join(folder, 'slashing_protection.sqlite');
  writeFileSync(path, '', { mode: 0o600 });
  database = openHere();
});
afterEach(() => {
  vi.restoreAllMocks();
  database.close();
  rmSync(folder, { recursive: true });
});

it('the heads are walked over once, however many batches bring new keys, by whatever way', async () => {
  const walks = vi.spyOn(StatementSync.prototype, 'iterate');
  const { sign, operations } = database;
  for (let key = 1; key <= 60; key += 2) expect(sign(10, key, key + 1)).toEqual(['safe', 'safe']);
  await operations.endTenures([publicKeyOf(61)]);
  expect(sign(11, 60, 61, 62)).toEqual(['safe', 'key_retired', 'safe']);
  expect(walks).toHaveBeenCalledTimes(1);
});

it('a commit of another connection leads to one more walk', () => {
  const walks = vi.spyOn(StatementSync.prototype, 'iterate');
  const { sign } = database;
  sign(10, 1);
  tamper('CREATE TABLE notes (text TEXT)');
  for (const key of [2, 3, 4]) expect(sign(10, key)).toEqual(['safe']);
  expect(walks).toHaveBeenCalledTimes(2);
});

it('a head taken away between two commits, through SQLite: the key and every new one are refused', () => {
  const { sign } = database;
  expect(sign(10, 1, 2)).toEqual(['safe', 'safe']);
  tamper(WITHOUT_KEY_1);
  const damage = 'slashing_integrity';
  expect(sign(10, 1, 2, 3)).toEqual([damage, 'repeat', damage]);
  expect(sign(11, 2, 3, 1)).toEqual(['safe', damage, damage]);
});

// What this connection does itself changes no version: as a file that is written beside SQLite.
it('a head taken away unseen by SQLite: the key is refused', () => {
  const { sign, connection } = database;
  expect(sign(10, 1, 2)).toEqual(['safe', 'safe']);
  connection.exec(WITHOUT_KEY_1);
  expect(sign(10, 1, 2, 3)).toEqual(['slashing_integrity', 'repeat', 'safe']);
  expect(sign(11, 1, 4)).toEqual(['slashing_integrity', 'safe']);
});

it('a head that its index no longer finds is not the head of a new key', () => {
  expect(database.sign(10, 1, 2)).toEqual(['safe', 'safe']);
  database.close();
  tamper(`
    CREATE TABLE empty (public_key BLOB NOT NULL UNIQUE) STRICT;
    PRAGMA writable_schema = ON;
    UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_empty_1')
      WHERE name = 'sqlite_autoindex_validators_1';
    DELETE FROM sqlite_schema WHERE name IN ('empty', 'sqlite_autoindex_empty_1');`);
  database = openHere();
  expect(database.sign(10, 1, 3)).toEqual(['slashing_integrity', 'safe']);
  expect(database.sign(10, 2)).toEqual(['slashing_integrity']);
});

it('a key whose commit failed is as new as before', () => {
  const { sign, connection } = database;
  expect(sign(10, 1)).toEqual(['safe']);
  connection.exec('PRAGMA query_only = ON');
  expect(() => sign(10, 2)).toThrow(/readonly/);
  connection.exec('PRAGMA query_only = OFF');
  expect(sign(10, 2, 1)).toEqual(['safe', 'repeat']);
});

it('a head that goes away after an import was verified is not merged into as into a new one', async () => {
  let turns = 0;
  database.close();
  database = openHere(() => {
    turns += 1;
    if (turns === 2) tamper(WITHOUT_KEY_1);
  });
  const { sign, stage, merge } = database;
  expect(sign(10, 1, 2)).toEqual(['safe', 'safe']);
  stage(1, history(1, [[5, 'f']], []));
  await expect(merge(1)).rejects.toMatchObject({ reason: 'slashing_integrity' });
  expect(turns).toBeGreaterThanOrEqual(2);
  expect(sign(20, 1)).toEqual(['slashing_integrity']);
});
