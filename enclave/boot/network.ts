// Step "network": the configured network's constants.

import { decodeHex } from '../../formats/hex.ts';
import type { Config } from '../config/options.ts';
import { chainTime, type Network, publicNetwork } from '../signing/networks.ts';

export function networkOf({ network, custom_network: custom }: Pick<Config, 'network' | 'custom_network'>): Network {
  if (network !== 'custom') return publicNetwork(network);
  return {
    name: 'custom',
    genesisValidatorsRoot: constant(custom.genesis_validators_root, 32),
    genesisForkVersion: constant(custom.genesis_fork_version, 4),
    capellaForkVersion: constant(custom.capella_fork_version, 4),
    time: custom.genesis_time === undefined ? undefined : chainTime(custom.genesis_time),
  };
}

/** The configuration has checked it: anything else here is a bug. */
function constant(text: string | undefined, length: number): Uint8Array {
  const bytes = text === undefined ? undefined : decodeHex(text, length);
  if (bytes === undefined) throw new Error('custom_network: a constant is missing');
  return bytes;
}
