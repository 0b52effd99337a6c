// Imports EIP-2335 keystores, into memory or the key table. One that is bad does not stop the others; a request that
// names a key the caller may not touch, or brings slashing protection records that cannot be merged, is refused before
// anything is done.

import { errorCode } from '../../../formats/error-code.ts';
import { SignerError } from '../../api/errors.ts';
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
import type { KeyStore } from '../store.ts';
import type { Allows, KeyManagementParts } from './management.ts';

export interface ImportRequest {
  readonly items: readonly KeystoreItem[];
  /** JSON text. */
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
 * Import keystores, in the order of the request.
 * @throws SignerError `denied`, `malformed_body` when the request is refused as a whole, `starting` while keys are
 * being loaded, and nothing is done then; `sealed`, `overloaded`, slashing_* and `key_table_unavailable`; the signal's
 * reason when it aborts before anything is merged
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
    opened = await openKeystores(parsed, parts.pool, signal);
    assertAllowed(opened, allows);
    const publicKeys = [...new Set(opened.flatMap((item) => (item.kind === 'opened' ? [item.publicKey] : [])))];
    return await parts.turns(publicKeys, async () => {
      const taken = await takenKeys(publicKeys, parts);
      signal.throwIfAborted();
      if (slashingProtection !== undefined) await parts.slashing.merge(slashingProtection, allows);
      const fresh = freshKeys(opened, taken);
      // A key that left this store comes back; its old records stay. Before it is loaded anywhere.
      if (fresh.size > 0) await parts.slashing.reinstate([...fresh.keys()]);
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
          : await keep([...fresh.values()], persist, parts);
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

/** Loaded, or in the table: an inactive key must not come back to life as one of memory. */
async function takenKeys(
  publicKeys: readonly string[],
  { store, table }: KeyManagementParts,
): Promise<ReadonlySet<string>> {
  const rows = (await table?.rows.get(publicKeys)) ?? new Map();
  return new Set(publicKeys.filter((publicKey) => store.find(publicKey) !== undefined || rows.has(publicKey)));
}

/** Those not taken, each named for the first time in the request. */
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

/** As it came: a text stays the same text. */
function textOf(item: KeystoreItem | undefined): string {
  return typeof item?.keystore === 'string' ? item.keystore : JSON.stringify(item?.keystore);
}

/**
 * Before a key signs: what is answered as imported is there after a restart. Answers the keys that had no file before,
 * or why nothing was kept.
 */
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

/**
 * Takes back the files of keys that got one and are not answered as imported. One whose file cannot be removed may be
 * there after a restart.
 */
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

async function keep(
  keys: readonly OpenedKeystore[],
  persist: boolean,
  { store, table, log }: KeyManagementParts,
): Promise<ReadonlyMap<string, ImportResult>> {
  const source: KeySource = persist ? 'dynamodb' : 'memory';
  const created = persist ? await table?.rows.create(keys.map((key) => ({ ...key, status: 'active' }))) : undefined;
  const results = new Map<string, ImportResult>();
  for (const { publicKey, secretKey } of keys) {
    if (created?.get(publicKey) === 'duplicate') continue;
    const isLoaded = !persist || table?.loader.statusFilter.has('active') === true;
    const result = isLoaded ? load(store, secretKey, source, publicKey) : { publicKey, status: 'imported' as const };
    if (result.status === 'imported') log.info({ public_key: publicKey, source }, 'a key was imported');
    results.set(publicKey, result);
  }
  return results;
}

function load(store: KeyStore, secretKey: Uint8Array, source: KeySource, publicKey: string): ImportResult {
  const added = store.add(secretKey, source, publicKey);
  if (added.outcome === 'added') return { publicKey, status: 'imported' };
  if (added.outcome === 'duplicate') {
    // The refresh of the table was quicker to load what this request has just written.
    return { publicKey, status: source === 'dynamodb' && added.key.source === 'dynamodb' ? 'imported' : 'duplicate' };
  }
  if (added.reason === 'sealed') throw new SignerError('sealed');
  return { publicKey, status: 'error', message: LOAD_PROBLEMS[added.reason] };
}

const LOAD_PROBLEMS = {
  invalid_secret_key: 'the keystore holds no valid secret key',
  public_key_mismatch: 'the keystore holds the secret of another public key than it names',
  too_many_keys: 'this signer holds as many keys as it can',
} as const;
