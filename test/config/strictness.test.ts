import { describe, expect, it } from 'vitest';
import { renderViolations } from '../../common/command-line/violations-report.ts';
import { loadConfig } from '../../service/config/load.ts';
import { load, loadGood, sentencesOf, violationsOf } from './loading.ts';

describe('the file', () => {
  it.each([
    ['a repeated key', 'network: mainnet\nnetwork: sepolia', 2, 'a key is repeated'],
    ['a repeated key deep inside', 'server:\n  mlock: off\n  mlock: required', 3, 'a key is repeated'],
    ['an anchor', 'server: &a\n  mlock: "off"', 2, 'an anchor is used'],
    ['an alias', 'network: &a mainnet\nlogging: {level: *a}', 2, 'an alias is used'],
    ['a custom tag', 'network: !env NETWORK', 1, 'a tag is used'],
    ['a tag that says what a value is anyway', 'network: !!str mainnet', 1, 'a tag is used'],
    ['a tag of a section', 'server: !!map {listen_port: 1}', 1, 'a tag is used'],
    ['a tag without a name', 'network: ! mainnet', 1, 'a tag is used'],
    ['a known tag', 'network: !!binary bWFpbm5ldA==', 1, 'a tag is used'],
    ['a second document', 'network: mainnet\n---\nnetwork: sepolia', 2, 'there is more than one document'],
    [
      'the rules of YAML 1.1',
      '%YAML 1.1\n---\nsigning: {priority: {enabled: yes}}',
      1,
      'the document declares another',
    ],
    ['a tab as indentation', 'server:\n\tmlock: "off"', 2, 'a tab is used'],
    ['an open bracket', 'canary_keys: [', 1, 'the indentation is wrong, or a bracket is not closed'],
  ])('refuses %s, with its line', (_, yaml, line, problem) => {
    const violations = violationsOf({ yaml });
    expect(violations.map(({ path }) => path)).toContain('the file');
    expect(violations.map((violation) => violation.problem).join()).toContain(problem);
    expect(violations.map(({ origin }) => origin)).toContain(`config.yaml line ${line}`);
  });

  it('says what else is wrong of a file of which it is plain what stands where', () => {
    const yaml = 'network: mainnet\nnetwork: hoodi\nserver: &a\n  listen_port: 99999\nfoo: 1';
    const said = violationsOf({ yaml }).map(({ path, origin }) => `${path}, ${origin}`);
    expect(said).toContain('the file, config.yaml line 2');
    expect(said).toContain('foo, config.yaml line 5');
    expect(said).toContain('server.listen_port, config.yaml line 4');
    const open = `network: [\n${yaml}`;
    expect(new Set(violationsOf({ yaml: open }).map(({ path }) => path))).toEqual(new Set(['the file']));
  });

  it('refuses an unknown key with its line, and names the option that was probably meant', () => {
    expect(violationsOf({ yaml: 'network: mainnet\nserver:\n  lisen_port: 1' })).toEqual([
      {
        path: 'server.lisen_port',
        problem: 'is not an option',
        remedy: 'did you mean server.listen_port?',
        origin: 'config.yaml line 3',
      },
    ]);
  });

  it('refuses an unknown key in an object-valued option with its own line', () => {
    const yaml = 'static_auth:\n  policies:\n    - name: a\n      rules:\n        - effect: allow\n          key: []';
    expect(violationsOf({ yaml })).toMatchObject([
      { path: 'static_auth.policies[0].rules[0].key', origin: 'config.yaml line 6' },
    ]);
  });

  it('refuses the dotted spelling of an option: there is one place for each', () => {
    expect(sentencesOf({ yaml: 'server.listen_port: 1' })).toEqual(['server.listen_port is not an option']);
  });

  it('refuses YAML 1.1 booleans and numbers in quotes', () => {
    expect(sentencesOf({ yaml: 'signing: {priority: {enabled: yes}}\nserver: {listen_port: "9000"}' })).toEqual([
      'server.listen_port must be an integer from 0 to 65535',
      'signing.priority.enabled must be true or false',
    ]);
  });

  it.each(['[]', 'text', '3'])('refuses %s at the top', (yaml) => {
    expect(sentencesOf({ yaml })).toEqual(['the file must be a section with options']);
  });

  it('refuses bytes that are not UTF-8', () => {
    expect(violationsOf({ yaml: Buffer.from([0x6e, 0xff]) })).toMatchObject([
      { path: 'the file', problem: 'is not UTF-8, or too large', origin: 'config.yaml' },
    ]);
  });

  it('that cannot be read is one violation, and no rule guesses at what was in it', () => {
    const argv = ['-c', 'does-not-exist/config.yaml', '--key-sources-dynamodb-table', 'keys'];
    const loaded = loadConfig({ argv, env: {} }, { compiledCeremony: false });
    expect(loaded).toMatchObject({ ok: false, violations: [{ path: argv[1], problem: 'cannot be read (ENOENT)' }] });
  });

  it.each(['', '\n', '# network: mainnet\n', '---\n', 'null'])('refuses %j, which sets nothing', (yaml) => {
    expect(violationsOf({ yaml })).toMatchObject([
      { path: 'the file', problem: 'sets nothing: it is empty, or all comments', origin: 'config.yaml' },
    ]);
  });

  it('may have sections whose options are all commented out', () => {
    expect(loadGood({ yaml: 'server:\n  # listen_port: 1\nlogging: {}' }).server.listen_port).toBe(9000);
  });

  it('knows null only where an option does: no CORS', () => {
    expect(loadGood({ yaml: 'server: {cors_allowed_origins: null}' }).server.cors_allowed_origins).toBeNull();
    expect(sentencesOf({ yaml: 'network: null' })).toEqual([
      'network must be one of mainnet, hoodi, sepolia, gnosis, chiado, plataberget, ephemery, custom',
    ]);
    expect(sentencesOf({ yaml: 'static_auth:' })).toEqual(['static_auth must be an object']);
  });

  it.each(['__proto__: {}', 'constructor: 1', 'server: {toString: 1}', 'static_auth: {__proto__: {policies: []}}'])(
    'refuses %s, a name that every object has',
    (yaml) => {
      expect(sentencesOf({ yaml }).join()).toMatch(/is not (an option|a member)/);
    },
  );
});

