// Options of where validator keys come from: folders, imports into memory, the key table.

import { ageRecipientSchema } from '../../../ceremony/definition.ts';
import type { KeyStatus } from '../../keys/table/types.ts';
import { flagged, type Option, unflagged } from '../option.ts';
import type { Secret } from '../values/secret.ts';
import { secretSchema } from '../values/static-auth.ts';
import {
  booleanValue,
  CONCURRENCY,
  integer,
  type Kind,
  listOf,
  listThat,
  oneOf,
  SECONDS,
  SECONDS_OR_OFF,
  table,
  text,
} from '../values/values.ts';

/** Made a Secret before it is read (load.ts). */
const secret: Kind<Secret> = { expects: 'env:VAR_NAME, file:/PATH or the secret', form: 'text', schema: secretSchema };

const ONLY_ACTIVE: KeyStatus[] = ['active'];

export const KEY_SOURCE_OPTIONS = {
  'key_sources.filesystem.paths': flagged(listOf(text, 'repeated'), [], 'Key directories'),
  'key_sources.filesystem.keystores.path': flagged(
    text,
    undefined,
    'A directory of keystores, NAME.json each, without descriptors',
  ),
  'key_sources.filesystem.keystores.passwords_path': flagged(
    text,
    undefined,
    'The directory of the passwords of keystores.path: NAME.txt for NAME.json',
  ),
  'key_sources.filesystem.keystores.password_file': flagged(
    text,
    undefined,
    'One file with the password of every keystore of keystores.path',
  ),
  'key_sources.filesystem.cache': flagged(
    text,
    undefined,
    'A file that keeps the keys of keystores once they are decrypted, encrypted in parts under the passwords of all keystores of the part (docs/guides/sizing.md). Unset: none is kept',
  ),
  'key_sources.filesystem.keystore_load_concurrency': flagged(
    CONCURRENCY,
    128,
    'Parallel keystore decryptions; memory bounds scrypt ones further',
  ),
  'key_sources.filesystem.raw_load_concurrency': flagged(CONCURRENCY, 128, 'Parallel raw key loaders'),
  'key_sources.memory.persist_dir': flagged(
    text,
    undefined,
    'A directory that keeps keystores that are imported into memory over a restart. One signer for one directory',
  ),
  'key_sources.memory.persist_secret': unflagged(
    secret,
    undefined,
    'Encrypts the passwords of the keystores of persist_dir, which nobody opens without it. At least 16 characters',
  ),
  'key_sources.dynamodb.table': flagged(table, undefined, 'Key table: its name or its ARN'),
  'key_sources.dynamodb.status_filter': flagged(
    listOf(oneOf('active', 'inactive')),
    ONLY_ACTIVE,
    'Statuses of keys to load',
  ),
  'key_sources.dynamodb.refresh_interval_seconds': flagged(SECONDS_OR_OFF, 1, 'Reload period; 0 disables'),
  'key_sources.dynamodb.max_concurrent_reads': flagged(CONCURRENCY, 16, 'Parallel reads'),
} as const satisfies Record<string, Option>;

// Options of the routes that list, make, import and remove keys. All that change something are off by default.

const ITEMS = integer(1, 10_000);

export const KEY_ROUTE_OPTIONS = {
  'http.key_manager_api.enabled': flagged(booleanValue, false, 'Mount /eth/v1/keystores'),
  'http.key_manager_api.max_concurrent_reads': flagged(CONCURRENCY, 50, 'Concurrent GET and DELETE'),
  'http.key_manager_api.max_concurrent_writes': flagged(CONCURRENCY, 10, 'Concurrent POST'),
  'http.key_manager_api.request_timeout_seconds': flagged(
    SECONDS,
    30,
    'Timeout',
    '--http-key-manager-api-timeout-seconds',
  ),
  'http.key_manager_api.max_items_per_request': flagged(ITEMS, 100, 'Items per import or delete'),
  'chamber.keys.list.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent GET /api/v1/chamber/keys'),
  'chamber.keys.generate.enabled': flagged(booleanValue, false, 'Mount the generate route'),
  'chamber.keys.generate.max_items_per_request': flagged(ITEMS, 100, 'Keys per request'),
  'chamber.keys.generate.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent requests'),
  'chamber.keys.generate.request_timeout_seconds': flagged(
    SECONDS,
    600,
    'Timeout',
    '--chamber-keys-generate-timeout-seconds',
  ),
  'chamber.keys.generate_keys.enabled': flagged(booleanValue, false, 'Mount the generate-keys route'),
  'chamber.keys.generate_keys.max_items_per_request': flagged(ITEMS, 100, 'Keys per request'),
  'chamber.keys.generate_keys.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent requests'),
  'chamber.keys.generate_keys.request_timeout_seconds': flagged(
    SECONDS,
    600,
    'Timeout',
    '--chamber-keys-generate-keys-timeout-seconds',
  ),
  'chamber.keys.deposit_data.enabled': flagged(booleanValue, false, 'Mount the deposit-data route'),
  'chamber.keys.deposit_data.max_items_per_request': flagged(ITEMS, 100, 'Public keys per request'),
  'chamber.keys.deposit_data.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent requests'),
  'chamber.keys.deposit_data.request_timeout_seconds': flagged(
    SECONDS,
    600,
    'Timeout',
    '--chamber-keys-deposit-data-timeout-seconds',
  ),
  'chamber.keys.deposit_data.allow_recompute': flagged(booleanValue, false, 'Permit force_recompute_on_conflict=true'),
  'chamber.keys.backup.recipients': flagged(
    listThat('a list of age X25519 public keys', ageRecipientSchema),
    [],
    'Non-empty makes generate and generate_keys back each key up as a mnemonic encrypted to these recipients',
  ),
  'chamber.keys.import.enabled': flagged(booleanValue, false, 'Mount the import route'),
  'chamber.keys.import.max_items_per_request': flagged(ITEMS, 100, 'Keys per request'),
  'chamber.keys.import.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent requests'),
  'chamber.keys.import.request_timeout_seconds': flagged(
    SECONDS,
    600,
    'Timeout',
    '--chamber-keys-import-timeout-seconds',
  ),
  'chamber.keys.lifecycle.enabled': flagged(booleanValue, false, 'Mount PATCH and DELETE /api/v1/chamber/keys'),
  'chamber.keys.lifecycle.max_items_per_request': flagged(ITEMS, 500, 'Keys per batch'),
  'chamber.keys.lifecycle.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent requests'),
  'chamber.keys.lifecycle.request_timeout_seconds': flagged(
    SECONDS,
    600,
    'Timeout',
    '--chamber-keys-lifecycle-timeout-seconds',
  ),
} as const satisfies Record<string, Option>;
