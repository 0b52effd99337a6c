// Imports EIP-2335 keystores, into memory or the key table. What cannot be done as a whole is refused before it begins.

import { errorCode } from '../../../common/formats/error-code.ts';
import { SignerError } from '../../api/errors.ts';
import { begun, isEnded, type Tenures } from '../../tenure.ts';
import type { ImportedKeystore } from '../files/imported-seal.ts';
import {
  type KeystoreItem,
  type KeystoreProblem,
  type OpenedKeystore,
  openKeystores,
  parseItem,
  wipeKeystores,
} from '../keystores/read.ts';
import type { KeySource } from '../loaded-key.ts';
import type { Allows, KeyManagementParts } from './management.ts';

export interface ImportRequest {
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
  let opened: (OpenedKeystore | KeystoreProblem)[] = [];
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
      const taken = await takenKeys(publicKeys, before, parts);
      signal.throwIfAborted();
      if (slashingProtection !== undefined) await parts.slashing.merge(slashingProtection, allows);
      const fresh = freshKeys(opened, taken);
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
          : await takeIn([...fresh.values()], { persist, before }, parts);
      if ('created' in kept) await dropFiles(kept.created, results, parts);
      return opened.map((item) => {
        const { publicKey } = item;
        if (item.kind === 'problem') return { publicKey, status: 'error', message: item.message };
        const result = fresh.get(item.publicKey) === item ? results.get(item.publicKey) : undefined;
        return result ?? { publicKey, status: 'duplicate' };
      });
    });
  } finally {
    wipeKeystores(opened);
    for (const password of [...items.map((item) => item.password), ...passwords]) password.fill(0);
  }
}

function assertAllowed(items: readonly { readonly publicKey: string | undefined }[], allows: Allows): void {
  for (const { publicKey } of items) {
    if (publicKey !== undefined && !allows(publicKey)) throw new SignerError('denied');
  }
}

/** An inactive key must not come back to life as one of memory. A copy of memory whose tenure is over is replaced. */
async function takenKeys(
  publicKeys: readonly string[],
  before: Tenures,
  { store, table }: KeyManagementParts,
): Promise<ReadonlySet<string>> {
  const rows = (await table?.rows.get(publicKeys)) ?? new Map();
  const isHere = (publicKey: string): boolean => {
    const key = store.find(publicKey);
    if (key?.source !== 'memory') return key !== undefined;
    const tenure = before.get(publicKey) ?? 0;
    return key.tenure === tenure && !isEnded(tenure);
  };
  return new Set(publicKeys.filter((publicKey) => isHere(publicKey) || rows.has(publicKey)));
}

function freshKeys(
  opened: readonly (OpenedKeystore | KeystoreProblem)[],
  taken: ReadonlySet<string>,
): ReadonlyMap<string, OpenedKeystore> {
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

/** Last of all the next tenure begins: nothing can fail after it, so nothing that failed has begun. */
async function takeIn(
  keys: readonly OpenedKeystore[],
  { persist, before }: { readonly persist: boolean; readonly before: Tenures },
  parts: KeyManagementParts,
): Promise<ReadonlyMap<string, ImportResult>> {
  const { table, log } = parts;
  const source: KeySource = persist ? 'dynamodb' : 'memory';
  const created = persist ? await table?.rows.create(keys.map((key) => ({ ...key, status: 'active' }))) : undefined;
  const results = new Map<string, ImportResult>();
  for (const { publicKey, secretKey } of keys) {
    if (created?.get(publicKey) === 'duplicate') continue;
    const isLoaded = !persist || table?.loader.statusFilter.has('active') === true;
    const tenure = begun(before.get(publicKey) ?? 0);
    const result = isLoaded ? load({ publicKey, secretKey }, source, tenure, parts) : IMPORTED;
    results.set(publicKey, { publicKey, ...result });
  }
  const left = [...results]
    .filter(([publicKey, { status }]) => status === 'imported' && isEnded(before.get(publicKey) ?? 0))
    .map(([publicKey]) => publicKey);
  const problem = await begin(new Map(left.map((publicKey) => [publicKey, before.get(publicKey) ?? 0])), parts);
  for (const publicKey of left) {
    const message = problem(publicKey);
    if (message === undefined) continue;
    parts.store.remove(publicKey);
    results.set(publicKey, { publicKey, status: 'error', message });
  }
  const refused = left.filter((publicKey) => results.get(publicKey)?.status === 'error');
  if (persist && refused.length > 0) await table?.rows.delete(refused);
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

const MOVED = 'another request changed this key at the same time; nothing was imported, repeat the request';
const NOT_TAKEN_IN = 'the slashing store could not take the key in; nothing was imported, repeat the request';
const MAYBE_TAKEN_IN =
  'the slashing store could not take the key in, and may have done so all the same: other signers of it that hold the key may ' +
  'sign. Run `strongroom slashing retire` for the key before you use it elsewhere, or repeat the request';

const IMPORTED = { status: 'imported' } as const;

type Loading = Pick<ImportResult, 'status' | 'message'>;

function load(
  { publicKey, secretKey }: Pick<OpenedKeystore, 'publicKey' | 'secretKey'>,
  source: KeySource,
  tenure: number,
  { store }: KeyManagementParts,
): Loading {
  const present = store.find(publicKey);
  // A copy of an earlier tenure, which the store refuses.
  if (present?.source === 'memory' && source === 'memory' && present.tenure !== tenure) store.remove(publicKey);
  const added = store.add(secretKey, source, publicKey, tenure);
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
} as const;
