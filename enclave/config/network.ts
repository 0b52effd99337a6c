// The network that a configuration describes: one that is built in, Ephemery in the period that is stated, or a devnet
// by its config.yaml or by members. Pure but for the file, which is read by what is given. It trusts that the rules
// between options hold (rules/network.ts); what only the file or the schedule shows is answered as findings.

import { errorCode } from '../../formats/error-code.ts';
import { decodeHex } from '../../formats/hex.ts';
import { FORK_NAMES } from '../api/forks.ts';
import { type ConsensusConfig, MAX_CONSENSUS_CONFIG_BYTES, readConsensusConfig } from '../signing/consensus-config.ts';
import { extendSchedule } from '../signing/fork-schedule.ts';
import { ephemeryNetwork, type Fork, makeNetwork, type Network, publicNetwork } from '../signing/networks.ts';
import type { Config } from './options.ts';
import type { ConfigFinding } from './rules/rule.ts';

export type NetworkOptions = Pick<Config, 'network' | 'custom_network'>;

export type NetworkReading =
  | { readonly network: Network; readonly unknownForks: ConsensusConfig['unknownForks'] }
  | { readonly findings: readonly ConfigFinding[] };

/** How `custom_network.config_file` is read. Throws when it cannot be. */
export type ReadFile = (path: string) => Uint8Array;

export function readNetwork(options: NetworkOptions, readFile: ReadFile): NetworkReading {
  const described = describe(options, readFile);
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

/** 32 bytes. */
function genesisValidatorsRootOf({ network: { name }, custom_network: custom }: NetworkOptions): Uint8Array {
  return name === 'custom' || name === 'ephemery'
    ? constant(custom.genesis_validators_root, 32)
    : publicNetwork(name).genesisValidatorsRoot;
}

function describe(options: NetworkOptions, readFile: ReadFile): NetworkReading {
  const { network, custom_network: custom } = options;
  if (network.name !== 'custom' && network.name !== 'ephemery') {
    return { network: publicNetwork(network.name), unknownForks: [] };
  }
  const genesis = {
    genesisValidatorsRoot: genesisValidatorsRootOf(options),
    genesisTimeSeconds: custom.genesis_time,
  };
  if (network.name === 'ephemery') {
    return { network: ephemeryNetwork({ ...genesis, depositChainId: custom.deposit_chain_id }), unknownForks: [] };
  }
  const read =
    custom.config_file === undefined ? { config: byMembers(custom) } : readConfigFile(custom.config_file, readFile);
  if ('findings' in read) return read;
  const { unknownForks, configName = 'custom', ...parts } = read.config;
  return { network: makeNetwork({ name: 'custom', configName, ...parts, ...genesis }), unknownForks };
}

function byMembers(custom: Config['custom_network']): ConsensusConfig {
  const { fork_versions, genesis_fork_version: phase0, capella_fork_version: capella } = custom;
  const versions = fork_versions ?? { phase0, capella };
  return {
    configName: custom.config_name,
    preset: custom.preset ?? 'mainnet',
    slotDurationMs: custom.slot_duration_ms ?? DEFAULT_SLOT_DURATION_MS,
    depositChainId: custom.deposit_chain_id,
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

function readConfigFile(
  path: string,
  readFile: ReadFile,
): { readonly config: ConsensusConfig } | { readonly findings: readonly ConfigFinding[] } {
  const at = 'custom_network.config_file';
  let bytes: Uint8Array;
  try {
    bytes = readFile(path);
  } catch (error) {
    const fault = errorCode(error);
    const code = fault === undefined ? '' : ` (${fault})`;
    const remedy = 'correct the path, or give the signer’s user the right to read it';
    return { findings: [{ at, problem: `names a file that cannot be read: ${path}${code}`, remedy }] };
  }
  const text = textOf(bytes);
  if (text === undefined) {
    const problem = `names a file that is not UTF-8, or larger than ${MAX_CONSENSUS_CONFIG_BYTES} bytes: ${path}`;
    return { findings: [{ at, problem, remedy: 'name the consensus config.yaml of the network' }] };
  }
  const reading = readConsensusConfig(text);
  if ('config' in reading) return reading;
  return {
    findings: reading.problems.map(({ line, problem }) => ({
      at,
      problem: `names ${path}${line === undefined ? '' : ` line ${line}`}: ${problem}`,
      remedy: 'correct the file, or take it from the network again',
    })),
  };
}

function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.length > MAX_CONSENSUS_CONFIG_BYTES) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** The configuration has checked it: anything else here is a bug. */
function constant(text: string | undefined, length: number): Uint8Array {
  const bytes = text === undefined ? undefined : decodeHex(text, length);
  if (bytes === undefined) throw new Error('custom_network: a constant is missing');
  return bytes;
}
