// Imports EIP-2335 keystores, into memory or the key table. What cannot be done as a whole is refused before it begins.

import { errorCode } from '../../../common/formats/error-code.ts';
import { SignerError, telling } from '../../api/errors.ts';
import { begun, isEndedTenure, type Tenures } from '../../tenure.ts';
import type { ImportedKeystore } from '../files/imported-keystore.ts';
import {
  type KeystoreItem,
  type KeystoreProblem,
  type OpenedKeystore,
  openKeystores,
  parseItem,
  wipeKeystores,
} from '../keystores/read.ts';
import { isSameForm, type KeySource, type LoadedKey, SHARE_REFUSALS } from '../loaded-key.ts';
import type { TableKey } from '../table/types.ts';
import type { Allows, KeyManagementParts } from './management.ts';

interface ImportRequest {
  readonly items: readonly KeystoreItem[];
  readonly slashingProtection: string | undefined;
  readonly persist: boolean;
  readonly allows: Allows;
}

export interface ImportResult {
  readonly publicKey: string | undefined;
  readonly status: 'imported' | 'duplicate' | 'error';
  readonly message?: string;
}

/**
 * @throws SignerError `denied`, `malformed_body`, `starting`: nothing is done then; `sealed`, `overloaded`, slashing_*
 * and `key_table_unavailable`; the signal's reason before anything is merged
 */
export async function importKeys(
  { items, slashingProtection, persist, allows }: ImportRequest,
  parts: KeyManagementParts,
  signal: AbortSignal,
): Promise<ImportResult[]> {
  let opened: Opened[] = [];
  // Decrypting wipes a password, and the file of an imported keystore needs it.
  const passwords = parts.imported === undefined ? [] : items.map(({ password }) => Buffer.from(password));
  try {
    if (persist && parts.table === undefined) {
      throw new SignerError('malformed_body', { hint: 'storage.persist needs key_sources.dynamodb' });
    }
    // Before that a key that a file holds would become one of memory, and come back after its deletion.
    parts.store.assertReady();
    const parsed = items.map(parseItem);
    assertAllowed(parsed, allows);
    opened = await openKeystores(parsed, parts, signal);
    assertAllowed(opened, allows);
    const publicKeys = [...new Set(opened.flatMap((item) => (item.kind === 'opened' ? [item.publicKey] : [])))];
    return await parts.turns(publicKeys, async () => {
      // Read first: only this tenure is moved on, and last. Until then the store refuses a key that left it.
      const before = await parts.slashing.tenures(publicKeys);
      const judged = opened.map((item) => otherFormProblem(item, { opened, persist }, parts) ?? item);
      const { taken, cut } = await standingOf(judged, { before, persist }, parts);
      signal.throwIfAborted();
      if (slashingProtection !== undefined) {
        await parts.slashing.merge(slashingProtection, allows).catch(telling(RECORDS_MAY_BE_MERGED));
      }
      const fresh = freshKeys(judged, taken);
      if (slashingProtection === undefined && fresh.size > 0) parts.log.warn({ keys: fresh.size }, WITHOUT_RECORD);
      const cameAs = (key: OpenedKeystore): ImportedKeystore => {
        const index = opened.indexOf(key);
        return {
          publicKey: key.publicKey,
          keystore: textOf(items[index]),
          password: passwords[index] ?? Buffer.alloc(0),
        };
      };
      const kept = persist ? { created: [] } : await keepFiles([...fresh.values()].map(cameAs), parts);
      const results =
        'problem' in kept
          ? allFailed([...fresh.keys()], kept.problem)
          : await takeIn([...fresh.values()], { persist, before, cut }, parts);
      if ('created' in kept) await dropFiles(kept.created, results, parts);
      return judged.map((item, index) => {
        const { publicKey } = item;
        const from = parsed[index];
        if (publicKey !== undefined && from?.kind === 'parsed')
          parts.store.noteDerivationPath(publicKey, from.keystore.path);
        if (item.kind === 'problem') return { publicKey, status: 'error', message: item.message };
        const result = fresh.get(item.publicKey) === item ? results.get(item.publicKey) : undefined;
        return result ?? taken.get(item.publicKey) ?? { publicKey, status: 'duplicate' };
      });
    });
  } finally {
    wipeKeystores(opened);
    for (const password of [...items.map((item) => item.password), ...passwords]) password.fill(0);
  }
}

