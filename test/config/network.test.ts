// The network that a configuration describes: how it is written, what is refused, and what comes out of it.

import { describe, expect, it } from 'vitest';
import { readNetwork } from '../../enclave/config/network.ts';
import { scheduledForkAt } from '../../enclave/signing/forks.ts';
import { type Network, PUBLIC_NETWORK_NAMES, publicNetwork } from '../../enclave/signing/networks.ts';
import { encodeHex } from '../../formats/hex.ts';
import { OWN_CONFIG, PACKAGE_CONFIG } from '../support/consensus-configs.ts';
import { load, loadGood, sentencesOf, violationsOf } from './loading.ts';

const ROOT = `0x${'ab'.repeat(32)}`;
const FILE = `network: custom
custom_network: {genesis_validators_root: "${ROOT}", config_file: devnet.yaml, genesis_time: 1795348820}`;

function read(yaml: string, file?: string, env: Record<string, string> = {}) {
  return readNetwork(loadGood({ yaml, env }), (path) => {
    if (file === undefined) throw Object.assign(new Error(), { code: 'ENOENT' });
    expect(path).toBe('devnet.yaml');
    return Buffer.from(file);
  });
}

function networkIn(yaml: string, file?: string, env: Record<string, string> = {}): Network {
  const reading = read(yaml, file, env);
  if ('findings' in reading) throw new Error(JSON.stringify(reading.findings));
  return reading.network;
}

function findingsIn(yaml: string, file?: string): string[] {
  const reading = read(yaml, file);
  return 'findings' in reading
    ? reading.findings.map(({ at, within = [], problem }) => `${[at, ...within].join('.')} ${problem}`)
    : [];
}

const epochsOf = ({ forks }: Network) => Object.fromEntries(forks.map(({ name, epoch }) => [name, epoch]));

describe('the network', () => {
  it.each(PUBLIC_NETWORK_NAMES)('%s is built in', (name) => {
    expect(networkIn(`network: ${name}`)).toEqual(publicNetwork(name));
  });

  it('is written as text or as a section', () => {
    expect(loadGood({ yaml: 'network: hoodi' }).network).toEqual({ name: 'hoodi', fork_schedule: {} });
    expect(loadGood({ yaml: 'network: {name: hoodi}' }).network).toEqual({ name: 'hoodi', fork_schedule: {} });
    expect(loadGood({ yaml: 'network: {name: hoodi}', argv: ['--network=sepolia'] }).network.name).toBe('sepolia');
    expect(loadGood({ yaml: 'network: {name: hoodi}', env: { SVC_NETWORK: 'gnosis' } }).network.name).toBe('gnosis');
    expect(loadGood({ yaml: 'network: {fork_schedule: {gloas: 500000}}' }).network.name).toBe('mainnet');
  });

  it.each([
    ['network: {name: hoodi, epoch: 1}', 'network.epoch is not an option', 'config.yaml line 1'],
    ['network:\n  name: nowhere', 'network must be one of mainnet, hoodi', 'config.yaml line 2'],
    ['network: [hoodi]', 'network must be one of mainnet, hoodi', 'config.yaml line 1'],
    ['server: {name: a}', 'server.name is not an option', 'config.yaml line 1'],
    ['network: {name: {name: hoodi}}', 'network must be one of', 'config.yaml line 1'],
  ])('%j is refused', (yaml, sentence, origin) => {
    const [violation, ...more] = violationsOf({ yaml });
    expect(more).toEqual([]);
    expect(`${violation?.path} ${violation?.problem}`).toContain(sentence);
    expect(violation?.origin).toBe(origin);
  });
});

