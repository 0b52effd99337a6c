// Step "network": the configured network's constants.

import { decodeHex } from '../../formats/hex.ts';
import type { Config } from '../config/options.ts';
import { makeNetwork, type Network, publicNetwork } from '../signing/networks.ts';

export function networkOf({ network, custom_network: custom }: Pick<Config, 'network' | 'custom_network'>): Network {
  if (network !== 'custom') return publicNetwork(network);
  return makeNetwork({
    name: 'custom',
    configName: 'custom',
    preset: 'mainnet',
    genesisValidatorsRoot: constant(custom.genesis_validators_root, 32),
    genesisTimeSeconds: custom.genesis_time,
    slotDurationMs: 12_000,
    depositChainId: undefined,
    forks: [
      { name: 'phase0', version: constant(custom.genesis_fork_version, 4), epoch: 0 },
      { name: 'capella', version: constant(custom.capella_fork_version, 4), epoch: null },
    ],
  });
}

/** The configuration has checked it: anything else here is a bug. */
function constant(text: string | undefined, length: number): Uint8Array {
  const bytes = text === undefined ? undefined : decodeHex(text, length);
  if (bytes === undefined) throw new Error('custom_network: a constant is missing');
  return bytes;
}
