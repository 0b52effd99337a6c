// The networks that are built in, as their published configurations name them (eth-clients/mainnet, sepolia and hoodi,
// gnosischain/configs, ethpandaops for plataberget, ephemery-testnet/ephemery-genesis). An epoch of null is not
// announced. Of Ephemery only what stays the same through its periods is here.

import { encodeHex } from '../../common/formats/hex.ts';
import type { ForkName } from './forks.ts';

/** Slots an epoch (consensus-specs, presets; gnosischain/specs for gnosis). */
export const PRESET_SLOTS_PER_EPOCH = { mainnet: 32, gnosis: 16, minimal: 8 } as const;

export type Preset = keyof typeof PRESET_SLOTS_PER_EPOCH;

export interface NetworkConstants {
  readonly preset: Preset;
  readonly slotDurationMs: number;
  readonly forks: Readonly<Record<ForkName, readonly [version: string, epoch: number | null]>>;
  /** Undefined where it changes: see Ephemery. */
  readonly genesis?: GenesisConstants;
}

interface GenesisConstants {
  readonly validatorsRoot: string;
  readonly timeSeconds: number;
  readonly depositChainId: number;
}

const ETHEREUM = { preset: 'mainnet', slotDurationMs: 12_000 } as const;
const GNOSIS = { preset: 'gnosis', slotDurationMs: 5000 } as const;

export const PUBLIC_NETWORKS = {
  mainnet: {
    ...ETHEREUM,
    genesis: {
      validatorsRoot: '0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95',
      timeSeconds: 1_606_824_023,
      depositChainId: 1,
    },
    forks: {
      phase0: ['0x00000000', 0],
      altair: ['0x01000000', 74_240],
      bellatrix: ['0x02000000', 144_896],
      capella: ['0x03000000', 194_048],
      deneb: ['0x04000000', 269_568],
      electra: ['0x05000000', 364_032],
      fulu: ['0x06000000', 411_392],
      gloas: ['0x07000000', null],
    },
  },
  hoodi: {
    ...ETHEREUM,
    genesis: {
      validatorsRoot: '0x212f13fc4df078b6cb7db228f1c8307566dcecf900867401a92023d7ba99cb5f',
      timeSeconds: 1_742_213_400,
      depositChainId: 560_048,
    },
    forks: {
      phase0: ['0x10000910', 0],
      altair: ['0x20000910', 0],
      bellatrix: ['0x30000910', 0],
      capella: ['0x40000910', 0],
      deneb: ['0x50000910', 0],
      electra: ['0x60000910', 2048],
      fulu: ['0x70000910', 50_688],
      gloas: ['0x80000910', 132_352],
    },
  },
  sepolia: {
    ...ETHEREUM,
    genesis: {
      validatorsRoot: '0xd8ea171f3c94aea21ebc42a1ed61052acf3f9209c00e4efbaaddac09ed9b8078',
      timeSeconds: 1_655_733_600,
      depositChainId: 11_155_111,
    },
    forks: {
      phase0: ['0x90000069', 0],
      altair: ['0x90000070', 50],
      bellatrix: ['0x90000071', 100],
      capella: ['0x90000072', 56_832],
      deneb: ['0x90000073', 132_608],
      electra: ['0x90000074', 222_464],
      fulu: ['0x90000075', 272_640],
      gloas: ['0x90000076', 353_024],
    },
  },
  gnosis: {
    ...GNOSIS,
    genesis: {
      validatorsRoot: '0xf5dcb5564e829aab27264b9becd5dfaa017085611224cb3036f573368dbb9d47',
      timeSeconds: 1_638_993_340,
      depositChainId: 100,
    },
    forks: {
      phase0: ['0x00000064', 0],
      altair: ['0x01000064', 512],
      bellatrix: ['0x02000064', 385_536],
      capella: ['0x03000064', 648_704],
      deneb: ['0x04000064', 889_856],
      electra: ['0x05000064', 1_337_856],
      fulu: ['0x06000064', 1_714_688],
      gloas: ['0x07000064', null],
    },
  },
  chiado: {
    ...GNOSIS,
    genesis: {
      validatorsRoot: '0x9d642dac73058fbf39c0ae41ab1e34e4d889043cb199851ded7095bc99eb4c1e',
      timeSeconds: 1_665_396_300,
      depositChainId: 10_200,
    },
    forks: {
      phase0: ['0x0000006f', 0],
      altair: ['0x0100006f', 90],
      bellatrix: ['0x0200006f', 180],
      capella: ['0x0300006f', 244_224],
      deneb: ['0x0400006f', 516_608],
      electra: ['0x0500006f', 948_224],
      fulu: ['0x0600006f', 1_353_216],
      gloas: ['0x0700006f', null],
    },
  },
  plataberget: {
    ...ETHEREUM,
    genesis: {
      validatorsRoot: '0xbb4a1a9e3f7f4e10edcd734e4acc3b5ffd4f830efe0af2748fa458cfee5d2658',
      timeSeconds: 1_786_622_400,
      depositChainId: 7_091_047_534,
    },
    forks: {
      phase0: ['0x10733183', 0],
      altair: ['0x20733183', 0],
      bellatrix: ['0x30733183', 0],
      capella: ['0x40733183', 0],
      deneb: ['0x50733183', 0],
      electra: ['0x60733183', 0],
      fulu: ['0x70733183', 0],
      gloas: ['0x80733183', 1536],
    },
  },
  ephemery: {
    ...ETHEREUM,
    forks: {
      phase0: ['0x1000101b', 0],
      altair: ['0x2000101b', 0],
      bellatrix: ['0x3000101b', 0],
      capella: ['0x4000101b', 0],
      deneb: ['0x5000101b', 0],
      electra: ['0x6000101b', 0],
      fulu: ['0x7000101b', 0],
      gloas: ['0x8000101b', null],
    },
  },
} as const satisfies Readonly<Record<string, NetworkConstants>>;

/** Of roots that differ, for messages: `of another network, mainnet, not of hoodi (genesis validators root)`. */
export function ofOtherNetwork(found: unknown, own: unknown): string {
  return `of another network, ${networkName(found)}, not of ${networkName(own)} (genesis validators root)`;
}

function networkName(root: unknown): string {
  const hex = root instanceof Uint8Array ? encodeHex(root) : String(root).toLowerCase();
  const networks: [string, NetworkConstants][] = Object.entries(PUBLIC_NETWORKS);
  return networks.find(([, { genesis }]) => genesis?.validatorsRoot === hex)?.[0] ?? hex;
}
