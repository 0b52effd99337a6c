import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { renderViolations } from '../../common/command-line/violations-report.ts';
import { Secret } from '../../signer/config/values/secret.ts';
import { load, loadGood, sentencesOf, violationsOf } from './loading.ts';

const TOKEN = 'hunter2-hunter2-hunter2';
const POLICIES = 'policies: [{name: all, rules: [{effect: allow}]}]';

function withToken(secret: string): string {
  return `static_auth: {${POLICIES}, tokens: [{secret: ${secret}, policies: [all]}]}`;
}

describe('a static token', () => {
  it('may be written in clear text or as a reference to the environment', () => {
    const clear = loadGood({ yaml: withToken(TOKEN) });
    const referred = loadGood({ yaml: withToken('env:TOKEN_A'), env: { TOKEN_A: TOKEN } });
    for (const config of [clear, referred]) {
      expect(config.static_auth.tokens[0]?.secret.reveal().toString()).toBe(TOKEN);
    }
  });

  it('that refers to an unset variable stops the start (specification/operating.md#startup-failures, 3)', () => {
    expect(violationsOf({ yaml: withToken('env:TOKEN_A') })).toMatchObject([
      {
        path: 'static_auth.tokens[0].secret',
        problem: 'refers to the environment variable TOKEN_A, which is unset',
        origin: 'config.yaml line 1',
      },
    ]);
  });

  it('may refer to a variable that starts with SVC_', () => {
    expect(load({ yaml: withToken('env:SVC_CLIENT_TOKEN'), env: { SVC_CLIENT_TOKEN: TOKEN } }).ok).toBe(true);
  });

  it.each([
    ['short', 'must be at least 16 characters'],
    ['"fifteen-charact"', 'must be at least 16 characters'],
    ['env:EMPTY', 'must be at least 16 characters'],
    ['"env:"', 'must be env:VAR_NAME'],
    ['env:NO-NAME', 'must be env:VAR_NAME'],
    ['1234567890123456', 'must be text'],
    ['null', 'must be text'],
    ['[hunter2-hunter2-hunter2]', 'must be text'],
  ])('%s is refused: %s', (secret, problem) => {
    const [sentence, ...others] = sentencesOf({ yaml: withToken(secret), env: { EMPTY: '' } });
    expect(sentence).toContain(`static_auth.tokens[0].secret ${problem}`);
    expect(others).toEqual([]);
  });

  it.each([
    [`"${TOKEN}\\n"`, {}, 'has a line break at its end', '$(cat FILE)'],
    ['env:T', { T: `${TOKEN}\n` }, 'has a line break at its end', 'printf %s'],
    ['env:T', { T: `${TOKEN}\r\n` }, 'has a line break at its end', 'echo'],
    ['env:T', { T: ` ${TOKEN}` }, 'has white space around it', 'write it without'],
    ['env:T', { T: `${TOKEN}\t` }, 'has white space around it', 'write it without'],
    ['env:T', { T: `\uFEFF${TOKEN}` }, 'has white space around it', 'write it without'],
    ['env:T', { T: `"${TOKEN}"` }, 'is written in quotes', 'write it without the quotes'],
    [`'"${TOKEN}"'`, {}, 'is written in quotes', 'write it without the quotes'],
    ['env:T', { T: `hunter2\u0007${TOKEN}` }, 'has a control character', 'openssl rand'],
    ['env:T', { T: `hunter2\n${TOKEN}` }, 'has a control character', 'openssl rand'],
    ['$VALIDATOR_CLIENT_TOKEN', {}, 'is a $ and a name', 'write env:VAR_NAME'],
    [`"\${VALIDATOR_CLIENT_TOKEN}"`, {}, 'is a $ and a name', 'write env:VAR_NAME'],
    ['"FILE:/run/secrets/token"', {}, 'begins with what looks like env: or file:', 'in lower case'],
    ['" env:T"', {}, 'begins with what looks like env: or file:', 'without white space'],
    ['"file:token"', {}, 'must be file:/PATH with an absolute path', 'from the root directory'],
    ['"file:/nowhere/token"', {}, 'refers to the file /nowhere/token, which cannot be read (ENOENT)', 'may read'],
    ['"file:/dev/null"', {}, 'is not a regular file', 'holds the secret alone'],
    ['1234567890123456', {}, 'must be text', 'quote it'],
    ['env:T', {}, 'refers to the environment variable T, which is unset', 'export T'],
    ['"env:$T"', {}, 'must be env:VAR_NAME', 'without a space, $ or braces'],
  ])('%j is refused, with what was probably meant', (secret, env, problem, remedy) => {
    const [violation, ...others] = violationsOf({ yaml: withToken(secret), env });
    expect(violation?.problem).toContain(problem);
    expect(violation?.remedy).toContain(remedy);
    expect(others).toEqual([]);
  });

  it('may hold spaces and begin with a dollar: only what is around it, or a mere name, is refused', () => {
    expect(load({ yaml: withToken('"$ horse battery staple"') }).ok).toBe(true);
    expect(load({ yaml: withToken('env:T'), env: { T: '$HOUSE_NUMBER_42_' } }).ok).toBe(true);
  });

  it('is not asked for by commands that authenticate nobody', () => {
    const two = `static_auth: {${POLICIES}, tokens: [{secret: "env:A", policies: [all]}, {secret: "env:B", policies: [all]}]}`;
    expect(load({ yaml: two, build: { compiledCeremony: false, withoutTokens: true } }).ok).toBe(true);
    expect(violationsOf({ yaml: two })).toHaveLength(2);
  });

  it('must be there', () => {
    expect(sentencesOf({ yaml: `static_auth: {${POLICIES}, tokens: [{policies: [all]}]}` })).toEqual([
      'static_auth.tokens[0].secret is required',
    ]);
  });

  it('is its own: two tokens with one secret are refused, wherever the secrets come from', () => {
    const tokens = `tokens: [{secret: ${TOKEN}, policies: [all]}, {secret: "env:T", policies: [all]}]`;
    expect(sentencesOf({ yaml: `static_auth: {${POLICIES}, ${tokens}}`, env: { T: TOKEN } }).join()).toContain(
      'static_auth.tokens[1].secret is the secret of an earlier token',
    );
  });
});

