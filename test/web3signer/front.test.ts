// The command line, environment and YAML file of Web3Signer as `strongroom web3signer` reads them: precedence, other
// names, what is refused. Then --print-config, with the real program.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runStrongroom } from '../../rehearsal/signer.ts';
import { readWeb3SignerArguments } from '../../service/web3signer/arguments.ts';
import { translated } from '../../service/web3signer/main.ts';
import type { YamlSection } from '../../service/web3signer/yaml-text.ts';
import { rootOf } from '../support/requests.ts';

const folder = mkdtempSync(join(tmpdir(), 'strongroom-front-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(text: string): string {
  const path = join(folder, `config-${Math.abs(hash(text))}.yaml`);
  writeFileSync(path, text);
  return path;
}

function hash(text: string): number {
  return [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) | 0, 0);
}

function read(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { translation } = translated(readWeb3SignerArguments(argv), env);
  const at = (path: string): unknown =>
    path.split('.').reduce<unknown>((section, name) => (section as YamlSection)[name], translation.config);
  return {
    at,
    warnings: translation.warnings.map(({ at, says }) => `${at} ${says}`),
    violations: translation.violations.map(
      ({ path, problem, remedy, origin }) => `${path} ${problem}: ${remedy} (${origin})`,
    ),
  };
}

it('what the container image sets for everybody is no mistake of whoever starts it', () => {
  const image = { WEB3SIGNER_HTTP_LISTEN_HOST: '0.0.0.0', WEB3SIGNER_METRICS_HOST: '0.0.0.0' };
  const saysOfMetrics = (argv: readonly string[], env = {}) =>
    read(argv, env).warnings.filter((text) => text.startsWith('--metrics-host '));
  expect(saysOfMetrics(['eth2'], image)).toEqual([]);
  expect(saysOfMetrics(['--metrics-host=0.0.0.0', 'eth2'], image)).toEqual([
    '--metrics-host does nothing without --metrics-enabled',
  ]);
  expect(saysOfMetrics(['eth2'], { WEB3SIGNER_METRICS_HOST: '10.0.0.7' })).toHaveLength(1);
});

describe('precedence', () => {
  const yaml = file('http-listen-port: 1\neth2.network: gnosis\nmetrics-enabled: true\n');
  const env = { WEB3SIGNER_HTTP_LISTEN_PORT: '2', WEB3SIGNER_ETH2_NETWORK: 'sepolia', WEB3SIGNER_CONFIG_FILE: yaml };

  it('the command line goes over the environment, and that over the file', () => {
    const all = read(['--http-listen-port=3', 'eth2'], env);
    expect([all.at('server.listen_port'), all.at('network.name'), all.at('metrics.listen_port')]).toEqual([
      3,
      'sepolia',
      9001,
    ]);
    const fileAlone = read([`--config-file=${yaml}`, 'eth2']);
    expect([fileAlone.at('server.listen_port'), fileAlone.at('network.name')]).toEqual([1, 'gnosis']);
    expect(read(['eth2']).at('server.listen_port')).toBe(9000);
  });

  it('a name and its other name are one option', () => {
    const other = { WEB3SIGNER_KEY_CONFIG_PATH: '/from/environment', WEB3SIGNER_ETH2_ENABLE_KEY_MANAGER_API: 'true' };
    expect(read(['eth2'], other).at('key_sources.filesystem.paths')).toEqual(['/from/environment']);
    expect(read(['--key-store-path=/a', 'eth2'], other).at('key_sources.filesystem.paths')).toEqual(['/a']);
    expect(read(['eth2'], other).at('http.key_manager_api.enabled')).toBe(true);
    expect(read(['eth2', '--key-manager-api-enabled=false'], other).at('http.key_manager_api.enabled')).toBe(false);
  });
});

