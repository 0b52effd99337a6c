// A network that a configuration describes itself, by a file of a consensus client or by its members.

import { describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { FLEET_TOLERANCE } from '../../signer/slashing/future.ts';
import { OWN_CONFIG, PACKAGE_CONFIG } from '../support/consensus-configs.ts';
import { scheduledForkAt } from '../support/scheduled-fork.ts';
import { load, sentencesOf } from './loading.ts';
import { epochsOf, FILE, findingsIn, networkIn, ROOT } from './read-network.ts';

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
      tolerance: FLEET_TOLERANCE,
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

  it('says the same as the file, but for the name and the chain id of deposits', () => {
    const versions = ['phase0', 'altair', 'bellatrix', 'capella', 'deneb', 'electra', 'fulu', 'gloas']
      .map((name, index) => `${name}: "0x${index + 1}0000038"`)
      .join(', ');
    const yaml = members(
      `, genesis_time: 1795348820, fork_versions: {${versions}}`,
      '{altair: 0, bellatrix: 0, capella: 0, deneb: 0, electra: 0, fulu: 0, gloas: 1}',
    );
    const ofFile = networkIn(FILE, PACKAGE_CONFIG);
    expect(networkIn(yaml)).toEqual({ ...ofFile, configName: 'custom', depositChainId: undefined });
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
    expect(network.time).toEqual({
      genesisTimeSeconds: 5,
      slotDurationMs: 12_000,
      slotsPerEpoch: 32,
      tolerance: FLEET_TOLERANCE,
    });
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
  ])('%j is refused', (text, sentence) => {
    expect(sentencesOf({ yaml: members(text) })).toContain(sentence);
  });

  it('an epoch without a version is refused before the start', () => {
    expect(sentencesOf({ yaml: members(`, ${VERSIONS}`, '{deneb: 4}') })).toEqual([
      'network.fork_schedule.deneb is given, and the version of this fork is not known',
    ]);
  });
});
