import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { OPTION_PATHS, optionAt } from '../../signer/config/options.ts';
import { corsOrigins, hex, httpUrl, listenAddress, logFilter, postgresUrl } from '../../signer/config/values/values.ts';
import { loadGood } from './loading.ts';

const INTEGERS = OPTION_PATHS.filter((path) => optionAt(path).kind.form === 'integer');

it('no option stands in two sections, and every section is in the table', async () => {
  const folder = new URL('../../signer/config/options/', import.meta.url);
  const sections = await Promise.all(readdirSync(folder).map((name) => import(new URL(name, folder).href)));
  const rows = sections.flatMap((section) =>
    Object.entries<object>(section).flatMap(([name, value]) => (name.endsWith('_OPTIONS') ? Object.keys(value) : [])),
  );
  expect(rows.toSorted()).toEqual([...OPTION_PATHS].sort());
});

describe('numbers', () => {
  it.each(INTEGERS)('%s takes exactly the integers its description says', (path) => {
    const { kind } = optionAt(path);
    const [, min, max] = (/^an integer from (\d+) to (\d+)$/.exec(kind.expects) ?? []).map(Number);
    if (min === undefined || max === undefined) throw new Error(`${path} has no bounds`);
    for (const value of [min, max]) expect(kind.schema.safeParse(value).success).toBe(true);
    for (const value of [min - 1, max + 1, min + 0.5, Number.NaN, Infinity, String(min), null, undefined, true]) {
      expect(kind.schema.safeParse(value).success).toBe(false);
    }
  });
});

describe('texts', () => {
  it.each(['server', 'metrics', 'tls'] as const)('%s.listen_address localhost is 127.0.0.1, not ::1', (listener) => {
    const yaml = `${listener}: {listen_address: localhost}`;
    expect(loadGood({ yaml })[listener]).toMatchObject({ listen_address: '127.0.0.1' });
  });

  it.each([
    [
      'a listen address',
      listenAddress,
      ['0.0.0.0', '::', '::1', 'localhost', 'signer-1.example.org'],
      ['', '256.0.0.1', '1.2.3', 'a b', '-a', 'a..b', 'http://a', '127.0.0.1:9000'],
    ],
    ['a log filter', logFilter, ['info', 'off', 'info,http=debug'], ['', 'loud', 'http=', 'info,http=loud']],
    [
      'a collector URL',
      httpUrl,
      ['http://localhost:4317', 'https://collector.example'],
      ['', 'localhost:4317', 'ftp://a', 'http://user:pass@a'],
    ],
    [
      'a database URL',
      postgresUrl,
      ['postgres://a@b/c', 'postgresql://a:b@c:5432/d?sslmode=disable'],
      ['', 'mysql://a@b/c', 'host=a dbname=b'],
    ],
    ['four bytes of hex', hex(4), ['0x01020304', '0XABCDEF01'], ['01020304', '0x010203', '0x0102030405', '0x0102030g']],
  ] as const)('%s', (_, kind, accepted, refused) => {
    const isAccepted = (text: string): boolean => kind.schema.safeParse(text).success;
    expect(accepted.filter((text) => !isAccepted(text))).toEqual([]);
    expect(refused.filter(isAccepted)).toEqual([]);
  });

  it('a database URL is shown without user, password and parameters, and revealed whole', () => {
    const url = 'postgres://signer:hunter2@db.example:5432/slashing?sslmode=require';
    const secret = postgresUrl.schema.parse(url);
    expect(JSON.stringify({ secret })).toBe('{"secret":"postgres://db.example:5432/slashing"}');
    expect(secret.reveal().toString()).toBe(url);
  });

  it.each([
    ['postgres://c/', 'it names no user'],
    ['postgres://a@b/c?sslmode=prefer', 'sslmode is one of'],
    ['postgres://a@b/c?password=d', 'parameters are'],
    ['postgres://a@b', 'its path is not the name of one database'],
    ['mysql://a@b/c', 'its scheme is not postgres://'],
  ])('the database URL %s is refused where the configuration is read: %s', (url, problem) => {
    const [issue] = postgresUrl.schema.safeParse(url).error?.issues ?? [];
    expect(issue?.message).toContain(problem);
  });
});

describe('CORS origins', () => {
  it.each([['https://example.org'], ['http://localhost:3000'], ['*']])('%s is one', (origin) => {
    expect(corsOrigins.schema.parse([origin])).toEqual([origin]);
  });

  it.each([
    ['example.org'],
    ['https://example.org/'],
    ['https://example.org/path'],
    ['HTTPS://example.org'],
    ['null'],
    [''],
  ])('%s is none', (origin) => {
    expect(corsOrigins.schema.safeParse([origin]).success).toBe(false);
  });

  it('* stands alone, and no origin at all is no CORS', () => {
    expect(corsOrigins.schema.safeParse(['*', 'https://example.org']).success).toBe(false);
    expect(corsOrigins.schema.parse([])).toBeNull();
  });
});

describe('parsed values are canonical', () => {
  it('public keys and network hex are lower case, ranges are parsed', () => {
    const config = loadGood({
      yaml: [
        `canary_keys: ["${'AB'.repeat(48)}"]`,
        'network: custom',
        `custom_network: {genesis_validators_root: "0x${'AB'.repeat(32)}", genesis_fork_version: "0x0000000A", capella_fork_version: "0x0000000B"}`,
        'server: {trusted_proxy_cidrs: [10.0.0.0/8]}',
      ].join('\n'),
    });
    expect(config.canary_keys).toEqual([`0x${'ab'.repeat(48)}`]);
    expect(config.custom_network.genesis_validators_root).toBe(`0x${'ab'.repeat(32)}`);
    expect(config.server.trusted_proxy_cidrs[0]).toMatchObject({ family: 4, prefixLength: 8, text: '10.0.0.0/8' });
  });
});