const WITHOUT_RECORD =
  'keys are imported without a slashing record: what they signed elsewhere is not known here, and may be signed against';

function assertAllowed(items: readonly { readonly publicKey: string | undefined }[], allows: Allows): void {
  for (const { publicKey } of items) {
    if (publicKey !== undefined && !allows(publicKey)) throw new SignerError('denied');
  }
}

type Opened = OpenedKeystore | KeystoreProblem;

/** A key is whole or one share, here and in a request: what is in another form than the first is no duplicate of it. */
function otherFormProblem(
  item: Opened,
  { opened, persist }: { readonly opened: readonly Opened[]; readonly persist: boolean },
  { store }: KeyManagementParts,
): KeystoreProblem | undefined {
  if (item.kind === 'problem') return undefined;
  const { publicKey, share } = item;
  const problem = (message: string): KeystoreProblem => ({ kind: 'problem', publicKey, message });
  if (share !== undefined && persist) return problem(NO_SHARES_IN_TABLE);
  const first =
    store.find(publicKey) ??
    opened.find((one): one is OpenedKeystore => one.kind === 'opened' && one.publicKey === publicKey);
  const isOther = first !== undefined && !isSameForm(first.share, share);
  return isOther ? problem(SHARE_REFUSALS.held_otherwise) : undefined;
}

const NO_SHARES_IN_TABLE =
  'the key table holds no shares of distributed keys: use key files, or import without storage.persist into a signer with ' +
  'key_sources.memory.persist_dir';

interface Standing {
  /** What is answered of keys that are not taken in: an inactive one must not come back to life as one of memory. */
  readonly taken: ReadonlyMap<string, ImportResult>;
  /** Keys whose row is there and active, and whose tenure has ended: an import or a deletion was cut in the middle. */
  readonly cut: ReadonlySet<string>;
}

async function standingOf(
  judged: readonly Opened[],
  { before, persist }: { readonly before: Tenures; readonly persist: boolean },
  { store, table }: KeyManagementParts,
): Promise<Standing> {
  const shares = new Map(judged.flatMap((item) => (item.kind === 'opened' ? [[item.publicKey, item.share]] : [])));
  const publicKeys = [...shares.keys()];
  const rows: ReadonlyMap<string, TableKey> = (await table?.rows.get(publicKeys)) ?? new Map();
  const cut = new Set<string>();
  const taken = new Map<string, ImportResult>();
  for (const publicKey of publicKeys) {
    const tenure = before.get(publicKey) ?? 0;
    const copy = store.find(publicKey);
    const status = rows.get(publicKey)?.status;
    if (status !== undefined && shares.get(publicKey) !== undefined) {
      taken.set(publicKey, { publicKey, status: 'error', message: SHARE_REFUSALS.held_otherwise });
      continue;
    }
    if (status === 'active' && isEndedTenure(tenure) && persist && copy?.source !== 'filesystem') {
      cut.add(publicKey);
      continue;
    }
    const answer = duplicateOf(copy, status, tenure);
    if (answer !== undefined) taken.set(publicKey, { publicKey, ...answer });
  }
  return { taken, cut };
}

/** Undefined for a key that is not here. A copy of an earlier tenure, which the store refuses, is replaced. */
function duplicateOf(
  copy: LoadedKey | undefined,
  row: TableKey['status'] | undefined,
  tenure: number,
): Pick<ImportResult, 'status' | 'message'> | undefined {
  if (row === 'inactive') return { status: 'duplicate', message: ROW_IS_INACTIVE };
  const isFile = copy?.source === 'filesystem';
  if (isEndedTenure(tenure)) {
    if (isFile) return { status: 'duplicate', message: FILE_HAS_LEFT };
    return row === undefined ? undefined : { status: 'error', message: ROW_HAS_LEFT };
  }
  return isFile || row !== undefined || copy?.tenure === tenure ? { status: 'duplicate' } : undefined;
}