describe('a secret in a file of its own', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'strongroom-secret-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function file(content: string | Buffer, mode = 0o600): string {
    const path = join(folder, 'secret');
    writeFileSync(path, content);
    chmodSync(path, mode);
    return `"file:${path}"`;
  }

  it.each([TOKEN, `${TOKEN}\n`, `${TOKEN}\r\n`])('is its text, without the line break of an editor: %j', (content) => {
    const config = loadGood({ yaml: withToken(file(content)) });
    expect(config.static_auth.tokens[0]?.secret.reveal().toString()).toBe(TOKEN);
  });

  it.each([0o600, 0o400, 0o440, 0o640])('may be read by its owner and group: %o', (mode) => {
    expect(load({ yaml: withToken(file(TOKEN, mode)) }).ok).toBe(true);
  });

  it.each([0o644, 0o604, 0o602, 0o620, 0o666])('is refused when others can read or change it: %o', (mode) => {
    const [violation, ...others] = violationsOf({ yaml: withToken(file(TOKEN, mode)) });
    expect(violation?.problem).toContain(
      `may be read or changed by others (mode ${mode.toString(8).padStart(4, '0')})`,
    );
    expect(violation?.remedy).toContain('chmod 0600');
    expect(violation?.remedy).toContain('defaultMode: 0440');
    expect(others).toEqual([]);
  });

  it.each([
    [`${TOKEN}\n\n`, 'has a line break at its end'],
    [` ${TOKEN}`, 'has white space around it'],
    [`'${TOKEN}'\n`, 'is written in quotes'],
    [`hunter2\n${TOKEN}`, 'has a control character'],
    ['short', 'must be at least 16 characters'],
    ['', 'must be at least 16 characters'],
    [Buffer.from([0xff, 0xfe, 0x41]), 'is not UTF-8 text'],
    ['x'.repeat(17_000), 'is larger than 16384 bytes'],
  ])('%j is refused, and shown nowhere', (content, problem) => {
    const violations = violationsOf({ yaml: withToken(file(content)) });
    expect(violations).toHaveLength(1);
    expect(violations[0]?.problem).toContain(problem);
    expect(renderViolations(violations)).not.toContain('hunter2');
  });

  it('is not read by commands that authenticate nobody, and not in an enclave', () => {
    const missing = withToken('"file:/nowhere/token"');
    expect(load({ yaml: missing, build: { compiledCeremony: false, withoutTokens: true } }).ok).toBe(true);
    const inEnclave = violationsOf({ yaml: `${withToken(file(TOKEN))}\ntee: {platform: nitro}` });
    expect(inEnclave.map(({ problem }) => problem)).toContain(
      'refers to a file, and an enclave has no files of its own',
    );
  });

  it('may be the URL of the slashing database', () => {
    const url = 'postgres://signer:hunter2@db.example/slashing';
    const yaml = `anti_slashing: {backend: postgres, url: ${file(`${url}\n`)}}`;
    const config = loadGood({ yaml });
    expect(config.anti_slashing.url?.reveal().toString()).toBe(url);
    expect(config.anti_slashing.url?.toString()).not.toContain('hunter2');
  });
});

