// What a consensus config.yaml is read as, and what is refused of it: by key and line, and never by guessing.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { MAX_CONSENSUS_CONFIG_BYTES, readConsensusConfig } from '../../service/config/consensus-config.ts';
import type { ConsensusConfig } from '../../signer/config/network.ts';
import { OWN_CONFIG, PACKAGE_CONFIG } from '../support/consensus-configs.ts';

function good(text: string): ConsensusConfig {
  const reading = readConsensusConfig(text);
  if ('problems' in reading) throw new Error(JSON.stringify(reading.problems));
  return reading.config;
}

function problemsOf(text: string): string[] {
  const reading = readConsensusConfig(text);
  return 'problems' in reading ? reading.problems.map(({ line, problem }) => `${line ?? '-'}: ${problem}`) : [];
}

/** The file with one key's line in other words; an empty text removes it. */
function changed(key: string, line: string, text = PACKAGE_CONFIG): string {
  const pattern = new RegExp(`^${key}:.*$`, 'm');
  expect(text).toMatch(pattern);
  return text.replace(pattern, line);
}

function lineOf(key: string): number {
  return PACKAGE_CONFIG.split('\n').findIndex((line) => line.startsWith(`${key}:`)) + 1;
}

const schedule = ({ forks }: ConsensusConfig) =>
  forks.map(({ name, version, epoch }) => `${name} ${encodeHex(version)} ${epoch}`);

describe('a config.yaml', () => {
  it('of ethereum-package is read', () => {
    const config = good(PACKAGE_CONFIG);
    expect(config).toMatchObject({
      configName: 'testnet',
      preset: 'mainnet',
      slotDurationMs: 12_000,
      depositChainId: 3_151_908,
      unknownForks: [],
      unknownFork: undefined,
    });
    expect(schedule(config)).toEqual([
      'phase0 0x10000038 0',
      'altair 0x20000038 0',
      'bellatrix 0x30000038 0',
      'capella 0x40000038 0',
      'deneb 0x50000038 0',
      'electra 0x60000038 0',
      'fulu 0x70000038 0',
      'gloas 0x80000038 1',
    ]);
  });

  it('is read with numbers and hex quoted or not, the older slot time, and forks left out', () => {
    const config = good(OWN_CONFIG);
    expect(config).toMatchObject({
      configName: 'short-epochs',
      preset: 'minimal',
      slotDurationMs: 2000,
      depositChainId: undefined,
    });
    expect(schedule(config)).toEqual([
      'phase0 0x0000000a 0',
      'altair 0x0100000a 2',
      'bellatrix 0x0200000a 3',
      'capella 0x0300000a null',
    ]);
  });

  it('keeps zeros at the front of unquoted hex', () => {
    const config = good(changed('GENESIS_FORK_VERSION', 'GENESIS_FORK_VERSION: 0x00000064'));
    expect(encodeHex(config.forks[0]?.version ?? new Uint8Array())).toBe('0x00000064');
  });

  it('need not have a name, a chain id, or a comment', () => {
    const bare = ['CONFIG_NAME', 'DEPOSIT_CHAIN_ID'].reduce((text, key) => changed(key, '', text), PACKAGE_CONFIG);
    expect(good(bare)).toMatchObject({ configName: undefined, depositChainId: undefined });
    expect(good(`---\n${PACKAGE_CONFIG.replaceAll(/#.*$/gm, '')}`)).toEqual(good(PACKAGE_CONFIG));
  });

  it('tells the forks that it plans and nobody here knows', () => {
    const text = changed('HEZE_FORK_EPOCH', 'HEZE_FORK_EPOCH: 12');
    expect(good(text).unknownForks).toEqual([{ name: 'HEZE', epoch: 12 }]);
  });

  it.each([
    ['a fork with a version after all known ones', 'HEZE_FORK_VERSION: 0x90000038\nHEZE_FORK_EPOCH: 12', 12],
    [
      'the first of two',
      'HEZE_FORK_VERSION: 0x90000038\nHEZE_FORK_EPOCH: 12\nIOTA_FORK_VERSION: 0xa0000038\nIOTA_FORK_EPOCH: 9',
      9,
    ],
    ['none at the epoch of a known one', 'HEZE_FORK_VERSION: 0x90000038\nHEZE_FORK_EPOCH: 1', undefined],
    ['none without a version: a feature', 'HEZE_FORK_EPOCH: 12', undefined],
  ])('says what ends the last known fork: %s', (_, lines, epoch) => {
    const text = changed('HEZE_FORK_VERSION', '', changed('HEZE_FORK_EPOCH', lines));
    expect(good(text).unknownFork?.epoch).toBe(epoch);
  });

  it('may have slots of no whole number of seconds', () => {
    const text = changed(
      'SLOT_DURATION_MS',
      'SLOT_DURATION_MS: 1500',
      changed('SECONDS_PER_SLOT', 'SECONDS_PER_SLOT: 1.5'),
    );
    expect(good(text).slotDurationMs).toBe(1500);
  });

  it('may state the slots of an epoch of its preset', () => {
    expect(good(`${OWN_CONFIG}SLOTS_PER_EPOCH: 8\n`)).toEqual(good(OWN_CONFIG));
  });
});