describe('network.fork_schedule', () => {
  it('sets the epoch of a fork that has none', () => {
    const network = networkIn('network: {name: mainnet, fork_schedule: {gloas: 430000}}');
    expect(epochsOf(network)).toEqual({ ...epochsOf(publicNetwork('mainnet')), gloas: 430_000 });
    expect(scheduledForkAt(network, 429_999)?.name).toBe('fulu');
    expect(scheduledForkAt(network, 430_000)?.name).toBe('gloas');
  });

  it('is set by the environment as well, as a whole or by the fork', () => {
    const yaml = 'network: gnosis';
    for (const env of [
      { SVC_NETWORK__FORK_SCHEDULE: '{"gloas": 1800000}' },
      { SVC_NETWORK__FORK_SCHEDULE__GLOAS: '1800000' },
    ]) {
      expect(epochsOf(networkIn(yaml, undefined, env))).toMatchObject({ gloas: 1_800_000 });
    }
  });

  it('may say what is known, as a configuration does that is older than the release', () => {
    expect(networkIn('network: {name: hoodi, fork_schedule: {gloas: 132352, fulu: 50688}}')).toEqual(
      publicNetwork('hoodi'),
    );
  });

  it.each([
    ['{name: hoodi, fork_schedule: {gloas: 132353}}', 'gloas contradicts the known one, 132352'],
    ['{name: mainnet, fork_schedule: {fulu: 1, gloas: 430000}}', 'fulu contradicts the known one, 411392'],
    ['{name: mainnet, fork_schedule: {gloas: 411391}}', 'gloas is 411391, before fulu begins (411392)'],
    ['{name: mainnet, fork_schedule: {gloas: -1}}', 'gloas must be an integer from 0 to 2^53 - 1'],
    ['{name: mainnet, fork_schedule: {gloas: 9007199254740992}}', 'gloas must be an integer from 0 to 2^53 - 1'],
    ['{name: mainnet, fork_schedule: {gloas: "430000"}}', 'gloas must be an integer from 0 to 2^53 - 1'],
    ['{name: mainnet, fork_schedule: {phase0: 0}}', 'phase0 is not a member of this object'],
    ['{name: mainnet, fork_schedule: {heze: 0}}', 'heze is not a member of this object'],
  ])('%s is refused before the start', (section, sentence) => {
    expect(sentencesOf({ yaml: `network: ${section}` })).toEqual([
      expect.stringContaining(`network.fork_schedule.${sentence}`),
    ]);
  });
});

describe('custom_network.config_file', () => {
  it('describes the network, with the genesis of the configuration', () => {
    const network = networkIn(FILE, PACKAGE_CONFIG);
    expect(network).toMatchObject({
      name: 'custom',
      configName: 'testnet',
      slotsPerEpoch: 32,
      depositChainId: 3_151_908,
      time: { genesisTimeSeconds: 1_795_348_820, slotDurationMs: 12_000, slotsPerEpoch: 32 },
    });
    expect(encodeHex(network.genesisValidatorsRoot)).toBe(ROOT);
    expect([network.genesisForkVersion, network.capellaForkVersion].map(encodeHex)).toEqual([
      '0x10000038',
      '0x40000038',
    ]);
    expect(scheduledForkAt(network, 0)?.name).toBe('fulu');
    expect(scheduledForkAt(network, 1)?.name).toBe('gloas');
  });

  it('decides what an epoch is, whatever the preset', () => {
    expect(networkIn(FILE, OWN_CONFIG).time).toEqual({
      genesisTimeSeconds: 1_795_348_820,
      slotDurationMs: 2000,
      slotsPerEpoch: 8,
    });
  });

  it('needs no genesis time where no slot is compared with the clock', () => {
    expect(networkIn(FILE.replace(', genesis_time: 1795348820', ''), OWN_CONFIG).time).toBeUndefined();
  });

  it('takes epochs that it does not have from network.fork_schedule, and no others', () => {
    const scheduled = (schedule: string) =>
      FILE.replace('network: custom', `network: {name: custom, fork_schedule: ${schedule}}`);
    expect(epochsOf(networkIn(scheduled('{capella: 4}'), OWN_CONFIG))).toMatchObject({ bellatrix: 3, capella: 4 });
    expect(findingsIn(scheduled('{capella: 2}'), OWN_CONFIG)).toEqual([
      'network.fork_schedule.capella is 2, before bellatrix begins (3)',
    ]);
    expect(findingsIn(scheduled('{gloas: 2}'), PACKAGE_CONFIG)).toEqual([
      expect.stringContaining('network.fork_schedule.gloas contradicts the known one, 1'),
    ]);
    expect(findingsIn(scheduled('{gloas: 2}'), OWN_CONFIG)).toEqual([
      expect.stringContaining('network.fork_schedule.gloas is given, and the version of this fork is not known'),
    ]);
  });

  it('is refused with its path, and the line where there is one', () => {
    expect(findingsIn(FILE)).toEqual([
      'custom_network.config_file names a file that cannot be read: devnet.yaml (ENOENT)',
    ]);
    expect(findingsIn(FILE, PACKAGE_CONFIG.replace("PRESET_BASE: 'mainnet'", "PRESET_BASE: 'main'"))).toEqual([
      'custom_network.config_file names devnet.yaml line 4: PRESET_BASE must be one of mainnet, gnosis, minimal',
    ]);
    expect(findingsIn(FILE, PACKAGE_CONFIG.replace('GENESIS_FORK_VERSION: 0x10000038', ''))).toEqual([
      'custom_network.config_file names devnet.yaml: GENESIS_FORK_VERSION is missing',
    ]);
    expect(findingsIn(FILE, ' '.repeat(1_048_577))[0]).toContain(
      'is not UTF-8, or larger than 1048576 bytes: devnet.yaml',
    );
  });

  it.each([
    'preset: minimal',
    'slot_duration_ms: 12000',
    'deposit_chain_id: 1',
    'config_name: a',
    'fork_versions: {}',
    'genesis_fork_version: "0x00000001"',
    'capella_fork_version: "0x00000001"',
  ])('does not stand beside %s', (member) => {
    const [name = ''] = member.split(':');
    expect(sentencesOf({ yaml: FILE.replace('config_file:', `${member}, config_file:`) })).toContain(
      `custom_network.${name} is set, and custom_network.config_file states it`,
    );
  });
});

