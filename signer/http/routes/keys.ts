// The key routes: the chamber's (specification/keys.md#chamber-keys), then the Key Manager API's. A request with a key
// that the caller may not touch is refused as a whole.

import type { FastifyInstance, FastifyRequest } from 'fastify';
import { explainIssue } from '../../../common/formats/issues.ts';
import { type KeyShare, writtenShare } from '../../api/distributed.ts';
import { SignerError } from '../../api/errors.ts';
import type {
  KeyDeleteAnswer,
  KeyImportAnswer,
  KeyListAnswer,
  KeyPatchAnswer,
  KeyRecord,
} from '../../api/key-answers.ts';
import {
  type KeyListQuery,
  keyDeleteSchema,
  keyImportSchema,
  keyListQuerySchema,
  keyPatchSchema,
} from '../../api/keys.ts';
import { deleteKeys } from '../../keys/management/delete.ts';
import { importKeys } from '../../keys/management/import.ts';
import { listManagedKeys } from '../../keys/management/list.ts';
import type { KeyManagementParts } from '../../keys/management/management.ts';
import { changeStatus } from '../../keys/management/status.ts';
import { sendJson } from '../replies.ts';
import { assertItems, type ItemLimits, limitWork, type WorkLimits } from '../work-limits.ts';
import { allowsKey, assertKeysAllowed, keyRequestBody, said, secretRequestBody } from './key-requests.ts';

export interface ChamberKeyLimits {
  readonly list: WorkLimits;
  readonly import: ItemLimits | undefined;
  readonly lifecycle: ItemLimits | undefined;
}

const PATH = '/api/v1/chamber/keys';
export const ACCESS = { kind: 'scope', namesKey: false, needsSigning: false } as const;

export function mountChamberKeys(app: FastifyInstance, limits: ChamberKeyLimits, keys: KeyManagementParts): void {
  mountList(app, limits.list, keys);
  if (limits.import !== undefined) mountImport(app, limits.import, keys);
  if (limits.lifecycle !== undefined) mountLifecycle(app, limits.lifecycle, keys);
}

function mountList(app: FastifyInstance, limits: WorkLimits, keys: KeyManagementParts): void {
  const scope = 'chamber_keys_list';
  const work = limitWork(limits);
  app.get(PATH, { config: { access: { ...ACCESS, scope } } }, async (request, reply) => {
    const allows = allowsKey(request, scope);
    const query = queryOf(request);
    const page = await work(() => listManagedKeys(query, keys));
    const visible = page.keys.filter(({ publicKey }) => allows(publicKey));
    const answer: KeyListAnswer = {
      keys: visible.map((key) => ({
        pubkey: key.publicKey,
        source: key.source,
        sources: [...key.sources],
        status: key.status,
        loaded: key.loaded,
        created_at: key.createdAt,
        updated_at: key.updatedAt,
        has_backup: key.hasBackup,
        has_deposit_data: key.hasDepositData,
        distributed: distributedOf(key.share),
      })),
      next_cursor: page.nextCursor ?? null,
    };
    return sendJson(reply, 200, answer);
  });
}

function distributedOf(share: KeyShare | undefined): KeyRecord['distributed'] {
  if (share === undefined) return null;
  const { participant_id, participants, signing_threshold } = writtenShare(share);
  return { participant_id, signing_threshold, participants };
}

function queryOf(request: FastifyRequest): KeyListQuery {
  const query = keyListQuerySchema.safeParse(request.query, { error: explainIssue });
  if (query.success) return query.data;
  const [issue] = query.error.issues;
  const place = issue?.path.join('.') || 'query';
  throw new SignerError('malformed_parameter', { hint: `${place}: ${issue?.message}` });
}

function mountImport(app: FastifyInstance, limits: ItemLimits, keys: KeyManagementParts): void {
  const scope = 'chamber_keys_import';
  const work = limitWork(limits);
  const options = { config: { access: { ...ACCESS, scope } } } as const;
  app.post(PATH, options, async (request, reply) => {
    const { keystores, passwords, slashing_protection, storage } = secretRequestBody(request, keyImportSchema);
    assertItems(keystores.length, limits);
    const items = keystores.map((keystore, index) => ({ keystore, password: Buffer.from(passwords[index] ?? '') }));
    const slashingProtection =
      typeof slashing_protection === 'object' ? JSON.stringify(slashing_protection) : slashing_protection;
    const wanted = { items, slashingProtection, persist: storage.persist, allows: allowsKey(request, scope) };
    const results = await work((signal) => importKeys(wanted, keys, signal));
    const answer: KeyImportAnswer = {
      data: results.map(({ publicKey, ...result }) => ({ pubkey: publicKey ?? null, ...result })),
    };
    return sendJson(reply, 200, answer);
  });
}

function mountLifecycle(app: FastifyInstance, limits: ItemLimits, keys: KeyManagementParts): void {
  const work = limitWork(limits);

  const patch = { access: { ...ACCESS, scope: 'chamber_keys_patch' } } as const;
  app.patch(PATH, { config: patch }, async (request, reply) => {
    const body = keyRequestBody(request, keyPatchSchema);
    assertItems(body.keys.length, limits);
    const changes = body.keys.map(({ pubkey, status }) => ({ publicKey: pubkey, status }));
    assertKeysAllowed(
      request,
      'chamber_keys_patch',
      changes.map(({ publicKey }) => publicKey),
    );
    const results = await work(() => changeStatus(changes, keys));
    const answer: KeyPatchAnswer = {
      data: results.map(({ publicKey, ...result }) => ({ pubkey: publicKey, ...result })),
    };
    return sendJson(reply, 200, answer);
  });

  const remove = { access: { ...ACCESS, scope: 'chamber_keys_delete' } } as const;
  app.delete(PATH, { config: remove }, async (request, reply) => {
    const { pubkeys: publicKeys } = keyRequestBody(request, keyDeleteSchema);
    assertItems(publicKeys.length, limits);
    assertKeysAllowed(request, 'chamber_keys_delete', publicKeys);
    const { results, slashingProtection } = await work(() => deleteKeys({ publicKeys, fromTable: true }, keys));
    const answer: KeyDeleteAnswer = {
      data: results.map((result) => ({ pubkey: result.publicKey, status: result.status, ...said(result) })),
      slashing_protection: JSON.parse(slashingProtection) as Record<string, unknown>,
    };
    return sendJson(reply, 200, answer);
  });
}
