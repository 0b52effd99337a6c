// A key that can sign, and what became of one that was to be loaded.

import type { KeyHandle } from './vault.ts';

export type KeySource = 'filesystem' | 'dynamodb' | 'memory';

export interface LoadedKey {
  readonly publicKey: string;
  readonly handle: KeyHandle;
  readonly source: KeySource;
  /** Unix seconds, which take no memory of their own until 2038. */
  readonly loadedAt: number;
  /** The key's tenure when the source of this copy was read. */
  readonly tenure: number;
}

export type KeyRefusal = 'invalid_secret_key' | 'public_key_mismatch' | 'too_many_keys' | 'sealed';

/** `duplicate` carries the key that was there first and stays. */
export type AddedKey =
  | { readonly outcome: 'added'; readonly key: LoadedKey }
  | { readonly outcome: 'duplicate'; readonly key: LoadedKey }
  /** `publicKey`: of a key that is one too many. */
  | { readonly outcome: 'refused'; readonly reason: KeyRefusal; readonly publicKey?: string };
