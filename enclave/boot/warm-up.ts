// Compiles the parser and the hasher at boot. Otherwise the first request of a process would pay for this (60 ms
// measured).

import { parseSignRequest } from '../api/sign-request.ts';
import type { Network } from '../signing/networks.ts';
import { computeSigningRoot } from '../signing/roots/root.ts';

const ROOT = `0x${'00'.repeat(32)}`;
const SAMPLE = {
  type: 'ATTESTATION',
  fork_info: {
    fork: { previous_version: '0x00000000', current_version: '0x00000000', epoch: '0' },
    genesis_validators_root: ROOT,
  },
  attestation: {
    slot: '0',
    index: '0',
    beacon_block_root: ROOT,
    source: { epoch: '0', root: ROOT },
    target: { epoch: '0', root: ROOT },
  },
};

/** Parse a request and compute its root. Nothing is signed. */
export function warmUp(network: Network): void {
  const parsed = parseSignRequest(Buffer.from(JSON.stringify(SAMPLE)));
  if (parsed.kind === 'refused') throw new Error(`the sample request is refused: ${parsed.hint}`);
  computeSigningRoot(parsed.request, network);
}
