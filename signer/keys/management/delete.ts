// Deletes keys in the order of specification/keys.md#order. A row goes after an export because the secret goes with it.
// A fault before the first end leaves the key whole, a later one a copy that nothing signs with; repeating finishes it.

import { SignerError } from '../../api/errors.ts';
import type { KeySource } from '../loaded-key.ts';
import type { TableKey } from '../table/types.ts';
import type { KeyManagementParts } from './management.ts';
import { whileLeaving } from './stop.ts';

interface DeleteRequest {
  readonly publicKeys: readonly string[];
  readonly fromTable: boolean;
}

export interface DeleteResult {
  readonly publicKey: string;
  readonly status: 'deleted' | 'not_found' | 'error';
  readonly recorded: boolean;
  readonly message?: string;
}

/** @throws SignerError `starting`, `sealed`; slashing_*, `key_table_unavailable`: its hint says how far it came */
export async function deleteKeys(
  { publicKeys, fromTable }: DeleteRequest,
  parts: KeyManagementParts,
): Promise<{ readonly results: DeleteResult[]; readonly slashingProtection: string }> {
  parts.store.assertReady();
  const named = [...new Set(publicKeys)];
  return parts.turns(named, async () => {
    const { problems, strays } = await findProblems(named, fromTable, parts);
    const removable = named.filter((publicKey) => !problems.has(publicKey));
    const { deleted, file, recorded } = await deleteForGood({ removable, strays, fromTable }, parts);
    const results = publicKeys.map((publicKey): DeleteResult => {
      const message = problems.get(publicKey);
      if (message !== undefined) return { publicKey, status: 'error', recorded: false, message };
      const status = deleted.has(publicKey) ? 'deleted' : 'not_found';
      return { publicKey, status, recorded: recorded.has(publicKey) };
    });
    return { results, slashingProtection: file };
  });
}

const OF_A_FILE =
  'a key file of this signer holds this key: delete the file, reload the signer (SIGHUP or POST /reload), repeat the request';
const OF_THE_TABLE = 'the key table holds this key: it is deleted through /api/v1/chamber/keys';

interface Problems {
  readonly problems: ReadonlyMap<string, string>;
  /** Inactive keys of the table among them of which a copy in memory signs: that copy has to stop all the same. */
  readonly strays: readonly string[];
}

async function findProblems(
  named: readonly string[],
  fromTable: boolean,
  { store, table }: KeyManagementParts,
): Promise<Problems> {
  const sourceOf = (publicKey: string): KeySource | undefined => store.find(publicKey)?.source;
  const isInMemory = (publicKey: string): boolean => sourceOf(publicKey) === 'memory';
  const held: ReadonlySet<string> = (!fromTable && (await readRows(named, sourceOf, table))) || new Set();
  const copied = [...held].filter(isInMemory);
  const rows: ReadonlyMap<string, TableKey> = (copied.length > 0 && (await table?.rows.get(copied))) || new Map();
  store.assertReady(); // sealed meanwhile, it has forgotten the files
  const problems = new Map<string, string>();
  const strays: string[] = [];
  for (const publicKey of named) {
    if (store.isInFile(publicKey)) {
      problems.set(publicKey, OF_A_FILE);
    } else if (held.has(publicKey)) {
      problems.set(publicKey, OF_THE_TABLE);
      if (rows.get(publicKey)?.status === 'inactive' && isInMemory(publicKey)) strays.push(publicKey);
    }
  }
  return { problems, strays };
}

/**
 * The keys that have a row. Undefined when the table is away and none had one at the last look, all being in memory: a
 * row that came since then names a key whose tenure has ended, so no signer signs with it.
 */
async function readRows(
  publicKeys: readonly string[],
  sourceOf: (publicKey: string) => KeySource | undefined,
  table: KeyManagementParts['table'],
): Promise<ReadonlySet<string> | undefined> {
  try {
    return await table?.rows.existing(publicKeys);
  } catch (error) {
    const isInMemoryAlone = (publicKey: string): boolean =>
      sourceOf(publicKey) === 'memory' && table?.loader.hasRow(publicKey) !== true;
    if (publicKeys.every(isInMemoryAlone)) return undefined;
    throw error;
  }
}

interface Deletion {
  readonly removable: readonly string[];
  readonly strays: readonly string[];
  readonly fromTable: boolean;
}

/** Files at most, of a key that is taken in again and again, or of a store that loses what is written to it. */
const MAX_FILES = 3;

/** What a signer signed in a tenure that began in between (or that a failover took back) belongs into the file. */
function deleteForGood({ removable, strays, fromTable }: Deletion, parts: KeyManagementParts) {
  const { store, slashing, table, imported, log } = parts;
  return whileLeaving([...removable, ...strays], parts, async ({ copies, ended, end }) => {
    const sourceOf = (publicKey: string): KeySource | undefined => copies.get(publicKey)?.source;
    const rows = fromTable ? await readRows(removable, sourceOf, table) : undefined;
    const isHere = (publicKey: string): boolean => copies.has(publicKey) || rows?.has(publicKey) === true;
    /** Whether one of the keys is in another tenure than the one that ended; that ends too, and needs another file. */
    const hasMoved = async (leaving: readonly string[]): Promise<boolean> => {
      const tenures = leaving.length === 0 ? ended : await slashing.tenures(leaving);
      const moved = leaving.filter((publicKey) => tenures.get(publicKey) !== ended.get(publicKey));
      await end(moved);
      return moved.length > 0;
    };
    const outcomes = new Map<string, string>();
    await end(removable.filter(isHere));
    for (let files = 0; files < MAX_FILES; files++) {
      const first = await slashing.export(removable);
      const leaving = removable.filter((publicKey) => isHere(publicKey) || first.recorded.has(publicKey));
      if (await hasMoved(leaving)) continue;
      // A file that comes back with a crash in between is of a key that the store refuses.
      await imported?.remove([...removable, ...strays]);
      for (const [publicKey, outcome] of (rows && (await table?.rows.delete(removable))) ?? [])
        if (outcomes.get(publicKey) !== 'deleted') outcomes.set(publicKey, outcome);
      // A request that read the ended tenure, and the row while it was there, has not begun yet, and never will.
      await end(leaving);
      const { file, recorded } = await slashing.export(removable);
      if (await hasMoved(leaving)) continue;
      // With the rows gone no signer that takes the fleet over has the keys: a file that is good now stays good.
      slashing.assertInForce();
      const isDeleted = (publicKey: string): boolean => outcomes.get(publicKey) === 'deleted' || copies.has(publicKey);
      const deleted = new Set(removable.filter(isDeleted));
      for (const publicKey of copies.keys()) store.remove(publicKey);
      for (const publicKey of deleted) log.info({ public_key: publicKey }, 'a key was deleted');
      return { deleted, file, recorded };
    }
    throw new SignerError('slashing_unavailable', { hint: TENURES_MOVE });
  });
}

const TENURES_MOVE =
  'the keys were taken in again while they were deleted, or the slashing store does not keep what is written to it: nothing ' +
  'is said of them; repeat the request';
