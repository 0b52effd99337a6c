// The network that a configuration names: how it is written, what is refused, and what comes out of it.

import { describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { PUBLIC_NETWORK_NAMES } from '../support/networks.ts';
import { scheduledForkAt } from '../support/scheduled-fork.ts';
import { loadGood, sentencesOf, violationsOf } from './loading.ts';
import { epochsOf, networkIn, ROOT } from './read-network.ts';

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

describe('ephemery', () => {
  const ephemery = (text: string) => `network: ephemery\ncustom_network: {${text}}`;

  it('has its forks built in, and its genesis in the configuration', () => {
    const network = networkIn(ephemery(`genesis_validators_root: "${ROOT}", genesis_time: 1790277000`));
    expect(network).toMatchObject({
      name: 'ephemery',
      configName: 'ephemery',
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