describe('flags', () => {
  it('refuses an unknown flag with its value as one mistake, and names the one that was probably meant', () => {
    expect(violationsOf({ argv: ['--netwrok', 'sepolia'] })).toEqual([
      {
        path: '--netwrok',
        problem: 'is not a flag of the server',
        remedy: 'did you mean --network?',
        origin: 'flag --netwrok',
      },
    ]);
  });

  it.each([
    [['--network', 'sepolia', '--network', 'sepolia'], 'network is given more than once'],
    [['--logging-color', '--logging-color=false'], 'logging.color is given more than once'],
    [['--check', '--check'], '--check is given more than once'],
    [['-c', 'a', '--config', 'b'], '--config is given more than once'],
    [['--check=true'], '--check takes no value'],
    [['--network'], 'network has a flag without its value'],
    [['--network', '--check'], 'network has a flag without its value'],
    [['-c'], '--config has a flag without its value'],
    [['mainnet'], 'an argument is not a flag'],
    [['--', 'mainnet'], 'an argument is not a flag'],
    [['-x'], '-x is not a flag of the server'],
    [['--no-logging-color'], '--no-logging-color is not a flag of the server'],
    [['--static-auth={}'], '--static-auth is not a flag of the server'],
    [['--network='], 'network must be one of mainnet, hoodi, sepolia, gnosis, chiado, plataberget, ephemery, custom'],
    [['--server-listen-port=0x10'], 'server.listen_port must be an integer from 0 to 65535'],
    [['--server-listen-port=1e3'], 'server.listen_port must be an integer from 0 to 65535'],
    [['--server-listen-port=-1'], 'server.listen_port must be an integer from 0 to 65535'],
    [['--logging-color=yes'], 'logging.color must be true or false'],
    [['--logging-color', 'no'], 'an argument is not a flag'],
  ])('%j is refused: %s', (argv, sentence) => {
    const loaded = loadConfig({ argv, env: {}, readFile: () => Buffer.from('{}') }, { compiledCeremony: false });
    const violations = loaded.ok ? [] : loaded.violations;
    expect(violations.map(({ path, problem }) => `${path} ${problem}`)).toEqual([sentence]);
  });

  it('a boolean flag says true alone, and what it is told otherwise', () => {
    expect(loadGood({ argv: ['--logging-color'] }).logging.color).toBe(true);
    expect(loadGood({ argv: ['--logging-color=false'] }).logging.color).toBe(false);
    expect(loadGood({ argv: ['--logging-color', 'false', '--check'] }).logging.color).toBe(false);
  });

  it('the repeatable flag takes one path each time, commas and all', () => {
    const argv = ['--key-sources-filesystem-paths', '/a,b', '--key-sources-filesystem-paths', '/c'];
    expect(loadGood({ argv }).key_sources.filesystem.paths).toEqual(['/a,b', '/c']);
  });

  it('other lists are comma-separated', () => {
    const argv = ['--server-cors-allowed-origins', 'https://a.example, https://b.example'];
    expect(loadGood({ argv }).server.cors_allowed_origins).toEqual(['https://a.example', 'https://b.example']);
  });

  it('--check is passed on', () => {
    expect(load({ argv: ['--check'] })).toMatchObject({ ok: true, check: true });
  });
});

