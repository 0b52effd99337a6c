// Generates keys into the key table, and makes deposit data. A key is answered only after its row is durable: if it
// were lost after a deposit, its stake would be too.

import { strict as assert } from 'node:assert';
import { setImmediate } from 'node:timers/promises';
import { telling } from '../../api/errors.ts';
import { type DepositTerms, makeDeposit } from '../generation/deposit.ts';
import { type GeneratedKey, generateKey } from '../generation/generate.ts';
import type { StoredDeposit } from '../table/types.ts';
import type { GenerationOptions, KeyManagementParts, TableParts } from './management.ts';

interface PersistedKey {
  readonly publicKey: string;
  readonly backup: string | undefined;
  readonly deposit: StoredDeposit | undefined;
}

type Parts = Pick<KeyManagementParts, 'store' | 'turns' | 'log'> & { readonly table: TableParts };

/** @throws SignerError `key_table_unavailable`; the signal's reason before the first row is written */
export async function generateKeys(
  { count, terms }: { readonly count: number; readonly terms: DepositTerms | undefined },
  { encryptBackup, network, fillRandom }: GenerationOptions,
  parts: Parts,
  signal: AbortSignal,
): Promise<PersistedKey[]> {
  const keys: (GeneratedKey & { readonly deposit: StoredDeposit | undefined })[] = [];
  try {
    while (keys.length < count) {
      await setImmediate(); // requests to sign go on in between
      signal.throwIfAborted();
      const key = await generateKey({ encryptBackup, fillRandom });
      try {
        keys.push({ ...key, deposit: terms && makeDeposit(key.secretKey, terms, network) });
      } catch (error) {
        key.secretKey.fill(0);
        throw error;
      }
    }
    await parts.turns(
      keys.map(({ publicKey }) => publicKey),
      () => persist(keys, parts),
    );
    return keys.map(({ publicKey, backup, deposit }) => ({ publicKey, backup, deposit }));
  } finally {
    for (const { secretKey } of keys) secretKey.fill(0);
  }
}

async function persist(
  keys: readonly (GeneratedKey & { readonly deposit: StoredDeposit | undefined })[],
  { store, table, log }: Parts,
): Promise<void> {
  const rows = keys.map((key) => ({ ...key, status: 'active' as const }));
  const created = await table.rows.create(rows).catch(telling(KEYS_MAY_BE_MADE));
  for (const { publicKey, secretKey } of keys) {
    assert.equal(created.get(publicKey), 'created', 'a key of fresh randomness is new');
    if (table.loader.statusFilter.has('active')) store.add(secretKey, 'dynamodb', publicKey);
    log.info({ public_key: publicKey }, 'a key was generated');
  }
}

const KEYS_MAY_BE_MADE =
  'new keys may be in the table that no answer has named: list the keys, and delete those that you do not know';

interface DepositRequest {
  readonly publicKeys: readonly string[];
  readonly terms: DepositTerms;
  readonly recompute: boolean;
}

interface DepositResult {
  readonly publicKey: string;
  readonly status: 'created' | 'existing' | 'conflict' | 'not_found';
  readonly deposit: StoredDeposit | undefined;
}

/** @throws SignerError `key_table_unavailable`, and the signal's reason: some keys may be done, repeating is safe */
export async function makeDeposits(
  request: DepositRequest,
  { network }: Pick<GenerationOptions, 'network'>,
  { table }: Pick<Parts, 'table'>,
  signal: AbortSignal,
): Promise<DepositResult[]> {
  const results = new Map<string, DepositResult>();
  for (const publicKey of new Set(request.publicKeys)) {
    await setImmediate();
    signal.throwIfAborted();
    results.set(publicKey, await depositOf(publicKey, request, network, table));
  }
  return request.publicKeys.flatMap((publicKey) => results.get(publicKey) ?? []);
}

async function depositOf(
  publicKey: string,
  { terms, recompute }: DepositRequest,
  network: GenerationOptions['network'],
  { rows }: TableParts,
): Promise<DepositResult> {
  const stored = (await rows.get([publicKey])).get(publicKey);
  if (stored === undefined) return { publicKey, status: 'not_found', deposit: undefined };
  const { deposit } = stored;
  if (deposit !== undefined && isOnTerms(deposit, terms)) return { publicKey, status: 'existing', deposit };
  if (deposit !== undefined && !recompute) return { publicKey, status: 'conflict', deposit };
  const secretKey = await rows.secretOf(publicKey);
  if (secretKey === undefined) return { publicKey, status: 'not_found', deposit: undefined };
  try {
    const made = makeDeposit(secretKey, terms, network);
    const status = await rows.setDeposit(publicKey, made, { replace: recompute }).catch(telling(DEPOSIT_MAY_BE_KEPT));
    if (status === 'created' || status === 'existing') return { publicKey, status, deposit: made };
    return { publicKey, status, deposit: (await rows.get([publicKey])).get(publicKey)?.deposit };
  } finally {
    secretKey.fill(0);
  }
}

const DEPOSIT_MAY_BE_KEPT = 'some deposit data may be stored: repeat the request, which finishes it';

function isOnTerms(deposit: StoredDeposit, { credentials, amountGwei }: DepositTerms): boolean {
  return deposit.withdrawal_credentials === Buffer.from(credentials).toString('hex') && deposit.amount === amountGwei;
}
