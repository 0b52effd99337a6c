// Options of the routes that list, make, import and remove keys. All that change something are off by default, and each
// has its own limits.

import { ageRecipientSchema } from '../../../ceremony/definition.ts';
import { flagged, type Option } from '../option.ts';
import { boolean, integer, listThat } from '../values/values.ts';
import { CONCURRENCY, SECONDS } from './ranges.ts';

const ITEMS = integer(1, 10_000);

export const KEY_ROUTE_OPTIONS = {
  'http.key_manager_api.enabled': flagged(boolean, false, 'Mount /eth/v1/keystores'),
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
  'chamber.keys.generate.enabled': flagged(boolean, false, 'Mount the generate route'),
  'chamber.keys.generate.max_items_per_request': flagged(ITEMS, 100, 'Keys per request'),
  'chamber.keys.generate.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent requests'),
  'chamber.keys.generate.request_timeout_seconds': flagged(
    SECONDS,
    600,
    'Timeout',
    '--chamber-keys-generate-timeout-seconds',
  ),
  'chamber.keys.generate_keys.enabled': flagged(boolean, false, 'Mount the generate-keys route'),
  'chamber.keys.generate_keys.max_items_per_request': flagged(ITEMS, 100, 'Keys per request'),
  'chamber.keys.generate_keys.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent requests'),
  'chamber.keys.generate_keys.request_timeout_seconds': flagged(
    SECONDS,
    600,
    'Timeout',
    '--chamber-keys-generate-keys-timeout-seconds',
  ),
  'chamber.keys.deposit_data.enabled': flagged(boolean, false, 'Mount the deposit-data route'),
  'chamber.keys.deposit_data.max_items_per_request': flagged(ITEMS, 100, 'Public keys per request'),
  'chamber.keys.deposit_data.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent requests'),
  'chamber.keys.deposit_data.request_timeout_seconds': flagged(
    SECONDS,
    600,
    'Timeout',
    '--chamber-keys-deposit-data-timeout-seconds',
  ),
  'chamber.keys.deposit_data.allow_recompute': flagged(boolean, false, 'Permit force_recompute_on_conflict=true'),
  'chamber.keys.backup.recipients': flagged(
    listThat('a list of age X25519 public keys', ageRecipientSchema),
    [],
    'Non-empty makes generate and generate_keys back each key up as a mnemonic encrypted to these recipients',
  ),
  'chamber.keys.import.enabled': flagged(boolean, false, 'Mount the import route'),
  'chamber.keys.import.max_items_per_request': flagged(ITEMS, 100, 'Keys per request'),
  'chamber.keys.import.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent requests'),
  'chamber.keys.import.request_timeout_seconds': flagged(
    SECONDS,
    600,
    'Timeout',
    '--chamber-keys-import-timeout-seconds',
  ),
  'chamber.keys.lifecycle.enabled': flagged(boolean, false, 'Mount PATCH and DELETE /api/v1/chamber/keys'),
  'chamber.keys.lifecycle.max_items_per_request': flagged(ITEMS, 500, 'Keys per batch'),
  'chamber.keys.lifecycle.max_concurrent_requests': flagged(CONCURRENCY, 16, 'Concurrent requests'),
  'chamber.keys.lifecycle.request_timeout_seconds': flagged(
    SECONDS,
    600,
    'Timeout',
    '--chamber-keys-lifecycle-timeout-seconds',
  ),
} as const satisfies Record<string, Option>;
