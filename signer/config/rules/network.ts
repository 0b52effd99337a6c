// Rules on the network. A config.yaml is looked at where files are: at the start, and by `server --check`.

import { readNetwork } from '../network.ts';
import type { Config, OptionPath } from '../options.ts';
import { type ConfigFinding, type ConfigRule, type Facts, when } from './rule.ts';

/** What a config.yaml states too. */
const IN_FILE = [
  'preset',
  'slot_duration_ms',
  'fork_versions',
  'genesis_fork_version',
  'capella_fork_version',
] as const;
const EPHEMERY = ['genesis_validators_root', 'genesis_time'];
const OLD_VERSIONS = ['genesis_fork_version', 'capella_fork_version'] as const;
const NEEDED_FORKS = ['phase0', 'capella'] as const;

export const NETWORK_RULES: readonly ConfigRule[] = [
  {
    says: '`network: custom` needs `custom_network.genesis_validators_root`, and either `config_file`, `fork_versions` with `phase0` and `capella`, or `genesis_fork_version` and `capella_fork_version`. `network: ephemery` needs `genesis_validators_root`, and takes `genesis_time`. Another network takes none of `custom_network`.',
    broken: (config, facts) => {
      const { name } = config.network;
      if (name === 'custom') return [...missingRoot(config), ...missingVersions(config)];
      if (name === 'ephemery') return [...missingRoot(config), ...strayOfEphemery(facts)];
      return when(facts.isSet('custom_network'), {
        at: 'custom_network',
        problem: 'is set, and the network is not custom',
        remedy: 'set network: custom, or remove it',
      });
    },
  },
  {
    says: '`custom_network.config_file` states the members that a consensus config.yaml has: none of them stands beside it. `fork_versions` stands alone in the same way.',
    broken: ({ custom_network: custom }, { isSet }) => {
      const source = custom.config_file !== undefined ? 'config_file' : 'fork_versions';
      if (custom[source] === undefined) return [];
      const members = source === 'config_file' ? IN_FILE : OLD_VERSIONS;
      return members.flatMap((member) =>
        when(isSet(`custom_network.${member}`), {
          at: `custom_network.${member}`,
          problem: `is set, and custom_network.${source} states it`,
          remedy: `remove one of them`,
        }),
      );
    },
  },
  {
    says: '`custom_network.slot_duration_ms` is stated where `custom_network.preset` is another than `mainnet`.',
    broken: ({ custom_network: { preset = 'mainnet', slot_duration_ms } }) =>
      when(preset !== 'mainnet' && slot_duration_ms === undefined, {
        at: 'custom_network.slot_duration_ms',
        problem: `is missing, and the preset is ${preset}`,
        remedy: 'set it to SLOT_DURATION_MS of the network, milliseconds',
      }),
  },
  {
    says: '`network.fork_schedule` contradicts no epoch that is known, and its forks begin in their order.',
    broken: (config, facts) => {
      const { name } = config.network;
      const isComplete =
        name === 'custom'
          ? missingRoot(config).length === 0 && missingVersions(config).length === 0
          : name !== 'ephemery' || missingRoot(config).length === 0;
      if (!isComplete || config.custom_network.config_file !== undefined || !facts.isSet('network.fork_schedule'))
        return [];
      const reading = readNetwork(config, undefined);
      return 'findings' in reading ? reading.findings : [];
    },
  },
  {
    says: '`anti_slashing.jump_at_boot` (on by default in an enclave) needs `custom_network.genesis_time` with `network: custom` and `ephemery`.',
    broken: ({ network, custom_network, anti_slashing, tee }) =>
      when(
        (network.name === 'custom' || network.name === 'ephemery') &&
          custom_network.genesis_time === undefined &&
          (anti_slashing.jump_at_boot ?? tee.platform === 'nitro'),
        {
          at: 'custom_network.genesis_time',
          problem:
            'is missing: no slot can be compared with the clock, and each start has to refuse everything up to the present',
          remedy: 'set it to the genesis time of the network, seconds since 1970',
        },
      ),
  },
];

function missingRoot({ network: { name }, custom_network }: Config): readonly ConfigFinding[] {
  return when(custom_network.genesis_validators_root === undefined, {
    at: 'custom_network.genesis_validators_root',
    problem:
      name === 'ephemery'
        ? 'is missing: ephemery has another with each of its periods'
        : 'is missing, and the network is custom',
    remedy: 'set custom_network.genesis_validators_root',
  });
}

function missingVersions({ custom_network: custom }: Config): readonly ConfigFinding[] {
  if (custom.config_file !== undefined) return [];
  const { fork_versions: versions } = custom;
  const missing: readonly (readonly [OptionPath, readonly string[]])[] =
    versions === undefined
      ? OLD_VERSIONS.filter((member) => custom[member] === undefined).map((member) => [`custom_network.${member}`, []])
      : NEEDED_FORKS.filter((fork) => versions[fork] === undefined).map((fork) => [
          'custom_network.fork_versions',
          [fork],
        ]);
  return missing.map(([at, within]) => ({
    at,
    within,
    problem: 'is missing, and the network is custom',
    remedy: `set ${[at, ...within].join('.')}, or name the network’s config.yaml in custom_network.config_file`,
  }));
}

function strayOfEphemery({ isSet }: Facts): readonly ConfigFinding[] {
  return [...IN_FILE, 'config_file' as const].flatMap((member) =>
    when(!EPHEMERY.includes(member) && isSet(`custom_network.${member}`), {
      at: `custom_network.${member}`,
      problem: 'is set, and the network is ephemery, where it does not change',
      remedy: 'remove it',
    }),
  );
}
