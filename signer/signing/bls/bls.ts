// The interface between the signing path and BLS arithmetic: native.ts (our addon over blst) and portable.ts
// (@chainsafe/blst in worker threads). blst does the arithmetic, with one exception: our code chooses points from a
// table of a root's multiples (native/multiples.c).

import type { SignerError } from '../../api/errors.ts';
import type { HeldKey, KeyHandle } from '../../keys/vault.ts';

export type GroupSignature = Uint8Array | SignerError;

/** A lane of the core's queue. `priority` jobs are taken before `normal` ones. */
export type Lane = 'normal' | 'priority';

export const MAX_KEYS_AT_ONCE = 1024;

export interface BlsCore {
  readonly kind: 'native' | 'portable';
  readonly memoryLocked: boolean;
  /** Loaded keys of which that is not so. */
  unlockedKeys(): number;

  /**
   * Take a copy of a secret key (32 bytes, big endian) into the core; the caller wipes its own.
   * @returns the handle and the compressed public key (48 bytes)
   * @throws RangeError when the scalar is zero or not below the group order
   */
  addKey(secretKey: Uint8Array): HeldKey;

  /**
   * Copies many secret keys (32 bytes each, big endian, at most MAX_KEYS_AT_ONCE) before it returns; the caller wipes
   * its own then. @returns in order; undefined where the scalar is zero or not below the group order
   * Rejects with SignerError `signing_unavailable` when the core is closed, or wiped before their turn, and with
   * another error when there is no memory: then none of them is held.
   */
  addKeys(secretKeys: Uint8Array): Promise<readonly (HeldKey | undefined)[]>;

  /** Wipe a key. Jobs already under way with it finish; later ones reject. Unknown handles are ignored. */
  removeKey(handle: KeyHandle): void;

  /**
   * BLS signature (G2, 96 bytes compressed) of a 32-byte root under the Ethereum proof-of-possession suite. Rejects
   * with SignerError `signing_unavailable` when the handle is gone or the core is closed, or `overloaded`.
   */
  sign(handle: KeyHandle, signingRoot: Uint8Array, lane: Lane, caller?: string): Promise<Uint8Array>;

  /** In the order of the handles, each as `sign` makes it. In the normal lane the jobs of `sign` overtake groups. */
  signGroup(handles: readonly KeyHandle[], signingRoot: Uint8Array, lane: Lane): Promise<readonly GroupSignature[]>;

  load(): { readonly queued: number; readonly running: number };

  wipe(): void;

  close(): Promise<void>;
}
