// The interface between the signing path and BLS arithmetic. Two cores implement it: native.ts (our addon over blst)
// and portable.ts (@chainsafe/blst in worker threads). blst does the arithmetic, with one exception: our code chooses
// points from a table of a root's multiples (native/multiples.c).

import type { SignerError } from '../../api/errors.ts';
import type { HeldKey, KeyHandle } from '../../keys/vault.ts';

/** What one key of a group got: its signature, or why there is none. */
export type GroupSignature = Uint8Array | SignerError;

/** A lane of the core's queue. `priority` jobs are taken before `normal` ones. */
export type Lane = 'normal' | 'priority';

/** The most keys that one `addKeys` takes. */
export const MAX_KEYS_AT_ONCE = 1024;

export interface BlsCore {
  readonly kind: 'native' | 'portable';
  /** Whether secret keys lie in memory that is locked and left out of core dumps. */
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
   * Take copies of many secret keys (32 bytes each, big endian, at most MAX_KEYS_AT_ONCE) before it returns; the caller
   * wipes its own then. The signing threads derive their public keys, behind the jobs of `sign` and beside those of
   * groups.
   * @returns in order; undefined where the scalar is zero or not below the group order
   * Rejects with SignerError `signing_unavailable` when the core is closed, or wiped before their turn, and with
   * another error when there is no memory: then none of them is held. Wiped in their turn, they come with stale
   * handles.
   */
  addKeys(secretKeys: Uint8Array): Promise<readonly (HeldKey | undefined)[]>;

  /** Wipe a key. Jobs already under way with it finish; later ones reject. Unknown handles are ignored. */
  removeKey(handle: KeyHandle): void;

  /**
   * BLS signature (G2, 96 bytes compressed) of a 32-byte root under the Ethereum proof-of-possession suite.
   * Rejects with SignerError `signing_unavailable` when the handle is gone or the core is closed, `overloaded` when its
   * queue is full. Callers take turns in a lane.
   */
  sign(handle: KeyHandle, signingRoot: Uint8Array, lane: Lane, caller?: string): Promise<Uint8Array>;

  /**
   * Signatures of one root by many keys, in the order of the handles, each as `sign` makes it. In the normal lane the
   * jobs of `sign` overtake those of groups, which get a share of a busy core all the same. Rejects with
   * `signing_unavailable` when the core is closed, `overloaded` when its queue has too little room for all of them.
   */
  signGroup(handles: readonly KeyHandle[], signingRoot: Uint8Array, lane: Lane): Promise<readonly GroupSignature[]>;

  /** Jobs waiting in the core and jobs under way. */
  load(): { readonly queued: number; readonly running: number };

  /** Wipe every key. The core stays usable: new keys can be added. */
  wipe(): void;

  /** Wipe, then end workers. Pending jobs reject. */
  close(): Promise<void>;
}
