// Options of Web3Signer about the network, and the one that its own lack: the genesis validators root, which a
// config.yaml does not have.

import { acceptedOption, honoured, refusedOption, type Web3SignerOption } from '../option.ts';

/** The hidden options of Web3Signer that move a fork. */
export const MOVED_FORKS = ['altair', 'bellatrix', 'capella', 'deneb', 'electra', 'fulu', 'gloas'] as const;

export const GENESIS_VALIDATORS_ROOT = 'genesis-validators-root';

export const NETWORK: readonly Web3SignerOption[] = [
  {
    names: ['network'],
    scope: 'eth2',
    form: 'text',
    becomes: honoured(
      '`network`, or for the path of a config.yaml `network: custom` with ' +
        '`custom_network.config_file`; mainnet unless given. ' +
        'URLs and networks that strongroom does not have are refused',
    ),
  },
  {
    names: [GENESIS_VALIDATORS_ROOT],
    scope: '',
    form: 'text',
    isOurs: true,
    becomes: honoured(
      '`custom_network.genesis_validators_root`, for the path of a config.yaml and for ephemery; without it, what ' +
        '`genesis_validators_root.txt` beside the config.yaml says',
    ),
  },
  ...MOVED_FORKS.map(
    (fork): Web3SignerOption => ({
      names: [`Xnetwork-${fork}-fork-epoch`],
      scope: 'eth2',
      form: 'number',
      ...(fork === 'gloas' ? { isNewer: true } : {}),
      becomes: honoured(`\`network.fork_schedule.${fork}\`; an epoch that contradicts the network is refused`),
    }),
  ),
  {
    names: ['Xtrusted-setup'],
    scope: 'eth2',
    form: 'text',
    becomes: acceptedOption('does nothing: strongroom computes no KZG commitments'),
  },
  {
    names: ['Xsigning-ext-enabled'],
    scope: 'eth2',
    form: 'boolean',
    becomes: refusedOption('asks for signing extensions, which strongroom does not have', 'leave it out', ['false']),
  },
];