describe('of a config.yaml is refused', () => {
  it.each([
    ['PRESET_BASE', '', 'PRESET_BASE is missing'],
    ['PRESET_BASE', 'PRESET_BASE: Mainnet', 'PRESET_BASE must be one of mainnet, gnosis, minimal'],
    ['PRESET_BASE', 'PRESET_BASE: [mainnet]', 'PRESET_BASE must be one value'],
    ['PRESET_BASE', 'PRESET_BASE:', 'PRESET_BASE must be one of mainnet, gnosis, minimal'],
    ['CONFIG_NAME', 'CONFIG_NAME: "a\\nb"', 'CONFIG_NAME must be a name of up to 64 letters, digits, spaces and . _ -'],
    ['GENESIS_FORK_VERSION', '', 'GENESIS_FORK_VERSION is missing'],
    ['CAPELLA_FORK_VERSION', '', 'CAPELLA_FORK_VERSION is missing'],
    [
      'DENEB_FORK_VERSION',
      'DENEB_FORK_VERSION: 1342177336',
      'DENEB_FORK_VERSION must be 4 bytes of hex, 0x and 8 digits',
    ],
    [
      'DENEB_FORK_VERSION',
      'DENEB_FORK_VERSION: 50000038',
      'DENEB_FORK_VERSION must be 4 bytes of hex, 0x and 8 digits',
    ],
    [
      'DENEB_FORK_VERSION',
      'DENEB_FORK_VERSION: 0x5000038',
      'DENEB_FORK_VERSION must be 4 bytes of hex, 0x and 8 digits',
    ],
    ['DENEB_FORK_VERSION', 'DENEB_FORK_VERSION: 0x40000038', 'DENEB_FORK_VERSION is the version of capella too'],
    [
      'GLOAS_FORK_EPOCH',
      'GLOAS_FORK_EPOCH: 1e3',
      'GLOAS_FORK_EPOCH must be an epoch up to 2^53 - 1, or 18446744073709551615 (not planned)',
    ],
    [
      'GLOAS_FORK_EPOCH',
      'GLOAS_FORK_EPOCH: -1',
      'GLOAS_FORK_EPOCH must be an epoch up to 2^53 - 1, or 18446744073709551615 (not planned)',
    ],
    [
      'GLOAS_FORK_EPOCH',
      'GLOAS_FORK_EPOCH: 0x10',
      'GLOAS_FORK_EPOCH must be an epoch up to 2^53 - 1, or 18446744073709551615 (not planned)',
    ],
    [
      'GLOAS_FORK_EPOCH',
      'GLOAS_FORK_EPOCH: 9007199254740992',
      'GLOAS_FORK_EPOCH must be an epoch up to 2^53 - 1, or 18446744073709551615 (not planned)',
    ],
    [
      'GLOAS_FORK_EPOCH',
      'GLOAS_FORK_EPOCH: 18446744073709551614',
      'GLOAS_FORK_EPOCH must be an epoch up to 2^53 - 1, or 18446744073709551615 (not planned)',
    ],
    ['GLOAS_FORK_VERSION', '', 'GLOAS_FORK_VERSION is missing'],
    ['FULU_FORK_EPOCH', 'FULU_FORK_EPOCH: 2', 'GLOAS_FORK_EPOCH is 1, before fulu begins (2)'],
    [
      'FULU_FORK_EPOCH',
      'FULU_FORK_EPOCH: 18446744073709551615',
      'FULU_FORK_EPOCH says that fulu is not planned, and gloas, a later fork, is',
    ],
    [
      'HEZE_FORK_EPOCH',
      'HEZE_FORK_EPOCH: soon',
      'HEZE_FORK_EPOCH must be an epoch up to 2^53 - 1, or 18446744073709551615 (not planned)',
    ],
    ['SECONDS_PER_SLOT', 'SECONDS_PER_SLOT: 6', 'SECONDS_PER_SLOT contradicts SLOT_DURATION_MS'],
    ['SLOT_DURATION_MS', 'SLOT_DURATION_MS: 99', 'SLOT_DURATION_MS must be a time from 100 ms to 3600000 ms'],
    ['SLOT_DURATION_MS', 'SLOT_DURATION_MS: 12s', 'SLOT_DURATION_MS must be a whole number up to 2^53 - 1, decimal'],
    [
      'BLOB_SCHEDULE',
      'SLOTS_PER_EPOCH: 16\nBLOB_SCHEDULE:',
      'SLOTS_PER_EPOCH contradicts PRESET_BASE: an epoch of mainnet has 32',
    ],
    ['DEPOSIT_CHAIN_ID', 'DEPOSIT_CHAIN_ID: 0x10', 'DEPOSIT_CHAIN_ID must be a whole number up to 2^53 - 1, decimal'],
  ])('%s as "%s"', (key, line, problem) => {
    const [found = '', ...more] = problemsOf(changed(key, line));
    expect(more).toEqual([]);
    expect(found.replace(/^.*?: /, '')).toBe(problem);
    const [named = ''] = problem.split(' ');
    expect(found.split(': ')[0]).toBe(line === '' ? '-' : String(lineOf(named === 'SLOTS_PER_EPOCH' ? key : named)));
  });

  it('a file without any slot time', () => {
    expect(problemsOf(changed('SECONDS_PER_SLOT', '', OWN_CONFIG))).toEqual(['-: SLOT_DURATION_MS is missing']);
  });

  it('everything at once, and a slot time in the older key by that key', () => {
    const text = changed(
      'SECONDS_PER_SLOT',
      'SECONDS_PER_SLOT: 0',
      changed('PRESET_BASE', 'PRESET_BASE: none', OWN_CONFIG),
    );
    expect(problemsOf(text)).toEqual([
      '1: PRESET_BASE must be one of mainnet, gnosis, minimal',
      '10: SECONDS_PER_SLOT must be a time from 100 ms to 3600000 ms',
    ]);
  });

  it.each([
    ['a key that stands twice', `${OWN_CONFIG}PRESET_BASE: mainnet\n`, '11: a key is repeated'],
    ['an alias', `${OWN_CONFIG}A: &a 1\nB: *a\n`, '11: an anchor is used'],
    ['a list', '- PRESET_BASE: minimal', '1: it has no keys: it is not a consensus config.yaml'],
    ['nothing', '', '1: it has no keys: it is not a consensus config.yaml'],
    ['JSON that was cut off', '{"PRESET_BASE": "mainnet", ', '1: a character is missing'],
  ])('%s', (_, text, problem) => {
    expect(problemsOf(text)[0]).toContain(problem);
  });

  it('a file that was damaged anywhere, with a reason, unless what is read of it still holds together', () => {
    const damaged = fc
      .tuple(fc.nat(PACKAGE_CONFIG.length), fc.nat(40), fc.string({ maxLength: 12 }))
      .map(([at, length, text]) => PACKAGE_CONFIG.slice(0, at) + text + PACKAGE_CONFIG.slice(at + length));
    fc.assert(
      fc.property(damaged, (text) => {
        const reading = readConsensusConfig(text);
        if ('problems' in reading) return reading.problems.length > 0;
        const { forks } = reading.config;
        const epochs = forks.flatMap(({ epoch }) => epoch ?? []);
        return (
          forks[0]?.name === 'phase0' &&
          forks.some(({ name }) => name === 'capella') &&
          new Set(forks.map(({ version }) => encodeHex(version))).size === forks.length &&
          epochs.every((epoch, place) => epoch >= (epochs[place - 1] ?? 0))
        );
      }),
      { numRuns: 2000 },
    );
  });

  it('and no text makes the reader fail, however long', () => {
    expect(problemsOf(`A: ${'1'.repeat(MAX_CONSENSUS_CONFIG_BYTES)}`)).toContain('-: PRESET_BASE is missing');
  });
});