const ROW_IS_INACTIVE = 'the key table holds this key, and it is inactive: make it active there';
const FILE_HAS_LEFT =
  'a key file of this signer holds this key, and the key has left its slashing store: `strongroom slashing reinstate`';
const ROW_HAS_LEFT =
  'the key table holds this key, and the key has left its slashing store: make it active there, or delete it there first';

function freshKeys(opened: readonly Opened[], taken: Standing['taken']): ReadonlyMap<string, OpenedKeystore> {
  const fresh = new Map<string, OpenedKeystore>();
  for (const item of opened) {
    if (item.kind === 'problem' || taken.has(item.publicKey) || fresh.has(item.publicKey)) continue;
    fresh.set(item.publicKey, item);
  }
  return fresh;
}

function textOf(item: KeystoreItem | undefined): string {
  return typeof item?.keystore === 'string' ? item.keystore : JSON.stringify(item?.keystore);
}

/** What is answered as imported is there after a restart. */
async function keepFiles(
  keystores: readonly ImportedKeystore[],
  { imported, log }: KeyManagementParts,
): Promise<{ readonly created: readonly string[] } | { readonly problem: string }> {
  if (keystores.length === 0) return { created: [] };
  if (imported === undefined) {
    log.warn({ keys: keystores.length }, GONE_AT_A_RESTART);
    return { created: [] };
  }
  try {
    return { created: await imported.keep(keystores) };
  } catch (error) {
    const code = errorCode(error) ?? 'a fault';
    log.error({ error: code }, 'imported keystores cannot be written to key_sources.memory.persist_dir');
    return { problem: `the signer could not write the keystore to its disk (${code}); nothing was imported` };
  }
}

const GONE_AT_A_RESTART =
  'imported keys live in memory alone and are gone after a restart: key_sources.memory.persist_dir keeps them on a plain service';

function allFailed(publicKeys: readonly string[], message: string): ReadonlyMap<string, ImportResult> {
  return new Map(publicKeys.map((publicKey) => [publicKey, { publicKey, status: 'error', message }]));
}

/** One whose file cannot be removed may be there after a restart. */
async function dropFiles(
  created: readonly string[],
  results: ReadonlyMap<string, ImportResult>,
  { imported, log }: KeyManagementParts,
): Promise<void> {
  const failed = created.filter((publicKey) => results.get(publicKey)?.status !== 'imported');
  if (failed.length === 0) return;
  await imported?.remove(failed).catch((error: unknown) => {
    const code = errorCode(error) ?? 'a fault';
    log.error({ error: code, public_keys: failed }, 'keystores that were not imported cannot be removed from disk');
  });
}

/**
 * Last of all the next tenure begins: nothing can fail after it, so nothing that failed has begun. Until then the copy
 * is of the tenure that ended, and signs nothing.
 */
async function takeIn(
  keys: readonly OpenedKeystore[],
  { persist, before, cut }: { readonly persist: boolean; readonly before: Tenures; readonly cut: Standing['cut'] },
  parts: KeyManagementParts,
): Promise<ReadonlyMap<string, ImportResult>> {
  const { store, table, log } = parts;
  const source: KeySource = persist ? 'dynamodb' : 'memory';
  const rows = keys.map((key) => ({ ...key, status: 'active' as const }));
  const created = persist ? await table?.rows.create(rows).catch(telling(ROWS_MAY_BE_THERE)) : undefined;
  const results = new Map<string, ImportResult>();
  for (const key of keys) {
    const { publicKey } = key;
    if (created?.get(publicKey) === 'duplicate' && !cut.has(publicKey)) continue;
    const isLoaded = !persist || table?.loader.statusFilter.has('active') === true;
    const tenure = before.get(publicKey) ?? 0;
    const result = isLoaded ? load(key, source, tenure, parts) : IMPORTED;
    results.set(publicKey, { publicKey, ...result });
  }
  const left = [...results]
    .filter(([publicKey, { status }]) => status === 'imported' && isEndedTenure(before.get(publicKey) ?? 0))
    .map(([publicKey]) => publicKey);
  const problem = await begin(new Map(left.map((publicKey) => [publicKey, before.get(publicKey) ?? 0])), parts);
  for (const publicKey of left) {
    const message = problem(publicKey);
    if (message === undefined) {
      store.takeTenure(publicKey, begun(before.get(publicKey) ?? 0));
      continue;
    }
    store.remove(publicKey);
    results.set(publicKey, { publicKey, status: 'error', message });
  }
  const isRefused = (publicKey: string): boolean => results.get(publicKey)?.status === 'error';
  const own = left.filter((publicKey) => isRefused(publicKey) && created?.get(publicKey) === 'created');
  // One that stays is of a key that has left: nothing signs with it, and a repeated request takes it in.
  if (own.length > 0) await table?.rows.delete(own).catch(telling(ROWS_MAY_BE_THERE));
  for (const { publicKey, status } of results.values()) {
    if (status === 'imported') log.info({ public_key: publicKey, source }, 'a key was imported');
  }
  return results;
}

