// Messages to be signed, as validator clients send them: JSON values, and nothing that needs an addon.

export const MAINNET_ROOT = '0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95';

/** On mainnet, whose epochs have 32 slots. */
const FULU_EPOCH = 411_392;

export function forkInfo(genesisValidatorsRoot: string = MAINNET_ROOT): object {
  return {
    fork: { previous_version: '0x05000000', current_version: '0x06000000', epoch: String(FULU_EPOCH) },
    genesis_validators_root: genesisValidatorsRoot,
  };
}

/** A root whose bytes all are `byte`. */
export function rootOf(byte: number): string {
  return `0x${Buffer.alloc(32, byte).toString('hex')}`;
}

export function attestation(
  options: { source?: number; target?: number; head?: string; root?: string; index?: number } = {},
): Record<string, unknown> {
  const { source = 10, target = 11, head = rootOf(1), root = rootOf(3), index = 0 } = options;
  return {
    type: 'ATTESTATION',
    fork_info: forkInfo(),
    attestation: {
      slot: String(target * 32),
      index: String(index),
      beacon_block_root: head,
      source: { epoch: String(source), root },
      target: { epoch: String(target), root },
    },
  };
}

export function block(options: { slot?: number; body?: string } = {}): Record<string, unknown> {
  const { slot = 1000, body = rootOf(5) } = options;
  return {
    type: 'BLOCK_V2',
    fork_info: forkInfo(),
    beacon_block: {
      version: slot < FULU_EPOCH * 32 ? 'ELECTRA' : 'FULU',
      block_header: {
        slot: String(slot),
        proposer_index: '7',
        parent_root: rootOf(6),
        state_root: rootOf(7),
        body_root: body,
      },
    },
  };
}

export function randaoReveal(epoch = 12): Record<string, unknown> {
  return { type: 'RANDAO_REVEAL', fork_info: forkInfo(), randao_reveal: { epoch: String(epoch) } };
}

export function voluntaryExit(): Record<string, unknown> {
  return { type: 'VOLUNTARY_EXIT', fork_info: forkInfo(), voluntary_exit: { epoch: '12', validator_index: '7' } };
}
