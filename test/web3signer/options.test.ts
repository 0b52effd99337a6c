// The table of Web3Signer's options against the list of all of them, and against what happens: no option that is given
// goes without a trace.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../service/config/load.ts';
import type { GivenOption, GivenOptions } from '../../service/web3signer/given.ts';
import { type Web3SignerOption, web3SignerFlag } from '../../service/web3signer/option.ts';
import { ETH1_OPTIONS, OPTION_OF_NAME, WEB3SIGNER_OPTIONS } from '../../service/web3signer/options/options.ts';
import { translate } from '../../service/web3signer/translate.ts';
import { yamlText } from '../../service/web3signer/yaml-text.ts';
import { specificationText } from '../support/vectors.ts';

const LIST = specificationText('web3signer-flags.tsv');
/** Option groups of Web3Signer that only `eth1` has. */
const ETH1_CLASSES =
  /^(?:Eth1SubCommand|PicoCliClientTlsOptions|PicoCliKeyStoreOptions|PicoV3Keystores\w+|PicoCliAwsKmsParameters)$/;
const ROWS = (LIST ?? '')
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [group = '', flags = ''] = line.split('\t');
    const words = flags.split(' ');
    return {
      isEth1: ETH1_CLASSES.test(group),
      names: words.filter((word) => word.startsWith('--')).map((word) => word.slice(2)),
      letter: words.find((word) => /^-\w$/.test(word))?.slice(1),
    };
  });

describe.skipIf(LIST === undefined)('the list of all options', () => {
  it('has 116', () => {
    expect(ROWS).toHaveLength(116);
  });

  it('every one that concerns eth2 is in the table, with its other names, and nothing else is', () => {
    const listed = ROWS.filter(({ isEth1 }) => !isEth1).map(({ names, letter }) => [names.toSorted(), letter]);
    const listable = WEB3SIGNER_OPTIONS.filter(({ isOurs, isNewer }) => isOurs !== true && isNewer !== true);
    const table = listable.map(({ names, letter }) => [names.toSorted(), letter]);
    expect(unique(table)).toEqual(unique(listed));
  });

  it('every one of eth1 is known as such, unless eth2 has it too', () => {
    const only = ROWS.filter(({ isEth1 }) => isEth1).flatMap(({ names }) =>
      names.filter((name) => !OPTION_OF_NAME.has(name)),
    );
    expect(only.toSorted()).toEqual(ETH1_OPTIONS.toSorted());
  });
});

function unique(rows: readonly unknown[]): readonly string[] {
  return [...new Set(rows.map((row) => JSON.stringify(row)))].toSorted();
}

const COMMANDS = ['eth2 export', 'eth2 import', 'eth2 watermark-repair'];
/** What makes an option's sentence differ from the default. */
const VALUES: Readonly<Record<string, string>> = {
  network: 'hoodi',
  'http-listen-host': '127.0.0.2',
  'http-host-allowlist': 'signer.example',
  'metrics-host': '127.0.0.2',
  'http-cors-origins': 'https://example.org',
  logging: 'debug',
  'logging-format': 'ECS',
  'tls-allow-any-client': 'true',
  'slashing-protection-enabled': 'false',
  'slashing-protection-pruning-enabled': 'false',
  'Xkey-manager-skip-keystore-storage': 'true',
};

function valueFor({ names: [name], form }: Web3SignerOption): string {
  return VALUES[name] ?? { boolean: 'true', number: '7', text: '/somewhere/else' }[form];
}

function givenOf(...pairs: readonly (readonly [name: string, value: string])[]): GivenOptions {
  return new Map(
    pairs.map(([name, value]): [string, GivenOption] => {
      const option = OPTION_OF_NAME.get(name);
      if (option === undefined) throw new Error(`there is no option ${name}`);
      return [option.names[0], { option, value, origin: `flag --${name}` }];
    }),
  );
}

const PLAIN = translate(givenOf(), '/start');

describe('an option that is given', () => {
  const ordinary = WEB3SIGNER_OPTIONS.filter(
    ({ names, scope }) => names[0] !== 'config-file' && !COMMANDS.includes(scope),
  );

  it.each(ordinary.map((option) => [web3SignerFlag(option), option] as const))('%s leaves a trace', (flag, option) => {
    const translation = translate(givenOf([option.names[0], valueFor(option)]), '/start');
    const own = translation.warnings.filter(({ at }) => at === flag && !translateSaysAnyway(at));
    const refusals = translation.violations.filter(({ path }) => path === flag);
    switch (option.becomes.kind) {
      case 'honoured':
        expect(yamlText(translation.config) !== yamlText(PLAIN.config) || own.length + refusals.length > 0).toBe(true);
        break;
      case 'accepted':
        expect(own).toHaveLength(1);
        expect(own[0]?.says).toContain(option.becomes.instead);
        expect(yamlText(translation.config)).toBe(yamlText(PLAIN.config));
        break;
      case 'refused':
        expect(refusals).toMatchObject([{ problem: option.becomes.why, remedy: option.becomes.remedy }]);
    }
    for (const value of option.becomes.kind === 'honoured' ? [] : (option.becomes.unless ?? [])) {
      const harmless = translate(givenOf([option.names[0], value.toUpperCase()]), '/start');
      expect([...harmless.violations, ...harmless.warnings]).toEqual(PLAIN.warnings);
    }
  });

  const translateSaysAnyway = (at: string): boolean => PLAIN.warnings.some((warning) => warning.at === at);

  it('of the form boolean is true or false, in any case', () => {
    expect(translate(givenOf(['slashing-protection-enabled', 'no']), '/').violations).toMatchObject([
      { path: '--slashing-protection-enabled', problem: 'must be true or false' },
    ]);
  });

  it('slashing protection is on whatever is given', () => {
    for (const option of WEB3SIGNER_OPTIONS.filter(({ names: [name] }) => name.includes('slashing-protection'))) {
      for (const value of ['false', 'true', '0', '']) {
        const { config } = translate(givenOf([option.names[0], value]), '/start');
        expect(config['anti_slashing']).toEqual({ backend: 'sqlite', path: '/start/slashing_protection.sqlite' });
      }
    }
  });
});

describe('a translation', () => {
  it('is a configuration that loads', () => {
    const text = yamlText(PLAIN.config);
    const loaded = loadConfig(
      { argv: ['-c', 'x'], env: {}, readFile: () => Buffer.from(text) },
      { compiledCeremony: false },
    );
    expect(loaded.ok).toBe(true);
  });
});

describe('the documentation', () => {
  it('names no option that the table does not have', () => {
    const guide = readFileSync(new URL('../../docs/guides/web3signer.md', import.meta.url), 'utf8');
    const own = ['print-config', 'genesis-validators-root', 'from-web3signer'];
    const named = [...guide.matchAll(/`--([A-Za-z][\w-]*)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => !OPTION_OF_NAME.has(name) && !own.includes(name))).toEqual([]);
  });
});
