// Derives the public keys of many secrets that a core already holds. When a batch fails, all of them are removed.

import { type HeldKey, type KeyHandle, SECRET_KEY_BYTES } from '../keys/vault.ts';
import { chunks } from '../parallel.ts';
import { MAX_KEYS_AT_ONCE } from './bls.ts';
import { signingUnavailable } from './queue.ts';

/** 1.3 ms of a thread, less than a batch of signatures takes. */
const MAX_DERIVATIONS = 16;
export const PUBLIC_KEY_BYTES = 48;

type DerivePublicKeys = (handles: readonly KeyHandle[]) => Promise<readonly (Uint8Array | undefined)[]>;

/** @throws TypeError when it is no whole number of keys, or too many */
export function countSecretKeys(secretKeys: Uint8Array): number {
  const count = secretKeys.length / SECRET_KEY_BYTES;
  if (!Number.isInteger(count)) throw new TypeError('a secret key has 32 bytes');
  if (count > MAX_KEYS_AT_ONCE) throw new TypeError(`at most ${MAX_KEYS_AT_ONCE} keys are added at once`);
  return count;
}

export async function heldKeys(
  handles: readonly KeyHandle[],
  derive: DerivePublicKeys,
  removeKey: (handle: KeyHandle) => void,
): Promise<readonly (HeldKey | undefined)[]> {
  const ended = await Promise.allSettled(chunks(handles, MAX_DERIVATIONS).map(derive));
  const failed = ended.find((batch) => batch.status === 'rejected');
  if (failed !== undefined) {
    for (const handle of handles) removeKey(handle);
    throw failed.reason;
  }
  const publicKeys = ended.flatMap((batch) => (batch.status === 'fulfilled' ? batch.value : []));
  return handles.map((handle, index) => {
    const publicKey = publicKeys[index];
    if (publicKey !== undefined) return { handle, publicKey };
    removeKey(handle);
    return undefined;
  });
}

/** No compressed point begins with a zero byte: undefined where there are zeros. */
export function splitPublicKeys(answer: Uint8Array, count: number): (Uint8Array | undefined)[] {
  if (answer.length !== count * PUBLIC_KEY_BYTES) throw signingUnavailable('public keys are missing');
  return Array.from({ length: count }, (_, index) => {
    const publicKey = answer.subarray(index * PUBLIC_KEY_BYTES, (index + 1) * PUBLIC_KEY_BYTES);
    return publicKey[0] === 0 ? undefined : publicKey;
  });
}

export type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

export function placesFor(limit: number): InTurn {
  let free = limit;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}
