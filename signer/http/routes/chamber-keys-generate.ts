// Generates keys and deposit data, and gives the encrypted backups again (specification/keys.md#chamber-keys). Every
// refusal comes before a key is made.

import type { FastifyInstance } from 'fastify';
import { SignerError } from '../../api/errors.ts';
import type {
  KeyBackupsAnswer,
  KeyDepositDataAnswer,
  KeyGenerateAnswer,
  KeyGenerateBlsAnswer,
} from '../../api/key-answers.ts';
import { keyBackupsSchema, keyDepositDataSchema, keyGenerateBlsSchema, keyGenerateSchema } from '../../api/keys.ts';
import type { DepositTerms } from '../../keys/generation/deposit.ts';
import {
  DEFAULT_DEPOSIT_GWEI,
  depositAmountRefusal,
  withdrawalCredentialsOf,
} from '../../keys/generation/withdrawal.ts';
import { generateKeys, makeDeposits } from '../../keys/management/generate.ts';
import type { GenerationOptions, KeyManagementParts, TableParts } from '../../keys/management/management.ts';
import { sendJson } from '../replies.ts';
import { assertItems, type ItemLimits, limitWork } from '../work-limits.ts';
import { allowsKey, assertKeysAllowed, keyRequestBody } from './key-requests.ts';

export interface GenerateRoutes {
  readonly options: GenerationOptions;
  /** Each undefined: not mounted. */
  readonly generate: ItemLimits | undefined;
  readonly generateKeys: ItemLimits | undefined;
  readonly backups: ItemLimits | undefined;
  readonly depositData: (ItemLimits & { readonly allowRecompute: boolean }) | undefined;
}

const PATH = '/api/v1/chamber/keys';
const ACCESS = { kind: 'scope', namesKey: false, needsSigning: false } as const;

export function mountChamberKeysGenerate(app: FastifyInstance, routes: GenerateRoutes, keys: KeyManagementParts): void {
  if (routes.generate !== undefined) mountGenerate(app, routes.generate, routes.options, keys);
  if (routes.generateKeys !== undefined) mountGenerateKeys(app, routes.generateKeys, routes.options, keys);
  if (routes.backups !== undefined) mountBackups(app, routes.backups, keys);
  if (routes.depositData !== undefined) mountDepositData(app, routes.depositData, routes.options, keys);
}

function mountGenerate(
  app: FastifyInstance,
  limits: ItemLimits,
  options: GenerationOptions,
  keys: KeyManagementParts,
): void {
  const work = limitWork(limits);
  const config = { access: { ...ACCESS, scope: 'chamber_keys_generate' } } as const;
  app.post(`${PATH}/generate`, { config }, async (request, reply) => {
    const { count, require_backup: requireBackup, ...written } = keyRequestBody(request, keyGenerateSchema);
    assertItems(count, limits);
    if (requireBackup) assertBackups(options);
    const terms = termsOf(written);
    const parts = withTable(keys);
    const made = await work((signal) => generateKeys({ count, terms }, options, parts, signal));
    const answer: KeyGenerateAnswer = {
      keys: made.flatMap(({ publicKey, deposit, backup }) =>
        deposit === undefined ? [] : [{ pubkey: publicKey, deposit_data: deposit, ...backupMember(backup) }],
      ),
    };
    return sendJson(reply, 201, answer);
  });
}

function mountGenerateKeys(
  app: FastifyInstance,
  limits: ItemLimits,
  options: GenerationOptions,
  keys: KeyManagementParts,
): void {
  const work = limitWork(limits);
  const config = {
    access: { ...ACCESS, scope: 'chamber_keys_generate_bls', orScope: 'chamber_keys_generate' },
  } as const;
  app.post(`${PATH}/generate-keys`, { config }, async (request, reply) => {
    const { count, require_backup: requireBackup } = keyRequestBody(request, keyGenerateBlsSchema);
    assertItems(count, limits);
    if (requireBackup) assertBackups(options);
    const parts = withTable(keys);
    const made = await work((signal) => generateKeys({ count, terms: undefined }, options, parts, signal));
    const answer: KeyGenerateBlsAnswer = {
      keys: made.map(({ publicKey, backup }) => ({ pubkey: publicKey, ...backupMember(backup) })),
    };
    return sendJson(reply, 201, answer);
  });
}

