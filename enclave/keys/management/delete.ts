// Deletes keys, in an order that is right wherever it is cut short, with any number of replicas: the keys stop signing
// here and their last signatures end; they are retired in the slashing store, so that no other signer of it signs with
// them any more; their records are exported while they are retired, and the file is final; their rows and files go; the
// answer. A row goes after the export because the secret goes with it. A fault before the retirement leaves the key
// whole; one after it leaves a key that nobody signs with; a repeated request finishes either and answers the records
// again.

import { SignerError } from '../../api/errors.ts';
import type { TableKey } from '../table/types.ts';
import type { KeyManagementParts } from './management.ts';
import { whileStopped } from './stop.ts';

export interface DeleteRequest {
  readonly publicKeys: readonly string[];
  /** Whether keys of the table are deleted too. Keys of files never are. */
  readonly fromTable: boolean;
}

export interface DeleteResult {
  readonly publicKey: string;
  readonly status: 'deleted' | 'not_found' | 'error';
  /** For a key that is not here: whether there are slashing protection records of it. */
  readonly recorded: boolean;
  readonly message?: string;
}

/**
 * Delete keys, then answer the slashing protection records of those that are deleted, or are not here: a request that
 * is repeated gets them again. No signature of these keys is released here afterwards that is not in the file.
 * @throws SignerError `starting` while nobody knows yet which keys files hold, `sealed`; slashing_*,
 * `key_table_unavailable`: keys of memory may be gone then, and rows; repeating the request gives their records
 */
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
  /** Why each key that stays cannot be deleted. */
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

function deleteForGood({ removable, strays, fromTable }: Deletion, parts: KeyManagementParts) {
  return whileStopped([...removable, ...strays], parts, async (takenOut) => {
    const { file, recorded } = await retiredAndExported(removable, takenOut, parts);
    // After the retirement: a file that comes back with a crash in between is of a key that the store refuses.
    await parts.imported?.remove([...removable, ...strays]);
    const outcomes = (fromTable && (await parts.table?.rows.delete(removable))) || new Map<string, string>();
    // With the rows gone nobody who takes the fleet over has the keys: a file that is good now stays good.
    parts.slashing.assertInForce();
    const wasInMemory = (publicKey: string): boolean => takenOut.get(publicKey)?.source === 'memory';
    const isDeleted = (publicKey: string): boolean => outcomes.get(publicKey) === 'deleted' || wasInMemory(publicKey);
    const deleted = new Set(removable.filter(isDeleted));
    for (const publicKey of deleted) parts.log.info({ public_key: publicKey }, 'a key was deleted');
    return { deleted, file, recorded };
  });
}

/** Exports at most, of a store that loses its marks of retirement again and again. */
const MAX_EXPORTS = 3;

/**
 * The records of keys that are retired when they are read, and still are afterwards: a store that lost the mark in
 * between (a failover) let others sign, and what they signed belongs into the file. Keys that are neither here nor have
 * records are not retired: of them nothing is promised.
 */
async function retiredAndExported(
  removable: readonly string[],
  takenOut: ReadonlyMap<string, unknown>,
  { slashing, table }: KeyManagementParts,
): Promise<Awaited<ReturnType<KeyManagementParts['slashing']['export']>>> {
  const rows: ReadonlySet<string> = (await table?.rows.existing(removable)) ?? new Set();
  const isHere = (key: string): boolean => takenOut.has(key) || rows.has(key);
  const here = removable.filter(isHere);
  if (here.length > 0) await slashing.retire(here);
  for (let exports = 0; exports < MAX_EXPORTS; exports++) {
    const answer = await slashing.export(removable);
    const leaving = removable.filter((key) => isHere(key) || answer.recorded.has(key));
    const marked = new Set(leaving.length > 0 ? await slashing.retired(leaving) : []);
    const unmarked = leaving.filter((key) => !marked.has(key));
    if (unmarked.length === 0) return answer;
    await slashing.retire(unmarked);
  }
  throw new SignerError('slashing_unavailable', { hint: MARKS_ARE_LOST });
}

const MARKS_ARE_LOST =
  'the slashing store does not keep what is written to it: nothing is said of the keys; repeat the request when it does';