describe('the environment', () => {
  it('refuses an unknown SVC_ variable, and names the one that was probably meant', () => {
    expect(violationsOf({ env: { SVC_SERVER_LISTEN_PORT: '1' } })).toEqual([
      {
        path: 'SVC_SERVER_LISTEN_PORT',
        problem: 'is not the variable of an option',
        remedy: 'did you mean SVC_SERVER__LISTEN_PORT?',
        origin: 'environment SVC_SERVER_LISTEN_PORT',
      },
    ]);
  });

  it('leaves the variables of the operator commands, and everyone else’s, alone', () => {
    expect(load({ env: { SVC_OPERATOR_TOKEN: 'x', SVCX: 'y', PATH: '/bin', svc_network: 'z' } }).ok).toBe(true);
  });

  it('an empty text is an empty list, and no value for anything else', () => {
    expect(loadGood({ env: { SVC_KEY_SOURCES__FILESYSTEM__PATHS: '' } }).key_sources.filesystem.paths).toEqual([]);
    expect(sentencesOf({ env: { SVC_NETWORK: '', SVC_SERVER__LISTEN_PORT: '' } })).toHaveLength(2);
  });

  it('refuses an empty item in a list', () => {
    expect(sentencesOf({ env: { SVC_KEY_SOURCES__FILESYSTEM__PATHS: '/a,,/b' } })).toEqual([
      'key_sources.filesystem.paths[1] must be non-empty text',
    ]);
  });

  it('objects are JSON, each key once', () => {
    const env = { SVC_STATIC_AUTH: '{"policies":[{"name":"a","rules":[{"effect":"allow"}]}]}' };
    expect(loadGood({ env }).static_auth.policies.map(({ name }) => name)).toEqual(['a']);
    for (const text of ['', 'policies: []', '{"policies":[]', '{"policies":[],"policies":[]}', '"{}"']) {
      expect(sentencesOf({ env: { SVC_STATIC_AUTH: text } })).toEqual(['static_auth is not well-formed JSON']);
    }
  });
});

describe('the report', () => {
  it('has every violation of every layer, with its origin and what to do', () => {
    const violations = violationsOf({
      argv: ['--server-listen-port=99999', '--bogus'],
      env: { SVC_NETWORK: 'ropsten', SVC_BOGUS: '1' },
      yaml: 'bogus: 1\nlogging:\n  format: xml',
    });
    expect(violations.map(({ path, origin }) => `${path} ← ${origin}`)).toEqual([
      '--bogus ← flag --bogus',
      'bogus ← config.yaml line 1',
      'SVC_BOGUS ← environment SVC_BOGUS',
      'server.listen_port ← flag --server-listen-port',
      'network ← environment SVC_NETWORK',
      'logging.format ← config.yaml line 3',
    ]);
    const report = renderViolations(violations);
    expect(report).toContain('The configuration has 6 violations');
    for (const { path, problem, remedy, origin } of violations) {
      expect(remedy).not.toBe('');
      for (const part of [path, problem, remedy, origin]) expect(report).toContain(part);
    }
  });

  it('does not drown in one mistake made many times', () => {
    const keys = Array.from({ length: 1000 }, () => '0x00');
    const report = renderViolations(violationsOf({ yaml: `canary_keys: ${JSON.stringify(keys)}` }));
    expect(report).toContain('1000 violations');
    expect(report).toContain('and 800 more');
  });
});
