// Deletes keys in the order of specification/keys.md#order. A row goes after an export because the secret goes with it.
// A fault before the first end leaves the key whole, a later one a key that nothing signs with; repeating finishes it.

import { SignerError } from '../../api/errors.ts';
import type { TableKey } from '../table/types.ts';
import type { KeyManagementParts } from './management.ts';
import { whileStopped } from './stop.ts';

export interface DeleteRequest {
  readonly publicKeys: readonly string[];
  readonly fromTable: boolean;
}

export interface DeleteResult {
  readonly publicKey: string;
  readonly status: 'deleted' | 'not_found' | 'error';
  readonly recorded: boolean;
  readonly message?: string;
}

/** @throws SignerError `starting`, `sealed`; slashing_*, `key_table_unavailable`: some may be gone then */
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
  const held: ReadonlySet<string> = (!fromTable && (await table?.rows.existing(named))) || new Set();
  const isInMemory = (publicKey: string): boolean => store.find(publicKey)?.source === 'memory';
  const rows: ReadonlyMap<string, TableKey> = (await table?.rows.get([...held].filter(isInMemory))) ?? new Map();
  store.assertReady(); // sealed meanwhile, it has forgotten the files
  const problems = new Map<string, string>();
  const strays: string[] = [];
  for (const publicKey of named) {
    if (store.isInFile(publicKey)) {
      problems.set(publicKey, OF_A_FILE);
    } else if (held.has(publicKey)) {
      problems.set(publicKey, OF_THE_TABLE);
      const isLoaded = table?.loader.statusFilter.has('inactive') === true;
      if (rows.get(publicKey)?.status === 'inactive' && !isLoaded && isInMemory(publicKey)) strays.push(publicKey);
    }
  }
  return { problems, strays };
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
  const { slashing, table, imported, log } = parts;
  return whileStopped([...removable, ...strays], parts, async (takenOut) => {
    const rows: ReadonlySet<string> = (await table?.rows.existing(removable)) ?? new Set();
    const isHere = (publicKey: string): boolean => takenOut.has(publicKey) || rows.has(publicKey);
    const ended = new Map<string, number>();
    const end = async (publicKeys: readonly string[]): Promise<void> => {
      if (publicKeys.length === 0) return;
      for (const [publicKey, tenure] of await slashing.endTenures(publicKeys)) ended.set(publicKey, tenure);
    };
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
      for (const [publicKey, outcome] of (fromTable && (await table?.rows.delete(removable))) || [])
        if (outcomes.get(publicKey) !== 'deleted') outcomes.set(publicKey, outcome);
      // A request that read the ended tenure, and the row while it was there, has not begun yet, and never will.
      await end(leaving);
      const { file, recorded } = await slashing.export(removable);
      if (await hasMoved(leaving)) continue;
      // With the rows gone no signer that takes the fleet over has the keys: a file that is good now stays good.
      slashing.assertInForce();
      const wasInMemory = (publicKey: string): boolean => takenOut.get(publicKey)?.source === 'memory';
      const isDeleted = (publicKey: string): boolean => outcomes.get(publicKey) === 'deleted' || wasInMemory(publicKey);
      const deleted = new Set(removable.filter(isDeleted));
      for (const publicKey of deleted) log.info({ public_key: publicKey }, 'a key was deleted');
      return { deleted, file, recorded };
    }
    throw new SignerError('slashing_unavailable', { hint: TENURES_MOVE });
  });
}

const TENURES_MOVE =
  'the keys were taken in again while they were deleted, or the slashing store does not keep what is written to it: nothing ' +
  'is said of them; repeat the request';