describe('the command line', () => {
  it('takes values after =, after a space, after a letter, and booleans alone', () => {
    const { at, violations } = read([
      '--http-listen-port',
      '7',
      '-lDEBUG',
      'eth2',
      '--network',
      'hoodi',
      '--enable-key-manager-api',
    ]);
    expect(violations).toEqual([]);
    expect([at('server.listen_port'), at('logging.level'), at('network.name')]).toEqual([7, 'debug', 'hoodi']);
    expect(at('http.key_manager_api.enabled')).toBe(true);
    expect(read(['-l', 'WARN', 'eth2', '--enable-key-manager-api', 'false']).at('http.key_manager_api.enabled')).toBe(
      false,
    );
    expect(read(['-l=ALL', 'eth2']).at('logging.level')).toBe('trace');
  });

  it.each([
    [['--frobnicate=1', 'eth2'], /--frobnicate is not an option of Web3Signer’s eth2/],
    [['--http-listen-prot=1', 'eth2'], /did you mean --http-listen-port/],
    [['--http-listen-port=1', '--http-listen-port=2', 'eth2'], /given more than once/],
    [['--key-store-path=/a', '--key-config-path=/b', 'eth2'], /key-store-path and key-config-path are the same/],
    [['--http-listen-port', 'eth2'], /--http-listen-port has no value/],
    [['@options', 'eth2'], /is a file of arguments, which strongroom does not read/],
    [['eth1', '--chain-id=1'], /strongroom signs for validators of eth2 only/],
    [['filecoin'], /strongroom signs for validators of eth2 only/],
    [['eth1', '--downstream-http-host=x'], /is an option of eth1/],
    [['eth2', 'prune'], /prune is neither an option nor a command/],
    [['--logging-format=XML', 'eth2'], /is not a format of Web3Signer/],
  ])('refuses %j', (argv, text) => {
    expect(read(argv).violations.join('\n')).toMatch(text);
  });
});

describe('the environment', () => {
  it('warns of names that are no option, but of those of Kubernetes', () => {
    const { warnings } = read(['eth2'], {
      WEB3SIGNER_ETH2_NETWROK: 'hoodi',
      WEB3SIGNER_SERVICE_HOST: '10.0.0.1',
      WEB3SIGNER_PORT: 'tcp://10.0.0.1:9000',
      WEB3SIGNER_PORT_9000_TCP_ADDR: '10.0.0.1',
    });
    expect(warnings.filter((text) => text.startsWith('environment'))).toEqual([
      'environment WEB3SIGNER_ETH2_NETWROK is not the variable of an option, and does nothing; ' +
        'did you mean WEB3SIGNER_ETH2_NETWORK?',
    ]);
  });
});

describe('the YAML file', () => {
  it.each([
    [
      'http-listen-prot: 1\n',
      /http-listen-prot is not an option of Web3Signer: did you mean http-listen-port\?.*line 1/,
    ],
    ['network: hoodi\n', /network is not an option of Web3Signer/],
    ['eth2:\n  network: hoodi\n', /eth2 is not an option of Web3Signer/],
    ['http-listen-port: [1, 2]\n', /must be one value/],
    ['key-store-path: a\nkey-config-path: b\n', /given more than once/],
    ['http-listen-port: 1\nhttp-listen-port: 2\n', /a key is repeated/],
    ['# nothing\n', /without options/],
  ])('%j is refused', (text, message) => {
    expect(read([`--config-file=${file(text)}`, 'eth2']).violations.join('\n')).toMatch(message);
  });

  it('takes lists, and warns of what belongs to another sub-command', () => {
    const yaml = file('http-cors-origins: ["https://a.example", "https://b.example"]\neth1.chain-id: 1\n');
    const { at, warnings } = read([`--config-file=${yaml}`, 'eth2']);
    expect(at('server.cors_allowed_origins')).toEqual(['https://a.example', 'https://b.example']);
    expect(warnings.join('\n')).toMatch(/eth1\.chain-id .* does nothing/);
  });

  it('that is not there is refused', () => {
    expect(read(['--config-file=/nowhere/at.yaml', 'eth2']).violations.join('\n')).toMatch(/cannot be read: .*ENOENT/);
  });
});

describe('the network', () => {
  const config = file('PRESET_BASE: mainnet\n');
  const stated = `--genesis-validators-root=${rootOf(2)}`;

  it('is a name, in any case, or a path with a stated root', () => {
    expect(read(['eth2', '--network=Hoodi']).at('network.name')).toBe('hoodi');
    const { at, violations } = read(['eth2', `--network=${config}`, stated]);
    expect(violations).toEqual([]);
    expect([at('network.name'), at('custom_network.config_file')]).toEqual(['custom', config]);
    expect(at('custom_network.genesis_validators_root')).toBe(rootOf(2));
    expect(read(['eth2', '--network=ephemery', stated]).at('custom_network.genesis_validators_root')).toBe(rootOf(2));
    expect(read(['eth2', '--Xnetwork-fulu-fork-epoch=9']).at('network.fork_schedule.fulu')).toBe(9);
    expect(read(['eth2', '--Xnetwork-gloas-fork-epoch=10']).at('network.fork_schedule.gloas')).toBe(10);
  });

  it.each([
    [['--network=lukso'], /names a network that strongroom does not have: use one of mainnet, .*config\.yaml/],
    [['--network=https://example.org/config.yaml'], /is a URL/],
    [
      [`--network=${config}`],
      /genesis validators root is not known, and no request may decide it: add --genesis-validators-root/,
    ],
    [['--network=ephemery'], /genesis validators root is not known/],
    [
      [`--network=${config}`, '--genesis-validators-root=0x12'],
      /^--genesis-validators-root is not 32 bytes of hex: [^\n]*$/,
    ],
    [['--network=hoodi', stated], /strongroom has that of hoodi/],
  ])('refuses %j', (argv, text) => {
    expect(read(['eth2', ...argv]).violations.join('\n')).toMatch(text);
  });

  it('a root that contradicts the one beside the config.yaml is refused, and so is one that cannot be read', () => {
    const beside = join(folder, 'genesis_validators_root.txt');
    try {
      writeFileSync(beside, rootOf(3));
      expect(read(['eth2', `--network=${config}`]).at('custom_network.genesis_validators_root')).toBe(rootOf(3));
      expect(read(['eth2', `--network=${config}`, stated]).violations.join('\n')).toMatch(/says another root than/);
      writeFileSync(beside, 'none yet');
      expect(read(['eth2', `--network=${config}`, stated]).violations.join('\n')).toMatch(/is not 32 bytes of hex/);
    } finally {
      rmSync(beside);
    }
  });
});

