// The interface between the signing path and BLS arithmetic. blst does it, with one exception: our code chooses points
// from a table of a root's multiples (native/multiples.c).

import type { SignerError } from '../api/errors.ts';
import type { KeyHandle, SecretKeyVault } from '../keys/vault.ts';

export type GroupSignature = Uint8Array | SignerError;

/** A lane of the core's queue. `priority` jobs are taken before `normal` ones. */
export type Lane = 'normal' | 'priority';

export const MAX_KEYS_AT_ONCE = 1024;

export interface BlsCore extends SecretKeyVault {
  readonly kind: 'native' | 'portable';
  readonly memoryLocked: boolean;
  /** How many loaded keys lie outside locked memory. */
  unlockedKeys(): number;

  /**
   * BLS signature (G2, 96 bytes compressed) of a 32-byte root under the Ethereum proof-of-possession suite. Rejects
   * with SignerError `signing_unavailable` when the handle is gone or the core is closed, or `overloaded`.
   */
  sign(handle: KeyHandle, signingRoot: Uint8Array, lane: Lane, caller?: string): Promise<Uint8Array>;

  /** In the order of the handles. In the normal lane the jobs of `sign` overtake groups. */
  signGroup(handles: readonly KeyHandle[], signingRoot: Uint8Array, lane: Lane): Promise<readonly GroupSignature[]>;

  load(): { readonly queued: number; readonly running: number };

  close(): Promise<void>;
}
