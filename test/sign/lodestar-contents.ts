// Random contents of messages, as a client sends them in JSON: reproducible from a seed.

export type Json = string | boolean | Json[] | { [name: string]: Json };
export type Members = { [name: string]: Json };

/**
 * Random contents from a seed: shrinking would cost more than it tells, where any content that differs shows the fault.
 */
export class Contents {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Mulberry32. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  readonly bytes = (length: number): string => {
    const made = Buffer.alloc(length);
    for (let at = 0; at < length; at++) made[at] = this.below(256);
    return `0x${made.toString('hex')}`;
  };
  /** The bytes fill none to several chunks, and often end at the edge of one. */
  readonly byteList = (limit = 700): string =>
    this.bytes(Math.min(limit, this.#length([0, 1, 31, 32, 33, 64, 65, 160], limit)));
  readonly root = (): string => this.bytes(32);
  readonly list = (item: () => Json, limit: number): Json[] =>
    Array.from({ length: Math.min(limit, this.#length([0, 1, 2, 4, 5, 6], limit + 1)) }, item);
  readonly flag = (): boolean => this.below(2) === 1;
  /** What Lodestar holds in a number too. */
  readonly safe = (): string => {
    const number = this.below(2 ** 32) * 2 ** 21 + this.below(2 ** 21);
    return String([0, 1, number, Number.MAX_SAFE_INTEGER][this.below(4)]);
  };
  readonly uint = (bytes: number): string => String(BigInt(this.bytes([1, bytes][this.below(2)] ?? bytes)));
  /** The bits end with the length bit. */
  readonly bits = (limit: number): string => {
    const length = this.#length([0, 1, 7, 8, 9, 255, 256, 257, 1280, 1281, 2048], Math.min(limit, 3000));
    const made = Buffer.from(this.bytes((length >> 3) + 1).slice(2), 'hex');
    const last = made.length - 1;
    made[last] = ((made[last] ?? 0) & ((1 << (length & 7)) - 1)) | (1 << (length & 7));
    return `0x${made.toString('hex')}`;
  };

  #length(edges: readonly number[], limit: number): number {
    return this.flag() ? (edges[this.below(edges.length)] ?? 0) : this.below(limit);
  }
}

export const attestationData = ({ root, safe }: Contents): Members => ({
  slot: safe(),
  index: safe(),
  beacon_block_root: root(),
  source: { epoch: safe(), root: root() },
  target: { epoch: safe(), root: root() },
});

export const aggregate = (contents: Contents, since: 'phase0' | 'electra'): Members => {
  const { safe, bytes, bits } = contents;
  const electra = since === 'electra' ? { committee_bits: bytes(8) } : {};
  return {
    aggregator_index: safe(),
    aggregate: {
      aggregation_bits: bits(since === 'electra' ? 131_072 : 2048),
      data: attestationData(contents),
      signature: bytes(96),
      ...electra,
    },
    selection_proof: bytes(96),
  };
};

export const payload = ({ root, bytes, byteList, uint, safe, list }: Contents): Members => ({
  parent_hash: root(),
  fee_recipient: bytes(20),
  state_root: root(),
  receipts_root: root(),
  logs_bloom: bytes(256),
  prev_randao: root(),
  block_number: safe(),
  gas_limit: safe(),
  gas_used: safe(),
  timestamp: safe(),
  extra_data: byteList(32),
  base_fee_per_gas: uint(32),
  block_hash: root(),
  transactions: list(() => byteList(), 25),
  withdrawals: list(() => ({ index: safe(), validator_index: safe(), address: bytes(20), amount: uint(8) }), 16),
  blob_gas_used: uint(8),
  excess_blob_gas: uint(8),
  block_access_list: byteList(),
  slot_number: safe(),
});

export const requests = ({ root, bytes, safe, uint, list }: Contents): Members => ({
  deposits: list(
    () => ({ pubkey: bytes(48), withdrawal_credentials: root(), amount: safe(), signature: bytes(96), index: safe() }),
    8,
  ),
  withdrawals: list(() => ({ source_address: bytes(20), validator_pubkey: bytes(48), amount: uint(8) }), 16),
  consolidations: list(() => ({ source_address: bytes(20), source_pubkey: bytes(48), target_pubkey: bytes(48) }), 2),
  builder_deposits: list(
    () => ({ pubkey: bytes(48), withdrawal_credentials: root(), amount: safe(), signature: bytes(96) }),
    8,
  ),
  builder_exits: list(() => ({ source_address: bytes(20), pubkey: bytes(48) }), 8),
});