describe('the URL of the slashing database', () => {
  it.each([
    ['"$DATABASE_URL"', {}, 'is a $ and a name', 'write env:VAR_NAME'],
    ['"env:U"', { U: ' postgres://signer:hunter2@db.example/s' }, 'has white space around it', 'write it without'],
    ['"env:U"', { U: 'postgres://signer:hunter2@db.example/s\n' }, 'has a line break at its end', 'printf %s'],
    ['"file:url"', {}, 'must be file:/PATH', 'from the root directory'],
  ])('%s is refused, with what was probably meant', (reference, env, problem, remedy) => {
    const violations = violationsOf({ yaml: `anti_slashing: {backend: postgres, url: ${reference}}`, env });
    expect(violations).toHaveLength(1);
    expect(violations[0]?.problem).toContain(problem);
    expect(violations[0]?.remedy).toContain(remedy);
    expect(renderViolations(violations)).not.toContain('hunter2');
  });

  const yaml = 'anti_slashing: {backend: postgres, url: "env:DATABASE_URL"}';
  const url = 'postgres://signer:hunter2@db.example/slashing';

  it('may stand in a variable of any name, as a token may', () => {
    expect(
      loadGood({ yaml, env: { DATABASE_URL: url } })
        .anti_slashing.url?.reveal()
        .toString(),
    ).toBe(url);
    expect(loadGood({ yaml, env: { DATABASE_URL: url } }).anti_slashing.url?.toString()).not.toContain('hunter2');
  });

  it('that refers to an unset variable stops the start', () => {
    expect(violationsOf({ yaml })).toMatchObject([
      {
        path: 'anti_slashing.url',
        problem: 'refers to the environment variable DATABASE_URL, which is unset',
        remedy: expect.stringContaining('export DATABASE_URL'),
      },
    ]);
  });
});

describe('a loaded configuration', () => {
  it('shows no token when it is printed, serialised or inspected', () => {
    const config = loadGood({ yaml: withToken(TOKEN) });
    const shown = [
      JSON.stringify(config),
      inspect(config, { depth: null, showHidden: true }),
      `${config.static_auth.tokens[0]?.secret}`,
    ];
    for (const text of shown) {
      expect(text).not.toContain(TOKEN);
      expect(text).toContain('[secret]');
    }
  });

  it('a secret is zeros once it is wiped', () => {
    const secret = new Secret(TOKEN);
    secret.wipe();
    expect(secret.reveal()).toEqual(Buffer.alloc(TOKEN.length));
  });
});

describe('a report', () => {
  /** Each places the secret where it belongs, or where a slip of the hand could put it. */
  const PLACES: readonly ((secret: string) => Parameters<typeof violationsOf>[0])[] = [
    (secret) => ({ yaml: `${withToken(secret)}\nnetwork: ropsten` }),
    (secret) => ({ yaml: withToken(`{${secret}: 1}`) }),
    (secret) => ({ yaml: withToken(`[${secret}]`) }),
    (secret) => ({ yaml: withToken(`*${secret}`) }),
    (secret) => ({ yaml: withToken(`!${secret}`) }),
    (secret) => ({ yaml: withToken(`"${secret}" x`) }),
    (secret) => ({ yaml: withToken(`"\\${secret}"`) }),
    (secret) => ({ yaml: withToken(`@${secret}`) }),
    (secret) => ({ yaml: `static_auth: {tokens: [{secret:${secret}}]}` }),
    (secret) => ({ yaml: `static_auth: {tokens: [${secret}]}` }),
    (secret) => ({ yaml: `static_auth: {tokens: ${secret}}` }),
    (secret) => ({ yaml: `static_auth: ${secret}` }),
    (secret) => ({ yaml: `{token:${secret}}` }),
    (secret) => ({ env: { SVC_STATIC_AUTH: secret } }),
    (secret) => ({ env: { SVC_STATIC_AUTH: `{"tokens":[{"secret":"${secret}"}` } }),
    (secret) => ({ env: { SVC_STATIC_AUTH: `{"tokens":[{"secret":"${secret}","policies":[]}]}` } }),
    (secret) => ({ env: { SVC_ANTI_SLASHING__URL: `mysql://signer:${secret}@localhost/db` } }),
    (secret) => ({ env: { SVC_ANTI_SLASHING__URL: `postgres://signer:${secret}@local host/db` } }),
    (secret) => ({ env: { SVC_ANTI_SLASHING__URL: `postgres://signer:${secret}@localhost/db` } }),
    (secret) => ({ env: { SVC_OPENTELEMETRY__ENDPOINT: `http://a:${secret}@localhost` } }),
    (secret) => ({ env: { SVC_NETWORK: secret, SVC_LOGGING__LEVEL: secret } }),
    (secret) => ({ yaml: `canary_keys: ["${secret}"]` }),
    (secret) => ({ yaml: `static_auth: {policies: [{name: a, rules: [{effect: allow, keys: ["${secret}"]}]}]}` }),
    (secret) => ({
      yaml: `static_auth: {policies: [{name: "${secret}!", rules: [{effect: "${secret}", scopes: ["${secret}"]}]}]}`,
    }),
    (secret) => ({ argv: [secret] }),
    (secret) => ({ argv: ['--network', secret] }),
    (secret) => ({ argv: [`--token=${secret}`] }),
    (secret) => ({ argv: ['--token', secret] }),
  ];

  it('never repeats a secret, wherever it stands', () => {
    const anySecret = fc.stringMatching(/^q[A-Za-z0-9+/=]{10,40}Zz$/);
    fc.assert(
      fc.property(fc.constantFrom(...PLACES), anySecret, (place, secret) => {
        const violations = violationsOf(place(secret));
        expect(violations).not.toEqual([]);
        expect(renderViolations(violations)).not.toContain(secret);
      }),
      { numRuns: 1000 },
    );
  });
});
