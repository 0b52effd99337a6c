// The network that a configuration describes: built in, Ephemery in the period that is stated, or a devnet by its
// config.yaml or by members. It trusts that the rules between options hold (rules/network.ts).

import { decodeHex } from '../../common/formats/hex.ts';
import type { Log } from '../../common/observe/log.ts';
import { FORK_NAMES } from '../api/forks.ts';
import { extendSchedule } from '../sign/fork-schedule.ts';
import {
  ephemeryNetwork,
  type Fork,
  makeNetwork,
  type Network,
  publicNetwork,
  type UnknownFork,
} from '../sign/networks.ts';
import {
  CLOCK_TOLERANCE_SECONDS,
  type ClockTolerance,
  FLEET_TOLERANCE,
  MAX_CLOCK_TOLERANCE_SECONDS,
} from '../slashing/future.ts';
import type { Config } from './options.ts';
import type { ConfigFinding } from './rules/rule.ts';

type NetworkOptions = Pick<Config, 'network' | 'custom_network'>;

type NetworkReading =
  | { readonly network: Network; readonly unknownForks: ConsensusConfig['unknownForks'] }
  | { readonly findings: readonly ConfigFinding[] };

/** In members or in its config.yaml. */
export interface ConsensusConfig
  extends Pick<Network, 'preset' | 'slotDurationMs' | 'depositChainId' | 'forks' | 'unknownFork'> {
  readonly configName: string | undefined;
  /** Planned in the file and not known to this program. */
  readonly unknownForks: readonly UnknownFork[];
}

export type ConfigFileReading = { readonly config: ConsensusConfig } | { readonly findings: readonly ConfigFinding[] };

/** Undefined in a program that reads no files. */
export type ReadConfigFile = ((path: string) => ConfigFileReading) | undefined;

export function readNetwork(options: NetworkOptions, readConfigFile: ReadConfigFile): NetworkReading {
  const described = describe(options, readConfigFile);
  if ('findings' in described) return described;
  const { network, unknownForks } = described;
  const extended = extendSchedule(network.forks, options.network.fork_schedule);
  if ('forks' in extended) return { network: { ...network, forks: extended.forks }, unknownForks };
  return {
    findings: extended.problems.map(({ fork, problem, remedy }) => ({
      at: 'network.fork_schedule',
      within: [fork],
      problem,
      remedy,
    })),
  };
}

function genesisValidatorsRootOf({ network: { name }, custom_network: custom }: NetworkOptions): Uint8Array {
  return name === 'custom' || name === 'ephemery'
    ? constant(custom.genesis_validators_root, 32)
    : publicNetwork(name).genesisValidatorsRoot;
}

function describe(options: NetworkOptions, readConfigFile: ReadConfigFile): NetworkReading {
  const { network, custom_network: custom } = options;
  if (network.name !== 'custom' && network.name !== 'ephemery') {
    return { network: publicNetwork(network.name), unknownForks: [] };
  }
  const genesis = {
    genesisValidatorsRoot: genesisValidatorsRootOf(options),
    genesisTimeSeconds: custom.genesis_time,
  };
  if (network.name === 'ephemery') {
    return { network: ephemeryNetwork(genesis), unknownForks: [] };
  }
  const { config_file: file } = custom;
  const read = file === undefined ? { config: byMembers(custom) } : (readConfigFile?.(file) ?? NO_FILES);
  if ('findings' in read) return read;
  const { unknownForks, configName = 'custom', ...parts } = read.config;
  return { network: makeNetwork({ name: 'custom', configName, ...parts, ...genesis }), unknownForks };
}

const NO_FILES: ConfigFileReading = {
  findings: [
    {
      at: 'custom_network.config_file',
      problem: 'names a file, and this program reads none',
      remedy: 'write what the file says into the configuration',
    },
  ],
};

function byMembers(custom: Config['custom_network']): ConsensusConfig {
  const { fork_versions, genesis_fork_version: phase0, capella_fork_version: capella } = custom;
  const versions = fork_versions ?? { phase0, capella };
  return {
    configName: undefined,
    preset: custom.preset ?? 'mainnet',
    slotDurationMs: custom.slot_duration_ms ?? DEFAULT_SLOT_DURATION_MS,
    depositChainId: undefined,
    forks: FORK_NAMES.flatMap((name): Fork[] => {
      const version = (versions as Partial<Record<typeof name, string | undefined>>)[name];
      return version === undefined
        ? []
        : [{ name, version: constant(version, 4), epoch: name === 'phase0' ? 0 : null }];
    }),
    unknownForks: [],
  };
}

const DEFAULT_SLOT_DURATION_MS = 12_000;

/** The configuration has checked it. */
function constant(text: string | undefined, length: number): Uint8Array {
  const bytes = text === undefined ? undefined : decodeHex(text, length);
  if (bytes === undefined) throw new Error('custom_network: a constant is missing');
  return bytes;
}

/** The network as a signer of this configuration sees it, with its tolerance for clocks. */
export function networkOf(options: SignerOptions, readConfigFile: ReadConfigFile, log?: Log): Network {
  const reading = readNetwork(options, readConfigFile);
  if ('findings' in reading) {
    throw new Error(
      reading.findings
        .map(({ at, within = [], problem, remedy }) => `${[at, ...within].join('.')} ${problem}: ${remedy}`)
        .join('; '),
    );
  }
  for (const { name, epoch } of reading.unknownForks) log?.warn({ fork: name, epoch }, UNKNOWN_FORK);
  const { network } = reading;
  return network.time === undefined
    ? network
    : { ...network, time: { ...network.time, tolerance: toleranceOf(options) } };
}

type SignerOptions = NetworkOptions & Pick<Config, 'anti_slashing' | 'signer_state' | 'tee'>;

/** Only signers of a state table are known to share their store with none that has a larger one. */
function toleranceOf({ anti_slashing, signer_state, tee }: SignerOptions): ClockTolerance {
  if (signer_state.table !== undefined) return FLEET_TOLERANCE;
  const aheadSeconds = tee.platform === 'nitro' ? CLOCK_TOLERANCE_SECONDS : anti_slashing.clock_tolerance_seconds;
  return { aheadSeconds, jumpSeconds: MAX_CLOCK_TOLERANCE_SECONDS };
}

const UNKNOWN_FORK =
  'the config.yaml of the network plans a fork that this release does not know: from then on messages whose content forks ' +
  'change are refused. Install a release that knows it';