describe('allowed hosts', () => {
  it('are those of Web3Signer unless given, and * is every host', () => {
    expect(read(['eth2']).at('server.allowed_hosts')).toEqual(['localhost', '127.0.0.1']);
    expect(read(['--http-host-allowlist=*', 'eth2']).at('server.allowed_hosts')).toBeNull();
    expect(read(['--http-host-allowlist=a, b', 'eth2']).at('server.allowed_hosts')).toEqual(['a', 'b']);
    expect(read(['--http-host-allowlist=none', 'eth2']).at('server.allowed_hosts')).toEqual([]); // refused then
  });
});

describe('access', () => {
  const scopesOf = (argv: readonly string[]) =>
    (read(argv).at('static_auth') as { policies: { rules: { scopes: string[] }[] }[] }).policies[0]?.rules[0]?.scopes;

  it('anonymous callers may do what Web3Signer lets them do, and no more', () => {
    expect(scopesOf(['eth2'])).toEqual(['sign', 'public_keys', 'reload']);
    expect(scopesOf(['eth2', '--key-manager-api-enabled'])).toEqual([
      'sign',
      'public_keys',
      'reload',
      'list_keys',
      'import_keystores',
      'delete_keys',
    ]);
  });
});

describe('--print-config', () => {
  it('prints a configuration that the server takes, and says on stderr what is different', async () => {
    const argv = [
      `--key-store-path=${folder}`,
      '--http-cors-origins=all',
      '--logging-format=ECS',
      '--metrics-enabled',
      'eth2',
    ];
    const database = '--slashing-protection-db-url=jdbc:postgresql://db/web3signer?user=signer&password=hunter2';
    const printed = await runStrongroom([...argv, database, '--key-manager-api-enabled', '--print-config']);
    expect(printed.code).toBe(0);
    const path = file(printed.stdout);
    expect(await runStrongroom(['server', '--check', '--offline', '-c', path])).toMatchObject({
      code: 0,
      stdout: 'strongroom: the configuration is valid\n',
    });
    expect(printed.stderr).toMatch(/static_auth lets callers without a token in/);
    for (const text of [printed.stdout, printed.stderr]) {
      expect(text).toContain("WEB3SIGNER_DB='postgresql://signer:PASSWORD@db/web3signer' strongroom slashing import");
      expect(text).not.toContain('hunter2');
    }
    expect(await runStrongroom(['--print-config', 'eth2', '-c', path])).toMatchObject({ code: 78 });
  });

  it('a value that the configuration refuses is refused with the option it came from', async () => {
    const { code, stderr } = await runStrongroom(['web3signer', '--http-cors-origins=.*', 'eth2', '--print-config']);
    expect(code).toBe(78);
    expect(stderr).toMatch(/server\.cors_allowed_origins.*\n +set by: flag --http-cors-origins/);
  });

  it('a token may be asked for by a variable of strongroom, and eth2 is needed', async () => {
    const missing = await runStrongroom(['--http-listen-port=0']);
    expect(missing).toMatchObject({ code: 78, stderr: expect.stringMatching(/does not say eth2/) });
    const help = await runStrongroom(['web3signer', '--help']);
    expect(help).toMatchObject({ code: 0, stdout: expect.stringMatching(/watermark-repair --slot=N --epoch=N/) });
    expect(await runStrongroom(['--help'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/Usage: strongroom COMMAND/),
    });
  });

  it('the commands say what they need', async () => {
    const { code, stderr } = await runStrongroom(['eth2', 'watermark-repair', '--slot=3', '--data-path', folder]);
    expect(code).toBe(1);
    expect(stderr).toContain('eth2 watermark-repair needs --epoch');
  });
});
