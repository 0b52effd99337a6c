// What each scope is, for docs/reference/authorization.md. Nothing is decided here. A test asks a running
// application whether each route is admitted by its scope, and by no other.

import type { Scope } from './operations.ts';

interface ScopeEntry {
  readonly lets: string;
  readonly routes: readonly string[];
  readonly orAlso?: string;
}

const KEYS = '/api/v1/chamber/keys';
const ETH2 = '/api/v1/eth2';

export const SCOPE_CATALOGUE: Readonly<Record<Scope, ScopeEntry>> = {
  sign: {
    lets: 'sign with the keys, operations and payments that its rules allow',
    routes: ['sign/{identifier}', 'sign', 'distributed/sign/{identifier}', 'distributed/sign'].map(
      (path) => `POST ${ETH2}/${path}`,
    ),
  },
  public_keys: {
    lets: 'list the public keys that it may sign with, as validator clients do at their start',
    routes: ['publicKeys', 'highWatermark', 'distributed/accounts', 'distributed/accounts/{identifier}'].map(
      (path) => `GET ${ETH2}/${path}`,
    ),
  },
  list_keys: { lets: 'list keys over the Key Manager API', routes: ['GET /eth/v1/keystores'] },
  import_keystores: {
    lets: 'import keystores with their slashing records over the Key Manager API',
    routes: ['POST /eth/v1/keystores'],
  },
  delete_keys: {
    lets: 'delete keys over the Key Manager API; their slashing records are in the answer',
    routes: ['DELETE /eth/v1/keystores'],
  },
  chamber_keys_generate: {
    lets: 'generate keys in the key table, with their deposit data, and fetch encrypted backups',
    routes: [`POST ${KEYS}/generate`, `POST ${KEYS}/generate-keys`, `POST ${KEYS}/backups`],
  },
  chamber_keys_generate_bls: {
    lets: 'generate keys in the key table, without deposit data, and fetch encrypted backups',
    routes: [`POST ${KEYS}/generate-keys`, `POST ${KEYS}/backups`],
    orAlso: 'chamber_keys_generate',
  },
  chamber_keys_deposit_data: { lets: 'make deposit data of keys that are here', routes: [`POST ${KEYS}/deposit-data`] },
  chamber_keys_import: { lets: 'import keystores into the key table', routes: [`POST ${KEYS}`] },
  chamber_keys_list: { lets: 'list keys with their source and status, loaded or not', routes: [`GET ${KEYS}`] },
  chamber_keys_patch: { lets: 'activate and deactivate keys of the key table', routes: [`PATCH ${KEYS}`] },
  chamber_keys_delete: { lets: 'delete keys of the key table', routes: [`DELETE ${KEYS}`] },
  chamber_seal: {
    lets: 'seal all replicas: nothing is signed until the seal is lifted in the state table and they are restarted',
    routes: ['POST /api/v1/chamber/seal'],
    orAlso: 'a management token',
  },
  chamber_status: {
    lets: 'read the state of custody, keys, slashing store and enclave',
    routes: ['GET /api/v1/chamber/status'],
    orAlso: 'a management token',
  },
  slashing_protection: {
    lets: 'export slashing records, and import more of them',
    routes: ['GET /api/v1/chamber/slashing-protection', 'POST /api/v1/chamber/slashing-protection'],
  },
  receipts: {
    lets: 'read the logs of receipts: heads and tiles',
    routes: ['GET /api/v1/receipts/head', 'GET /api/v1/receipts/boots', 'GET /api/v1/receipts/tiles/{boot}/{*}'],
  },
  reload: {
    lets: 'have key folders, static tokens, known clients and TLS files read again, and see how that ended',
    routes: ['GET /reload', 'POST /reload'],
  },
};