describe('custom_network by members', () => {
  const members = (text: string, schedule = '{}') =>
    `network: {name: custom, fork_schedule: ${schedule}}\ncustom_network: {genesis_validators_root: "${ROOT}"${text}}`;
  const VERSIONS =
    'fork_versions: {phase0: "0x10000038", capella: "0x40000038", fulu: "0x7000003A", gloas: "0x80000038"}';

  it('says the same as the file', () => {
    const versions = ['phase0', 'altair', 'bellatrix', 'capella', 'deneb', 'electra', 'fulu', 'gloas']
      .map((name, index) => `${name}: "0x${index + 1}0000038"`)
      .join(', ');
    const yaml = members(
      `, genesis_time: 1795348820, config_name: testnet, deposit_chain_id: 3151908, fork_versions: {${versions}}`,
      '{altair: 0, bellatrix: 0, capella: 0, deneb: 0, electra: 0, fulu: 0, gloas: 1}',
    );
    expect(networkIn(yaml)).toEqual(networkIn(FILE, PACKAGE_CONFIG));
  });

  it('knows the versions that are stated, and of epochs only what is', () => {
    const network = networkIn(members(`, ${VERSIONS}, preset: gnosis, slot_duration_ms: 5000`));
    expect(epochsOf(network)).toEqual({ phase0: 0, capella: null, fulu: null, gloas: null });
    expect(encodeHex(network.forks[2]?.version ?? new Uint8Array())).toBe('0x7000003a');
    expect(network).toMatchObject({
      configName: 'custom',
      slotsPerEpoch: 16,
      slotDurationMs: 5000,
      depositChainId: undefined,
    });
  });

  it('is set by variables, too', () => {
    const env = {
      SVC_NETWORK: 'custom',
      SVC_CUSTOM_NETWORK__GENESIS_VALIDATORS_ROOT: ROOT,
      SVC_CUSTOM_NETWORK__FORK_VERSIONS__PHASE0: '0x10000038',
      SVC_CUSTOM_NETWORK__FORK_VERSIONS__CAPELLA: '0x40000038',
      SVC_NETWORK__FORK_SCHEDULE__CAPELLA: '3',
    };
    const config = load({ env });
    expect(config.ok).toBe(true);
    expect(epochsOf(networkIn('{}', undefined, env))).toEqual({ phase0: 0, capella: 3 });
  });

  it('has mainnet’s slots when only two versions are stated, as before', () => {
    const network = networkIn(
      members(', genesis_fork_version: "0x00000001", capella_fork_version: "0x00000001", genesis_time: 5'),
    );
    expect(network.time).toEqual({ genesisTimeSeconds: 5, slotDurationMs: 12_000, slotsPerEpoch: 32 });
    expect(epochsOf(network)).toEqual({ phase0: 0, capella: null });
  });

  it.each([
    ['', 'custom_network.genesis_fork_version is missing, and the network is custom'],
    [
      ', fork_versions: {phase0: "0x10000038"}',
      'custom_network.fork_versions.capella is missing, and the network is custom',
    ],
    [
      ', fork_versions: {phase0: 0x10000038}',
      'custom_network.fork_versions.phase0 must be 4 bytes of hex, 0x and 8 digits',
    ],
    [', fork_versions: {heze: "0x10000038"}', 'custom_network.fork_versions.heze is not a member of this object'],
    [
      `, ${VERSIONS}, genesis_fork_version: "0x00000001"`,
      'custom_network.genesis_fork_version is set, and custom_network.fork_versions states it',
    ],
    [`, ${VERSIONS}, preset: minimal`, 'custom_network.slot_duration_ms is missing, and the preset is minimal'],
    [
      `, ${VERSIONS}, config_name: "a/b"`,
      'custom_network.config_name must be a name of up to 64 letters, digits, spaces and . _ -',
    ],
  ])('%j is refused', (text, sentence) => {
    expect(sentencesOf({ yaml: members(text) })).toContain(sentence);
  });

  it('an epoch without a version is refused before the start', () => {
    expect(sentencesOf({ yaml: members(`, ${VERSIONS}`, '{deneb: 4}') })).toEqual([
      'network.fork_schedule.deneb is given, and the version of this fork is not known',
    ]);
  });
});

