import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseCeremony } from '../../ceremony/definition.ts';
import { renderHelp } from '../../command-line/help.ts';
import { REFERENCES } from '../../docs/generate.ts';
import { serverDescription } from '../../enclave/config/help.ts';
import { flagOf, OPTION_PATHS, variableOf } from '../../enclave/config/options.ts';
import { configurationReference } from '../../enclave/config/reference.ts';
import { readProxyConfiguration } from '../../parent-proxy/configuration.ts';
import { loadGood, multiRegionArn } from './loading.ts';

describe('generated references', () => {
  it.each(REFERENCES)('docs/$path is what the source says; if not, run `make docs`', ({ path, generate }) => {
    expect(readFileSync(new URL(`../../docs/${path}`, import.meta.url), 'utf8')).toBe(generate());
  });

  it('the reference and the help have every option, with its flag', () => {
    const [reference, help] = [configurationReference(), renderHelp(['server'], serverDescription())];
    for (const path of OPTION_PATHS) {
      const flag = flagOf(path);
      expect(reference).toContain(`| \`${path}\` |`);
      expect(reference).toContain(`\`${variableOf(path)}\``);
      expect(help).toContain(flag ?? `  ${path}`);
      expect(reference).toContain(flag === undefined ? path : `\`${flag}\``);
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
  it('loads as it is, given the tokens it refers to', () => {
    const yaml = readFileSync(new URL('../../docs/examples/strongroom.yaml', import.meta.url), 'utf8');
    const env = { VALIDATOR_CLIENT_TOKEN: 'a token of the client', MONITORING_TOKEN: 'a token of monitoring' };
    const config = loadGood({ yaml, env });
    expect(config.tls.mode).toBe('file');
    expect(config.static_auth.tokens).toHaveLength(2);
  });

  it('for an enclave is good for an image, and for the parent proxy beside it', () => {
    const yaml = readFileSync(new URL('../../docs/examples/enclave.yaml', import.meta.url), 'utf8');
    const arns = [multiRegionArn(1, 'eu-central-1'), multiRegionArn(1, 'eu-west-1')];
    const compiledCeremony = parseCeremony({
      generation: 1,
      kms_threshold: 1,
      kms_keys: [{ arns }],
      root_token_recipients: ['age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p'],
    });
    expect(loadGood({ yaml, build: { compiledCeremony } }).tee.platform).toBe('nitro');
    expect(readProxyConfiguration(Buffer.from(yaml), 'enclave.yaml')).toMatchObject({ ok: true });
  });
});