function mountBackups(app: FastifyInstance, limits: ItemLimits, keys: KeyManagementParts): void {
  const [scope, orScope] = ['chamber_keys_generate_bls', 'chamber_keys_generate'] as const;
  const work = limitWork(limits);
  const config = { access: { ...ACCESS, scope, orScope } } as const;
  app.post(`${PATH}/backups`, { config }, async (request, reply) => {
    const { pubkeys: publicKeys } = keyRequestBody(request, keyBackupsSchema);
    assertItems(publicKeys.length, limits);
    const [mayOne, mayOther] = [allowsKey(request, scope), allowsKey(request, orScope)];
    if (!publicKeys.every((publicKey) => mayOne(publicKey) || mayOther(publicKey)))
      throw new SignerError('denied', {
        hint: `the scope ${scope} or ${orScope} is needed on every key that is named`,
      });
    const { table } = withTable(keys);
    const found = await work(() => table.rows.backupsOf([...new Set(publicKeys)]));
    const answer: KeyBackupsAnswer = {
      data: publicKeys.map((pubkey) => {
        const backup = found.get(pubkey);
        if (backup !== undefined) return { pubkey, status: 'found', backup };
        return { pubkey, status: found.has(pubkey) ? 'none' : 'not_found' };
      }),
    };
    return sendJson(reply, 200, answer);
  });
}

function mountDepositData(
  app: FastifyInstance,
  limits: NonNullable<GenerateRoutes['depositData']>,
  options: GenerationOptions,
  keys: KeyManagementParts,
): void {
  const scope = 'chamber_keys_deposit_data';
  const work = limitWork(limits);
  const config = { access: { ...ACCESS, scope } } as const;
  app.post(`${PATH}/deposit-data`, { config }, async (request, reply) => {
    const body = keyRequestBody(request, keyDepositDataSchema);
    const { pubkeys: publicKeys, force_recompute_on_conflict: recompute, ...written } = body;
    assertItems(publicKeys.length, limits);
    if (recompute && !limits.allowRecompute) throw new SignerError('recompute_not_allowed');
    const terms = termsOf(written);
    assertKeysAllowed(request, scope, publicKeys);
    const parts = withTable(keys);
    const results = await work((signal) => makeDeposits({ publicKeys, terms, recompute }, options, parts, signal));
    const answer: KeyDepositDataAnswer = {
      data: results.map(({ publicKey, status, deposit }) => ({
        pubkey: publicKey,
        status,
        ...(deposit === undefined ? {} : { deposit_data: deposit }),
      })),
    };
    return sendJson(reply, 200, answer);
  });
}

function termsOf(written: {
  readonly withdrawal_credentials?: string;
  readonly withdrawal_address?: string;
  readonly amount_gwei?: number;
  readonly compounding?: boolean;
}): DepositTerms {
  const target = withdrawalCredentialsOf({
    withdrawalCredentials: written.withdrawal_credentials,
    withdrawalAddress: written.withdrawal_address,
    compounding: written.compounding,
  });
  if ('refused' in target) throw new SignerError('malformed_body', { hint: target.refused });
  const amountGwei = written.amount_gwei ?? DEFAULT_DEPOSIT_GWEI;
  const hint = depositAmountRefusal(amountGwei, target.credentials);
  if (hint !== undefined) throw new SignerError('malformed_body', { hint });
  return { credentials: target.credentials, amountGwei };
}

function withTable({ table, ...keys }: KeyManagementParts): KeyManagementParts & { readonly table: TableParts } {
  if (table === undefined) throw new SignerError('master_key_unavailable');
  return { ...keys, table };
}

function assertBackups({ encryptBackup }: GenerationOptions): void {
  if (encryptBackup !== undefined) return;
  throw new SignerError('malformed_body', {
    hint: 'require_backup: this signer has no chamber.keys.backup.recipients; no key was made',
  });
}

function backupMember(backup: string | undefined): { backup?: string } {
  return backup === undefined ? {} : { backup };
}
