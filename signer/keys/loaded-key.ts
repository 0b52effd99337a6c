// A key that can sign, and what became of one that was to be loaded.

import { isDeepStrictEqual } from 'node:util';
import type { KeyShare } from '../api/distributed.ts';
import type { KeyHandle } from './vault.ts';

export type KeySource = 'filesystem' | 'dynamodb' | 'memory';

export interface LoadedKey {
  /** The validator's, by which all that the signer knows of a key goes: of a share, the composite one. */
  readonly publicKey: string;
  readonly handle: KeyHandle;
  readonly source: KeySource;
  /** Unix seconds, which take no memory of their own until 2038. */
  readonly loadedAt: number;
  /** The key's tenure when the source of this copy was read. */
  readonly tenure: number;
  /** Absent for a whole key. */
  readonly share?: KeyShare;
}

/** What a secret key has to be: of this public key, or this share. */
export type ExpectedKey = string | KeyShare | undefined;

export type KeyRefusal = 'invalid_secret_key' | 'public_key_mismatch' | 'too_many_keys' | 'sealed' | ShareRefusal;

type ShareRefusal = keyof typeof SHARE_REFUSALS;

export const SHARE_REFUSALS = {
  share_mismatch: 'the share does not fit its commitments: it is damaged, or of another key, participant or set',
  share_unsupported: 'a share of a distributed key needs the native core of a plain service',
  held_otherwise: 'this signer holds the key in another form, whole or as another share: remove that one first',
} as const;

/** Both whole, or the very same share. */
export function isSameForm(one: KeyShare | undefined, other: KeyShare | undefined): boolean {
  return isDeepStrictEqual(one, other);
}

/** `duplicate` carries the key that was there first and stays. */
export type AddedKey =
  | { readonly outcome: 'added'; readonly key: LoadedKey }
  | { readonly outcome: 'duplicate'; readonly key: LoadedKey }
  /** `publicKey`: of a key that is one too many, or here in another form. */
  | { readonly outcome: 'refused'; readonly reason: KeyRefusal; readonly publicKey?: string };
