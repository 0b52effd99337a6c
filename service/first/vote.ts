// A vote on the test network Hoodi, since Gloas: what `strongroom try` and `make demo` sign. Two votes for one target
// that say different things of the payload are a double vote (EIP-3076, and the index of EIP-7732).

import { encodeHex } from '../../common/formats/hex.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';

export const EPOCH = 138_000;
const SLOTS_PER_EPOCH = 32;
const SLOT = EPOCH * SLOTS_PER_EPOCH + 5;
/** The versions of Fulu and Gloas on Hoodi, and the epoch in which Gloas begins there. */
const FORK = { previous_version: '0x70000910', current_version: '0x80000910', epoch: '132352' };

/** @param payload what the vote says of the payload of the block that it is for */
export function hoodiVote(payload: 'empty' | 'full'): object {
  const [head, root] = ['0x'.padEnd(66, '11'), '0x'.padEnd(66, '33')];
  return {
    type: 'ATTESTATION',
    fork_info: { fork: FORK, genesis_validators_root: encodeHex(publicNetwork('hoodi').genesisValidatorsRoot) },
    attestation: {
      slot: String(SLOT),
      index: payload === 'full' ? '1' : '0',
      beacon_block_root: head,
      source: { epoch: String(EPOCH - 1), root },
      target: { epoch: String(EPOCH), root },
    },
  };
}
