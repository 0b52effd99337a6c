// Shamir's secret sharing over GF(2^8) (specification/custody.md#shares). It refuses a share at x = 0, which the
// package does not: there the polynomial is the secret itself, so a forged share would choose the master key.

import { combine, split } from 'shamir-secret-sharing';

export const MASTER_KEY_BYTES = 32;

/** @param threshold 1 makes every share a copy of the secret @returns `count` shares, the caller's to wipe */
export async function splitSecret(secret: Buffer, count: number, threshold: number): Promise<Buffer[]> {
  if (secret.length !== MASTER_KEY_BYTES) throw new RangeError('a master key has 32 bytes');
  if (threshold < 1 || threshold > count) throw new RangeError('a threshold is from 1 to the number of shares');
  if (threshold === 1) return Array.from({ length: count }, () => Buffer.from(secret));
  return (await split(plainArray(secret), count, threshold)).map(moved);
}

/** @param shares as many as the threshold @returns a candidate, or undefined when these cannot be of one secret */
export async function combineShares(shares: readonly Buffer[]): Promise<Buffer | undefined> {
  const [only] = shares;
  if (shares.length <= 1) return only?.length === MASTER_KEY_BYTES ? Buffer.from(only) : undefined;
  if (shares.some((share) => share.length !== MASTER_KEY_BYTES + 1)) return undefined;
  const points = shares.map((share) => share[MASTER_KEY_BYTES]);
  if (points.includes(0) || new Set(points).size !== points.length) return undefined;
  return moved(await combine(shares.map(plainArray)));
}

/** The package takes arrays whose constructor is Uint8Array itself. The memory is the same. */
function plainArray({ buffer, byteOffset, byteLength }: Uint8Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** The package's small array lies on the JavaScript heap; its `buffer` would be a copy that leaves the bytes behind. */
function moved(array: Uint8Array): Buffer {
  const own = Buffer.from(new ArrayBuffer(array.length));
  own.set(array);
  array.fill(0);
  return own;
}
