// What a network fixes for signing: the root that names its chain, and the two fork versions that requests do not
// decide. The values are public constants of the networks' own configuration (eth-clients/mainnet, sepolia, hoodi).

import { decodeHex } from '../../formats/hex.ts';
import type { ChainTime } from '../slashing/jump.ts';

export const PUBLIC_NETWORK_NAMES = ['mainnet', 'hoodi', 'sepolia'] as const;

export type PublicNetworkName = (typeof PUBLIC_NETWORK_NAMES)[number];

export interface Network {
  readonly name: PublicNetworkName | 'custom';
  /** 32 bytes. */
  readonly genesisValidatorsRoot: Uint8Array;
  /** 4 bytes; the domain of validator registrations. */
  readonly genesisForkVersion: Uint8Array;
  /** 4 bytes; the domain of voluntary exits (EIP-7044). */
  readonly capellaForkVersion: Uint8Array;
  /** Undefined for a custom network whose genesis time is not configured: no slot can be compared with the clock then. */
  readonly time: ChainTime | undefined;
}

export function publicNetwork(name: PublicNetworkName): Network {
  const { genesisValidatorsRoot, genesisForkVersion, capellaForkVersion, genesisTime } = PUBLIC_NETWORKS[name];
  return {
    name,
    genesisValidatorsRoot: fixedHex(genesisValidatorsRoot, 32),
    genesisForkVersion: fixedHex(genesisForkVersion, 4),
    capellaForkVersion: fixedHex(capellaForkVersion, 4),
    time: chainTime(genesisTime),
  };
}

/** A chain with mainnet's slots: 12 seconds each, 32 an epoch. */
export function chainTime(genesisTimeSeconds: number): ChainTime {
  return { genesisTimeSeconds, secondsPerSlot: 12, slotsPerEpoch: 32 };
}

const PUBLIC_NETWORKS = {
  mainnet: {
    genesisValidatorsRoot: '0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95',
    genesisForkVersion: '0x00000000',
    capellaForkVersion: '0x03000000',
    genesisTime: 1_606_824_023,
  },
  hoodi: {
    genesisValidatorsRoot: '0x212f13fc4df078b6cb7db228f1c8307566dcecf900867401a92023d7ba99cb5f',
    genesisForkVersion: '0x10000910',
    capellaForkVersion: '0x40000910',
    genesisTime: 1_742_213_400,
  },
  sepolia: {
    genesisValidatorsRoot: '0xd8ea171f3c94aea21ebc42a1ed61052acf3f9209c00e4efbaaddac09ed9b8078',
    genesisForkVersion: '0x90000069',
    capellaForkVersion: '0x90000072',
    genesisTime: 1_655_733_600,
  },
} as const;

function fixedHex(text: string, length: number): Uint8Array {
  const bytes = decodeHex(text, length);
  if (bytes === undefined) throw new Error(`a network constant is not ${length} bytes of hex`);
  return bytes;
}