/** Undefined for a key that is in its next tenure, by any request: other signers may use it by then. */
async function begin(
  from: Tenures,
  { slashing, log }: KeyManagementParts,
): Promise<(publicKey: string) => string | undefined> {
  if (from.size === 0) return () => undefined;
  const keys = [...from.keys()];
  try {
    let fault: unknown;
    const answer = await slashing.beginTenures(from).catch((error: unknown) => {
      fault = error;
      return undefined;
    });
    if (answer?.size === from.size) return () => undefined;
    const tenures = await slashing.tenures(keys);
    const isIn = (publicKey: string): boolean => tenures.get(publicKey) === begun(from.get(publicKey) ?? 0);
    if (answer !== undefined) return (publicKey) => (isIn(publicKey) ? undefined : MOVED);
    const out = keys.filter((publicKey) => !isIn(publicKey));
    log.error({ err: fault, public_keys: out }, 'the slashing store did not answer which imported keys it took in');
    // What was sent may still arrive: it finds another tenure then.
    if (out.length > 0) await slashing.endTenures(out);
    return (publicKey) => (isIn(publicKey) ? undefined : NOT_TAKEN_IN);
  } catch (error) {
    log.error({ err: error, public_keys: keys }, 'whether the slashing store took imported keys in is not known');
    return () => MAYBE_TAKEN_IN;
  }
}

const RECORDS_MAY_BE_MERGED =
  'no key was imported, and some records of the file may be merged, which only refuses more: repeat the request';
const ROWS_MAY_BE_THERE =
  'some keys may be in the table, and signers that load them may sign: repeat the request, which finishes it';
const MOVED = 'another request changed this key at the same time; nothing was imported, repeat the request';
const NOT_TAKEN_IN = 'the slashing store could not take the key in; nothing was imported, repeat the request';
const MAYBE_TAKEN_IN =
  'the slashing store could not take the key in, and may have done so all the same: other signers of it that hold the key may ' +
  'sign. Run `strongroom slashing retire` for the key before you use it elsewhere, or repeat the request';

const IMPORTED = { status: 'imported' } as const;

type Loading = Pick<ImportResult, 'status' | 'message'>;

function load(
  { publicKey, secretKey, share }: OpenedKeystore,
  source: KeySource,
  tenure: number,
  { store }: KeyManagementParts,
): Loading {
  const present = store.find(publicKey);
  // A copy of an earlier tenure, which the store refuses.
  const isOver = present !== undefined && (isEndedTenure(present.tenure) || present.tenure !== tenure);
  if (isOver && present.source !== 'filesystem') store.remove(publicKey);
  const added = store.add(secretKey, source, share ?? publicKey, tenure);
  if (added.outcome === 'added') return IMPORTED;
  if (added.outcome === 'duplicate') {
    // The refresh of the table was quicker to load what this request has just written.
    return { status: source === 'dynamodb' && added.key.source === 'dynamodb' ? 'imported' : 'duplicate' };
  }
  if (added.reason === 'sealed') throw new SignerError('sealed');
  return { status: 'error', message: LOAD_PROBLEMS[added.reason] };
}

const LOAD_PROBLEMS = {
  invalid_secret_key: 'the keystore holds no valid secret key',
  public_key_mismatch: 'the keystore holds the secret of another public key than it names',
  too_many_keys: 'this signer holds as many keys as it can',
  ...SHARE_REFUSALS,
} as const;
