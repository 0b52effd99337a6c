// Options of where validator keys come from: folders, imports into memory, the key table.

import { flagged, type Option, unflagged } from '../option.ts';
import type { Secret } from '../values/secret.ts';
import { secretSchema } from '../values/static-auth.ts';
import { type Kind, listOf, oneOf, table, text } from '../values/values.ts';
import { CONCURRENCY, SECONDS_OR_OFF } from './ranges.ts';

/** Made a Secret before it is read (load.ts). */
const secret: Kind<Secret> = { expects: 'env:VAR_NAME, file:/PATH or the secret', form: 'text', schema: secretSchema };

export const KEY_SOURCE_OPTIONS = {
  'key_sources.filesystem.paths': flagged(listOf(text, 'repeated'), [], 'Key directories'),
  'key_sources.filesystem.keystores.path': flagged(
    text,
    undefined,
    'A directory of keystores, NAME.json each, without descriptors; passwords_path or password_file says where their passwords are',
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
    'A file that keeps the keys of keystores once they are decrypted, encrypted under a key that only the passwords of all of them give: ' +
      'later starts derive one key instead of thousands. Unset: none is kept',
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
    'A directory for keystores that are imported into memory, so that a restart has them again; needs persist_secret. Unset: ' +
      'they are gone at the end of the process. One signer for one directory',
  ),
  'key_sources.memory.persist_secret': unflagged(
    secret,
    undefined,
    'Encrypts the passwords of the keystores of persist_dir; without it nobody opens them. At least 16 characters',
  ),
  'key_sources.dynamodb.table': flagged(table, undefined, 'Key table: its name or its ARN'),
  'key_sources.dynamodb.status_filter': flagged(
    listOf(oneOf('active', 'inactive')),
    ['active'],
    'Statuses of keys to load',
  ),
  'key_sources.dynamodb.refresh_interval_seconds': flagged(SECONDS_OR_OFF, 1, 'Reload period; 0 disables'),
  'key_sources.dynamodb.max_concurrent_reads': flagged(CONCURRENCY, 16, 'Parallel reads'),
} as const satisfies Record<string, Option>;
