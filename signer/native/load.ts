// The one door to the native addon. An addon that was never built is a value (undefined); one that is there and does
// not load is an error, because it was built to be used.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

export type MemoryPolicy = 'off' | 'best_effort' | 'required';

export const RAISE_MEMLOCK =
  'raise RLIMIT_MEMLOCK (32 bytes a key, in steps of 16 KiB; ulimit -l, LimitMEMLOCK=, --ulimit memlock=)';

/** Opaque, as `Connecting`. */
export type Keyring = object & { readonly __brand: 'Keyring' };

type Connecting = object & { readonly __brand: 'Connecting' };

/**
 * A descriptor that is returned belongs to the caller; a negative number is a negated errno. Outside Linux the
 * functions of vsock, of the NSM and of the filter throw "unsupported platform". A keyring's handles are positive whole
 * numbers; a stale one names no other key.
 */
export interface Addon {
  /**
   * @param rootTables whether roots that many keys sign get a table of their multiples (multiples.h)
   * @param threads that sign, 1 to 256; they live as long as the keyring
   * @throws Error when there is no memory, when there are no threads or, under `required`, when memory cannot be locked
   */
  openKeyring(policy: MemoryPolicy, rootTables: boolean, threads: number): Keyring;
  /**
   * @param secretKey 32 bytes, big endian, copied @param publicKey 48 bytes, written @returns the handle
   * @throws RangeError when the scalar is zero or not below the group order; Error without (locked) memory for it
   */
  addKey(keyring: Keyring, secretKey: Uint8Array, publicKey: Uint8Array): number;
  /**
   * @param secretKeys 32 bytes each, big endian, copied
   * @param handles written; 1 to 1024. 0, which names no key, for a scalar that is zero or not below the group order
   * @throws Error when there is no (locked) memory for all of them: then none is taken
   */
  takeKeys(keyring: Keyring, secretKeys: Uint8Array, handles: Float64Array): void;
  /** Of 1 to 16 keys. @returns 48 bytes a key, in order; zeros where the handle was stale when the batch was queued */
  publicKeys(keyring: Keyring, handles: Float64Array): Promise<ArrayBuffer>;
  removeKey(keyring: Keyring, handle: number): void;
  /** Keys whose memory is not locked, or not left out of core dumps. */
  unlockedKeys(keyring: Keyring): number;
  wipeKeyring(keyring: Keyring): void;
  /** The memory is given back when the last batch has ended. */
  closeKeyring(keyring: Keyring): void;
  /**
   * @param roots 1 to 16, 32 bytes each, concatenated, copied
   * @returns 96 bytes a job, in order; zeros where the handle was stale when the batch was queued
   */
  signBatch(keyring: Keyring, handles: Float64Array, roots: Uint8Array): Promise<ArrayBuffer>;
  /** One root (32 bytes, copied) with 1 to 16 keys, on threads of its own, which stand back (core.c). */
  signGroup(keyring: Keyring, handles: Float64Array, root: Uint8Array): Promise<ArrayBuffer>;
  /**
   * Shares of a key (shares.h). The shares go into memory that the caller wipes.
   * @param random 48 bytes for each coefficient of the polynomial but the first @param shares 2 to 32, 32 bytes each,
   * big endian, written: those of the participants 1, 2 and so on @param commitments 48 bytes each, as many as the
   * threshold, written: the first is the public key of the whole
   * @throws RangeError when the key is zero or not below the group order, or for random bytes that have to be others
   */
  splitKey(secretKey: Uint8Array, random: Uint8Array, shares: Uint8Array, commitments: Uint8Array): void;
  /**
   * @param commitments 48 bytes each, 1 to 32 @param participantId 1 to 32 @param publicKey 48 bytes, written
   * @throws RangeError when a commitment is no point of the group, or the share would be zero
   */
  sharePublicKey(commitments: Uint8Array, participantId: number, publicKey: Uint8Array): void;
  /**
   * The signature of the whole key, which the caller verifies: nothing is verified here.
   * @param participantIds a byte each, 1 to 32 of them @param partials 96 bytes each @param signature 96 bytes, written
   * @throws RangeError when a participant is named twice or is zero, or a partial signature is no point of the curve
   */
  combinePartials(participantIds: Uint8Array, partials: Uint8Array, signature: Uint8Array): void;
  /** Of the process, by whether they are locked and left out of core dumps. */
  secretMemory(): { readonly lockedBytes: number; readonly unlockedBytes: number };
  /**
   * Zeroed memory like the keys'. Wiped when it is collected; a caller that is done with it earlier fills it with
   * zeros.
   */
  allocateSecret(lengthBytes: number, policy: MemoryPolicy): ArrayBuffer;
  /** On Linux also marks the process not dumpable. @throws Error when the system refuses */
  disableCoreDumps(): void;
  /** What native code has freed goes back to the system, as far as the C library can (glibc). */
  returnFreedMemory(): void;
  /**
   * By the kernel, and whether a time service sets it right; in milliseconds since the Unix epoch. Undefined where the
   * system does not say.
   */
  kernelClock(): { readonly milliseconds: number; readonly isSynchronised: boolean } | undefined;
  /** The system calls that seccomp.c lists, in every thread and for good. @throws Error with the system's reason */
  installSystemCallFilter(): void;

  /** Non-blocking, bound to a port of every CID of this machine. @returns its descriptor, or an error */
  vsockBind(port: number): number;
  /** @returns 0, or an error */
  vsockListen(descriptor: number, backlog: number): number;
  /**
   * @param done called once, with the descriptor or an error; not called when the answer is a number
   * @returns what is under way; or, when that is decided at once, the descriptor or an error
   */
  vsockConnect(cid: number, port: number, done: (result: number) => void): Connecting | number;
  /** Closes the socket. `done` is not called any more. Harmless when it has ended. */
  vsockCancel(connecting: Connecting): void;
  /** @returns the CID at the other end, or an error */
  vsockPeerCid(descriptor: number): number;
  /** @returns this machine's CID, or an error */
  vsockLocalCid(): number;
  /** Connected, its other end closed: what Node takes for a stream. @returns its descriptor, or an error */
  unixStream(): number;
  /** Bound to a name of the kernel's choice, and not listening. @returns its descriptor, or an error */
  unixListener(): number;
  /** dup3; `source` stays open. @returns `target`, or an error */
  replaceDescriptor(source: number, target: number): number;

  /**
   * The descriptor has to stay open meanwhile.
   * @param request CBOR, 1 to 4096 bytes, copied @returns the answer, at most 12288 bytes
   * @throws Error with the system's `errno`, negated
   */
  nsmRequest(descriptor: number, request: Uint8Array): Promise<Buffer>;

  /**
   * Of the log of receipts (receipts.h).
   * @param bundle of 256 entries @param root 32 bytes, written @throws RangeError for bytes that are no full bundle
   */
  bundleRoot(bundle: Uint8Array, root: Uint8Array): void;
}

export const ADDON_PATH = fileURLToPath(new URL('../../build/native/strongroom.node', import.meta.url));

/** @returns undefined when it has not been built @throws when it is there and cannot be loaded */
export function loadAddon(path: string = ADDON_PATH): Addon | undefined {
  if (!existsSync(path)) return undefined;
  return createRequire(import.meta.url)(path) as Addon;
}
