// The one door to the native addon: its types, where it lies, and loading it. An addon that was never built is a value
// (undefined); one that is there and does not load is an error, because somebody meant to have it.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/** What `server.mlock` may say (specification/operating.md#secrets). */
export type MemoryPolicy = 'off' | 'best_effort' | 'required';

/** What to do where memory cannot be locked. */
export const RAISE_MEMLOCK =
  'raise RLIMIT_MEMLOCK (32 bytes a key, in steps of 16 KiB; ulimit -l, LimitMEMLOCK=, --ulimit memlock=)';

/** Secret keys in the addon's memory. Opaque. */
export type Keyring = object & { readonly __brand: 'Keyring' };

/** A connect under way. Opaque. */
export type Connecting = object & { readonly __brand: 'Connecting' };

/**
 * Below, a descriptor that is returned belongs to whoever called, and a negative number is a negated errno
 * (`util.getSystemErrorName` has its name). Where there is no Linux the functions of vsock, of the NSM and of the
 * filter throw "unsupported platform".
 *
 * Handles of a keyring are positive whole numbers. A stale one never names another key.
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
   * @throws RangeError when the scalar is zero or not below the group order; Error when there is no (locked) memory for
   * it
   */
  addKey(keyring: Keyring, secretKey: Uint8Array, publicKey: Uint8Array): number;
  /**
   * Take many secret keys without their public keys, which `publicKeys` gives later.
   * @param secretKeys 32 bytes each, big endian, copied
   * @param handles written; 1 to 1024. 0, which names no key, for a scalar that is zero or not below the group order
   * @throws Error when there is no (locked) memory for all of them: then none is taken
   */
  takeKeys(keyring: Keyring, secretKeys: Uint8Array, handles: Float64Array): void;
  /**
   * Derive the public keys of 1 to 16 keys on one of the threads that sign groups.
   * @returns 48 bytes a key, in order; zeros where the handle was stale when the batch was queued
   */
  publicKeys(keyring: Keyring, handles: Float64Array): Promise<ArrayBuffer>;
  removeKey(keyring: Keyring, handle: number): void;
  /** Keys whose memory is not locked, or not left out of core dumps. */
  unlockedKeys(keyring: Keyring): number;
  wipeKeyring(keyring: Keyring): void;
  /**
   * Wipe, and give the memory back when the last batch has ended. The keyring takes no keys and no batches after this.
   */
  closeKeyring(keyring: Keyring): void;
  /**
   * Sign 1 to 16 roots (32 bytes each, concatenated, copied) on one of the keyring's threads. Batches are begun in
   * order.
   * @returns 96 bytes a job, in order; zeros where the handle was stale when the batch was queued
   */
  signBatch(keyring: Keyring, handles: Float64Array, roots: Uint8Array): Promise<ArrayBuffer>;
  /**
   * Sign one root (32 bytes, copied) with 1 to 16 keys, as `signBatch` does, on threads of its own: as many, which
   * stand back (core.c).
   */
  signGroup(keyring: Keyring, handles: Float64Array, root: Uint8Array): Promise<ArrayBuffer>;
  /** Bytes of the process's secret memory, by whether they are locked and left out of core dumps. */
  secretMemory(): { readonly lockedBytes: number; readonly unlockedBytes: number };
  /**
   * A zeroed buffer in memory like the keys'. Wiped when it is collected; whoever is done with it earlier fills it with
   * zeros.
   */
  allocateSecret(lengthBytes: number, policy: MemoryPolicy): ArrayBuffer;
  /** Limit core dumps to nothing and, on Linux, mark the process not dumpable. @throws Error when the system refuses */
  disableCoreDumps(): void;
  /**
   * Refuse, in every thread and for good, the system calls that seccomp.c lists.
   * @throws Error with the system's reason, or "unsupported platform"
   */
  installSystemCallFilter(): void;

  /** A non-blocking vsock socket, bound to a port of every CID of this machine. @returns its descriptor, or an error */
  vsockBind(port: number): number;
  /** @returns 0, or an error */
  vsockListen(descriptor: number, backlog: number): number;
  /**
   * @param done called once, on the event loop, with the descriptor or an error; not called when the answer is a number
   * @returns what is under way; or, when that is decided at once, the descriptor or an error
   */
  vsockConnect(cid: number, port: number, done: (result: number) => void): Connecting | number;
  /** End a connect and close its socket. `done` is not called any more. Harmless when it has ended. */
  vsockCancel(connecting: Connecting): void;
  /** @returns the CID at the other end of a vsock connection, or an error */
  vsockPeerCid(descriptor: number): number;
  /** @returns this machine's CID, or an error */
  vsockLocalCid(): number;
  /**
   * A connected Unix socket whose other end is closed: what Node takes for a stream.
   * @returns its descriptor, or an error
   */
  unixStream(): number;
  /**
   * A Unix socket that is bound to a name of the kernel's choice, and not listening.
   * @returns its descriptor, or an error
   */
  unixListener(): number;
  /** Let `target` be what `source` is (dup3); `source` stays open. @returns `target`, or an error */
  replaceDescriptor(source: number, target: number): number;

  /**
   * One exchange with the Nitro Secure Module, on libuv's pool. The descriptor has to stay open meanwhile.
   * @param request CBOR, 1 to 4096 bytes, copied @returns the answer, at most 12288 bytes
   * @throws Error with the system's `errno`, negated
   */
  nsmRequest(descriptor: number, request: Uint8Array): Promise<Buffer>;
}

/** Where `make native` puts it. */
export const ADDON_PATH = fileURLToPath(new URL('../../build/native/strongroom.node', import.meta.url));

/** @returns undefined when the addon has not been built @throws when it is there and cannot be loaded */
export function loadAddon(path: string = ADDON_PATH): Addon | undefined {
  if (!existsSync(path)) return undefined;
  return createRequire(import.meta.url)(path) as Addon;
}