describe('ephemery', () => {
  const ephemery = (text: string) => `network: ephemery\ncustom_network: {${text}}`;

  it('has its forks built in, and its genesis in the configuration', () => {
    const network = networkIn(
      ephemery(`genesis_validators_root: "${ROOT}", genesis_time: 1790277000, deposit_chain_id: 39438164`),
    );
    expect(network).toMatchObject({
      name: 'ephemery',
      configName: 'ephemery',
      depositChainId: 39_438_164,
      slotsPerEpoch: 32,
    });
    expect(encodeHex(network.genesisValidatorsRoot)).toBe(ROOT);
    expect(network.time?.genesisTimeSeconds).toBe(1_790_277_000);
    expect(epochsOf(network)).toMatchObject({ fulu: 0, gloas: null });
  });

  it.each([
    [
      'network: ephemery',
      'custom_network.genesis_validators_root is missing: ephemery has another with each of its periods',
    ],
    [
      ephemery(`genesis_validators_root: "${ROOT}", preset: minimal`),
      'custom_network.preset is set, and the network is ephemery',
    ],
    [
      ephemery(`genesis_validators_root: "${ROOT}", config_file: a.yaml`),
      'custom_network.config_file is set, and the network is ephemery',
    ],
    [
      `${ephemery(`genesis_validators_root: "${ROOT}"`)}\nanti_slashing: {jump_at_boot: true}`,
      'custom_network.genesis_time is missing: no slot can be compared with the clock',
    ],
  ])('%j is refused', (yaml, sentence) => {
    expect(sentencesOf({ yaml }).join('\n')).toContain(sentence);
  });

  it('no other network takes a genesis', () => {
    expect(sentencesOf({ yaml: `custom_network: {genesis_validators_root: "${ROOT}"}` })).toEqual([
      'custom_network is set, and the network is not custom',
    ]);
  });
});
