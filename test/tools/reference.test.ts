import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseCeremony } from '../../ceremony/definition.ts';
import { readCeremonyValue } from '../../ceremony/yaml.ts';
import { renderHelp } from '../../common/command-line/help.ts';
import { readProxyConfiguration } from '../../parent-proxy/configuration.ts';
import { serverDescription } from '../../service/config/help.ts';
import { flagOf, variableOf } from '../../service/config/option-names.ts';
import { OPTION_PATHS } from '../../signer/config/options.ts';
import { configurationReference } from '../../tools/reference/configuration.ts';
import { REFERENCES } from '../../tools/reference/generate.ts';
import { loadGood } from '../config/loading.ts';

describe('generated references', () => {
  it.each(REFERENCES)('$path is what the source says; if not, run `make docs`', ({ path, generate }) => {
    expect(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')).toBe(generate());
  });

  it('the reference and the help have every option, with its flag, by the rules that the reference states', () => {
    const [reference, help] = [configurationReference(), renderHelp(['server'], serverDescription())];
    for (const path of OPTION_PATHS) {
      const flag = flagOf(path);
      const line = reference.split('\n').find((other) => other.startsWith(`- \`${path}\` (`)) ?? '';
      const regular = `--${path.replaceAll(/[._]/g, '-')}`;
      expect([path, / \(.*; flag.*\): ./.test(line)]).toEqual([path, flag !== undefined]);
      if (flag !== undefined && flag !== regular) expect(line).toContain(`flag \`${flag}\``);
      expect(variableOf(path)).toBe(`SVC_${path.toUpperCase().replaceAll('.', '__')}`);
      expect(help).toContain(flag ?? `  ${path}`);
    }
  });
});

describe('names', () => {
  it('no two options share a flag or a variable', () => {
    const flags = OPTION_PATHS.flatMap((path) => flagOf(path) ?? []);
    expect(new Set(flags).size).toBe(flags.length);
    expect(new Set(OPTION_PATHS.map(variableOf)).size).toBe(OPTION_PATHS.length);
  });
});

describe('the example file', () => {
  it('for an enclave is good for an image, and for the parent proxy beside it', () => {
    const yaml = readFileSync(new URL('../../docs/examples/enclave.yaml', import.meta.url), 'utf8');
    const ceremony = readFileSync(new URL('../../docs/examples/ceremony.yaml', import.meta.url), 'utf8');
    const compiledCeremony = parseCeremony(readCeremonyValue(ceremony));
    expect(loadGood({ yaml, build: { compiledCeremony } }).tee.platform).toBe('nitro');
    expect(readProxyConfiguration(Buffer.from(yaml), 'enclave.yaml')).toMatchObject({ ok: true });
  });
});
