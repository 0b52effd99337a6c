// The facts of a network that signing needs. All code that counts in slots or epochs takes their lengths from here.

import { decodeHex } from '../../common/formats/hex.ts';
import { FORK_NAMES, type ForkName } from '../api/forks.ts';
import { type NetworkConstants, PRESET_SLOTS_PER_EPOCH, type Preset, PUBLIC_NETWORKS } from '../api/network-table.ts';
import { type ChainTime, FLEET_TOLERANCE } from '../slashing/future.ts';

type PublicNetworkName = Exclude<keyof typeof PUBLIC_NETWORKS, 'ephemery'>;

export interface Fork {
  readonly name: ForkName;
  /** 4 bytes. */
  readonly version: Uint8Array;
  /** Its first epoch; null: not announced, or not planned. */
  readonly epoch: number | null;
}

export interface UnknownFork {
  /** The name in the network's config.yaml: `HEZE` of HEZE_FORK_EPOCH. */
  readonly name: string;
  readonly epoch: number;
}

export interface Network {
  readonly name: PublicNetworkName | 'ephemery' | 'custom';
  /** What the network calls itself (CONFIG_NAME): the name in deposit data. */
  readonly configName: string;
  readonly preset: Preset;
  /** 32 bytes. */
  readonly genesisValidatorsRoot: Uint8Array;
  /** Of a custom network those that its configuration names. */
  readonly forks: readonly Fork[];
  /** The first that has a version and is planned after these, and not known to us: it ends the last of them. */
  readonly unknownFork?: UnknownFork | undefined;
  /** 4 bytes, phase0's version; the domain of validator registrations and deposits. */
  readonly genesisForkVersion: Uint8Array;
  /** 4 bytes; the domain of voluntary exits (EIP-7044). */
  readonly capellaForkVersion: Uint8Array;
  readonly slotsPerEpoch: number;
  readonly slotDurationMs: number;
  /** Undefined where the configuration does not state it. */
  readonly depositChainId: number | undefined;
  /**
   * Undefined where the genesis time is not stated: no slot can be compared with the clock then. Its tolerance is that
   * of a fleet, unless the configuration of a signer says otherwise (signer/config/network.ts).
   */
  readonly time: ChainTime | undefined;
}

type NetworkParts = Pick<
  Network,
  | 'name'
  | 'configName'
  | 'preset'
  | 'genesisValidatorsRoot'
  | 'forks'
  | 'unknownFork'
  | 'slotDurationMs'
  | 'depositChainId'
> & {
  /** Unix time, seconds. */
  readonly genesisTimeSeconds: number | undefined;
};

export function makeNetwork({ genesisTimeSeconds, ...parts }: NetworkParts): Network {
  const slotsPerEpoch = PRESET_SLOTS_PER_EPOCH[parts.preset];
  const { slotDurationMs } = parts;
  return {
    ...parts,
    genesisForkVersion: versionOf('phase0', parts.forks),
    capellaForkVersion: versionOf('capella', parts.forks),
    slotsPerEpoch,
    time:
      genesisTimeSeconds === undefined
        ? undefined
        : { genesisTimeSeconds, slotDurationMs, slotsPerEpoch, tolerance: FLEET_TOLERANCE },
  };
}

export function publicNetwork(name: PublicNetworkName): Network {
  const { genesis, ...constants } = PUBLIC_NETWORKS[name];
  return makeNetwork({
    ...sharedParts(name, constants),
    genesisValidatorsRoot: fixedHex(genesis.validatorsRoot, 32),
    genesisTimeSeconds: genesis.timeSeconds,
    depositChainId: genesis.depositChainId,
  });
}

export function ephemeryNetwork(period: Pick<NetworkParts, 'genesisValidatorsRoot' | 'genesisTimeSeconds'>): Network {
  return makeNetwork({ ...sharedParts('ephemery', PUBLIC_NETWORKS.ephemery), ...period, depositChainId: undefined });
}

function sharedParts(name: PublicNetworkName | 'ephemery', { preset, slotDurationMs, forks }: NetworkConstants) {
  return {
    name,
    configName: name,
    preset,
    slotDurationMs,
    forks: FORK_NAMES.map((fork) => {
      const [version, epoch] = forks[fork];
      return { name: fork, version: fixedHex(version, 4), epoch };
    }),
  };
}

function versionOf(name: ForkName, forks: readonly Fork[]): Uint8Array {
  const fork = forks.find((candidate) => candidate.name === name);
  if (fork === undefined) throw new Error(`the version of ${name} is missing`);
  return fork.version;
}

function fixedHex(text: string, length: number): Uint8Array {
  const bytes = decodeHex(text, length);
  if (bytes === undefined) throw new Error(`a network constant is not ${length} bytes of hex`);
  return bytes;
}

export const CONFIG_NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._ -]{0,63}$/;
export const SLOT_DURATION_MS_LIMITS = { min: 100, max: 3_600_000 } as const;
