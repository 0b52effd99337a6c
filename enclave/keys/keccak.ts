// Keccak-256 as Ethereum uses it (FIPS 202's permutation with the padding from before the standard, which node:crypto does not
// have). For the checksum of an address only: a few bytes, and nothing secret.

/** FIPS 202 §3.2.5, the round constants of iota. */
const ROUND_CONSTANTS = [
  0x0000000000000001n,
  0x0000000000008082n,
  0x800000000000808an,
  0x8000000080008000n,
  0x000000000000808bn,
  0x0000000080000001n,
  0x8000000080008081n,
  0x8000000000008009n,
  0x000000000000008an,
  0x0000000000000088n,
  0x0000000080008009n,
  0x000000008000000an,
  0x000000008000808bn,
  0x800000000000008bn,
  0x8000000000008089n,
  0x8000000000008003n,
  0x8000000000008002n,
  0x8000000000000080n,
  0x000000000000800an,
  0x800000008000000an,
  0x8000000080008081n,
  0x8000000000008080n,
  0x0000000080000001n,
  0x8000000080008008n,
];
/** FIPS 202 §3.2.2, the offsets of rho, by lane x + 5y. */
const ROTATIONS = [0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14];
const RATE_BYTES = 136;
const LANES = 25;
const LANE_MASK = (1n << 64n) - 1n;

/** @param message shorter than one block of 136 bytes @param padding 0x01 for Keccak-256, 0x06 for SHA3-256 */
export function keccak256(message: Uint8Array, padding: 0x01 | 0x06 = 0x01): Buffer {
  if (message.length >= RATE_BYTES) throw new RangeError('keccak256 takes less than one block');
  const block = Buffer.alloc(LANES * 8);
  block.set(message);
  block[message.length] = padding;
  block[RATE_BYTES - 1] = (block[RATE_BYTES - 1] ?? 0) | 0x80;
  const state = Array.from({ length: LANES }, (_, lane) => block.readBigUInt64LE(lane * 8));
  for (const constant of ROUND_CONSTANTS) round(state, constant);
  for (const [lane, value] of state.entries()) block.writeBigUInt64LE(value, lane * 8);
  return block.subarray(0, 32);
}

/** theta, rho and pi, chi, iota: FIPS 202 §3.2. */
function round(state: bigint[], constant: bigint): void {
  const lane = (x: number, y: number): bigint => state[(x % 5) + 5 * y] ?? 0n;
  const parity = [0, 1, 2, 3, 4].map((x) => lane(x, 0) ^ lane(x, 1) ^ lane(x, 2) ^ lane(x, 3) ^ lane(x, 4));
  const mixed = state.map((value, i) => value ^ (parity[(i + 4) % 5] ?? 0n) ^ rotate(parity[(i + 1) % 5] ?? 0n, 1));
  const moved: bigint[] = [];
  for (const [i, value] of mixed.entries()) {
    const [x, y] = [i % 5, Math.floor(i / 5)];
    moved[y + 5 * ((2 * x + 3 * y) % 5)] = rotate(value, ROTATIONS[i] ?? 0);
  }
  const at = (x: number, row: number): bigint => moved[(x % 5) + 5 * row] ?? 0n;
  for (let i = 0; i < LANES; i++) {
    const [x, row] = [i % 5, Math.floor(i / 5)];
    state[i] = at(x, row) ^ (~at(x + 1, row) & LANE_MASK & at(x + 2, row));
  }
  state[0] = lane(0, 0) ^ constant;
}

function rotate(value: bigint, by: number): bigint {
  return ((value << BigInt(by)) | (value >> BigInt(64 - by))) & LANE_MASK;
}
