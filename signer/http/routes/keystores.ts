// The Key Manager API (ethereum/keymanager-APIs). Keys of files and of the key table are readonly, and never deleted.

import type { FastifyInstance } from 'fastify';
import { deleteKeystoresSchema, importKeystoresSchema } from '../../api/key-manager.ts';
import { deleteKeys } from '../../keys/management/delete.ts';
import { importKeys } from '../../keys/management/import.ts';
import type { KeyManagementParts } from '../../keys/management/management.ts';
import { sendJson } from '../replies.ts';
import { assertItems, limitWork } from '../work-limits.ts';
import { allowsKey, assertKeysAllowed, keyRequestBody, said, secretRequestBody } from './key-requests.ts';
import { ACCESS } from './keys.ts';

export interface KeyManagerLimits {
  readonly maxConcurrentReads: number;
  readonly maxConcurrentWrites: number;
  readonly requestTimeoutSeconds: number;
  readonly maxItemsPerRequest: number;
}

const KEYSTORES = '/eth/v1/keystores';

export function mountKeystores(app: FastifyInstance, limits: KeyManagerLimits, keys: KeyManagementParts): void {
  const { maxConcurrentReads, maxConcurrentWrites, requestTimeoutSeconds } = limits;
  // specification/keys.md#key-manager-api: DELETE counts as a read.
  const read = limitWork({ maxConcurrentRequests: maxConcurrentReads, requestTimeoutSeconds });
  const write = limitWork({ maxConcurrentRequests: maxConcurrentWrites, requestTimeoutSeconds });

  const list = { access: { ...ACCESS, scope: 'list_keys' } } as const;
  app.get(KEYSTORES, { config: list }, async (request, reply) => {
    const data = await read(async () => {
      const visible = keys.store.publicKeys().filter(allowsKey(request, 'list_keys'));
      return visible.map((publicKey) => ({
        validating_pubkey: publicKey,
        derivation_path: keys.store.derivationPathOf(publicKey), // left out where nothing says it
        readonly: isReadonly(publicKey, keys),
      }));
    });
    return sendJson(reply, 200, { data });
  });

  const add = { access: { ...ACCESS, scope: 'import_keystores' } } as const;
  app.post(KEYSTORES, { config: add }, async (request, reply) => {
    const { keystores, passwords, slashing_protection } = secretRequestBody(request, importKeystoresSchema);
    assertItems(keystores.length, limits);
    const items = keystores.map((keystore, index) => ({ keystore, password: Buffer.from(passwords[index] ?? '') }));
    const results = await write((signal) =>
      importKeys(
        {
          items,
          slashingProtection: slashing_protection || undefined, // tools write an empty text for none
          persist: false,
          allows: allowsKey(request, 'import_keystores'),
        },
        keys,
        signal,
      ),
    );
    return sendJson(reply, 200, { data: results.map((result) => ({ status: result.status, ...said(result) })) });
  });

  const remove = { access: { ...ACCESS, scope: 'delete_keys' } } as const;
  app.delete(KEYSTORES, { config: remove }, async (request, reply) => {
    const { pubkeys: publicKeys } = keyRequestBody(request, deleteKeystoresSchema);
    assertItems(publicKeys.length, limits);
    assertKeysAllowed(request, 'delete_keys', publicKeys);
    const { results, slashingProtection } = await read(() => deleteKeys({ publicKeys, fromTable: false }, keys));
    const data = results.map((result) => ({
      status: result.status === 'not_found' && result.recorded ? 'not_active' : result.status,
      ...said(result),
    }));
    return sendJson(reply, 200, { data, slashing_protection: slashingProtection });
  });
}

function isReadonly(publicKey: string, { store, table }: KeyManagementParts): boolean {
  const isInMemory = store.find(publicKey)?.source === 'memory';
  return !isInMemory || store.isInFile(publicKey) || table?.loader.hasRow(publicKey) === true;
}
