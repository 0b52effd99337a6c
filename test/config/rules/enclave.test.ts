// What a configuration for an enclave may say, on the way into an image (`server --check`) and inside it.

import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { parseCeremony } from '../../../ceremony/definition.ts';
import { readMeasuredConfiguration } from '../../../enclave/measure.ts';
import { dynamodbRegions } from '../../../signer/config/egress-needs.ts';
import { authoritiesOf, type NamedAuthorities } from '../../../signer/tee/authorities.ts';
import { keyArn, load, multiRegionArn, sentencesOf } from '../loading.ts';

const RECIPIENT = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p';
const CEREMONY = parseCeremony({
  generation: 2,
  kms_threshold: 1,
  kms_keys: [{ arns: [keyArn(1)] }],
  retired_kms_keys: [{ arns: [multiRegionArn(2, 'eu-central-1'), multiRegionArn(2, 'eu-west-1')] }],
  root_token_recipients: [RECIPIENT],
});

const endpoint = (index: number, hostname: string, members: object = {}) => ({
  hostname,
  loopback: `127.0.1.${index}`,
  vsock_port: 8000 + index,
  ...members,
});
const DYNAMODB = endpoint(1, 'dynamodb.eu-central-1.amazonaws.com');
const KMS = endpoint(2, 'kms.eu-central-1.amazonaws.com');
const KMS_WEST = endpoint(3, 'kms.eu-west-1.amazonaws.com');

const ENCLAVE = {
  signer_state: { backend: 'dynamodb', table: 'state' },
  key_sources: { dynamodb: { table: 'keys' } },
  anti_slashing: { backend: 'dynamodb', table: 'slashing' },
  tls: { mode: 'ratls' },
  tee: {
    platform: 'nitro',
    nitro: { egress: { endpoints: [DYNAMODB, KMS, KMS_WEST] }, unsafe_parent_writes_tables: true },
  },
  parent_proxy: { enclave_cid: 16 },
};

const DEVNET = { genesis_validators_root: `0x${'ab'.repeat(32)}`, genesis_time: 1_795_348_820 };

/** As the image itself refuses it. */
function inImage(config: object, authorities: NamedAuthorities = {}): string[] {
  const bytes = Buffer.from(yamlOf(config));
  const compiled = { compiledCeremony: CEREMONY, compiledAuthorities: authoritiesOf(authorities) };
  const read = readMeasuredConfiguration(bytes, { name: 'config.yaml', ...compiled });
  return read.ok ? [] : read.violations.map(({ path, problem }) => `${path} ${problem}`);
}

/** As `server --check` refuses it, of the same configuration. */
function onHost(config: object): string[] {
  return sentencesOf({ yaml: yamlOf(config), build: { compiledCeremony: CEREMONY } });
}

function yamlOf(config: object): string {
  return stringify(config, { aliasDuplicateObjects: false });
}

function changed(path: string, value: unknown): object {
  const config = parse(yamlOf(ENCLAVE)) as Record<string, unknown>;
  const names = path.split('.');
  const last = names.pop() ?? path;
  let section = config;
  for (const name of names) {
    section[name] ??= {};
    section = section[name] as Record<string, unknown>;
  }
  section[last] = value;
  return config;
}

const withEndpoints = (...endpoints: object[]): object => changed('tee.nitro.egress.endpoints', endpoints);
const postgres = (url: string): object => ({
  ...changed('anti_slashing', { backend: 'postgres', url }),
  tee: {
    platform: 'nitro',
    nitro: {
      egress: { endpoints: [DYNAMODB, KMS, KMS_WEST, endpoint(4, 'db.example.org', { port: 5432 })] },
      unsafe_parent_writes_tables: true,
    },
  },
});

describe('an enclave configuration', () => {
  it('is accepted in an image', () => {
    expect(inImage(ENCLAVE)).toEqual([]);
    expect(inImage(postgres('postgres://signer@db.example.org/slashing'))).toEqual([]);
  });

  it('takes no secret from an environment, for it will have none: refused on the way into an image too', () => {
    const { signer_state: _, key_sources: __, ...stateless } = ENCLAVE;
    const tokens = [{ secret: 'env:SIGNER_TOKEN', policies: ['all'] }];
    const policies = [{ name: 'all', rules: [{ effect: 'allow' }] }];
    const yaml = yamlOf({ ...stateless, static_auth: { policies, tokens } });
    const env = { SIGNER_TOKEN: 'TEST-secret-of-a-token' };
    const refusal = [
      'static_auth.tokens[0].secret refers to the environment variable SIGNER_TOKEN, and an enclave has no environment',
    ];
    expect(sentencesOf({ yaml, env, argv: ['--check'] })).toEqual(refusal);
    expect(sentencesOf({ yaml, env, build: { compiledCeremony: CEREMONY } })).toEqual(refusal);
    expect(sentencesOf({ yaml, build: { compiledCeremony: CEREMONY } })).toEqual(refusal);
  });

  it('is accepted by --check on any machine, and not run there', () => {
    const yaml = yamlOf(ENCLAVE);
    expect(load({ yaml, argv: ['--check'] })).toMatchObject({ ok: true, check: true });
    expect(load({ yaml, build: { compiledCeremony: false, onlyRead: true } })).toMatchObject({ ok: true });
    expect(sentencesOf({ yaml })).toEqual(['tee.platform is nitro, and this is not an enclave image']);
  });

  it('takes its ceremony from the image', () => {
    const ceremony = {
      generation: 1,
      kms_threshold: 1,
      kms_keys: [{ arns: [keyArn(1)] }],
      root_token_recipients: [RECIPIENT],
    };
    expect(inImage({ ...ENCLAVE, ceremony })).toEqual([
      expect.stringContaining('ceremony is set, and an enclave takes'),
    ]);
  });

  it.each<[string, object, string]>([
    ['the platform is off', { tls: {} }, 'tee.platform is not nitro, and this is an enclave image'],
    ['the listener is not attested', changed('tls.mode', 'disabled'), 'tls.mode is not ratls'],
    [
      'the listener takes files',
      changed('tls', { mode: 'file', file: { cert_path: 'a', key_path: 'b' } }),
      'tls.mode is not ratls',
    ],
    [
      'clients may take every descriptor',
      changed('tls', { mode: 'ratls', max_connections: 32_769 }),
      'tls.max_connections is more than 32768',
    ],
    [
      'keys are files',
      changed('key_sources.filesystem', { paths: ['/keys'] }),
      'key_sources.filesystem.paths is set, and an enclave has no disk',
    ],
    [
      'records are a file',
      changed('anti_slashing', { backend: 'sqlite' }),
      'anti_slashing.backend is sqlite, and an enclave has no disk',
    ],
    [
      'records are a file by default',
      changed('anti_slashing', {}),
      'anti_slashing.backend is not set, which means sqlite',
    ],
    ['nothing is recorded', changed('anti_slashing', { backend: 'noop' }), 'anti_slashing.backend is noop: an image'],
    ['a port is any free one', changed('server.listen_port', 0), 'server.listen_port is 0, and the parent has to know'],
    [
      'the parent proxy’s block is wrong',
      changed('parent_proxy', { enclave_cid: 2 }),
      'parent_proxy.enclave_cid must be the CID',
    ],
    [
      'DynamoDB is not declared',
      withEndpoints(KMS, KMS_WEST),
      'tee.nitro.egress.endpoints declares no dynamodb.REGION.amazonaws.com',
    ],
    [
      'DynamoDB is declared on another port',
      withEndpoints({ ...DYNAMODB, port: 8443 }, KMS, KMS_WEST),
      'tee.nitro.egress.endpoints declares no dynamodb',
    ],
    [
      'DynamoDB is declared in two regions',
      withEndpoints(DYNAMODB, KMS, KMS_WEST, endpoint(4, 'dynamodb.eu-west-1.amazonaws.com')),
      'tee.nitro.egress.endpoints declares DynamoDB in several regions (eu-central-1, eu-west-1)',
    ],
    [
      'a region of the ceremony is not declared, though its keys are retired replicas',
      withEndpoints(DYNAMODB, KMS),
      'tee.nitro.egress.endpoints does not declare kms.eu-west-1.amazonaws.com on port 443',
    ],
    ...['localhost', 'DB.localhost'].map((name): [string, object, string] => [
      `${name} is declared`,
      changed('tee.nitro.egress.endpoints', [DYNAMODB, KMS, KMS_WEST, endpoint(4, name)]),
      'tee.nitro.egress.endpoints declares localhost, which is the machine itself',
    ]),
    [
      'the database is not declared',
      changed('anti_slashing', { backend: 'postgres', url: 'postgres://signer@db.example.org/slashing' }),
      'tee.nitro.egress.endpoints does not declare db.example.org on port 5432',
    ],
    [
      'the database’s port is another',
      postgres('postgres://signer@db.example.org:6432/slashing'),
      'tee.nitro.egress.endpoints does not declare db.example.org on port 6432',
    ],
    [
      'anybody could answer for the database',
      postgres('postgres://signer@db.example.org/slashing?sslmode=require'),
      'anti_slashing.url says sslmode=require',
    ],
    [
      'the database’s roots are a file',
      postgres('postgres://signer@db.example.org/slashing?sslrootcert=/roots.pem'),
      'anti_slashing.url names a file (sslrootcert)',
    ],
    [
      'the network is a file',
      { ...ENCLAVE, network: 'custom', custom_network: { ...DEVNET, config_file: '/devnet/config.yaml' } },
      'custom_network.config_file is set, and an enclave has no disk',
    ],
    [
      'receipts would be kept in a folder',
      changed('receipts', { storage: 'folder', path: '/srv/receipts' }),
      'receipts.path is set, and an enclave has no disk',
    ],
    [
      'the network’s genesis time is not known',
      {
        ...ENCLAVE,
        network: 'ephemery',
        custom_network: { genesis_validators_root: DEVNET.genesis_validators_root },
      },
      'custom_network.genesis_time is missing',
    ],
    [
      'clients would be known by certificates',
      changed('tls', { known_clients: [{ name: 'c', policies: ['all'], spki_sha256: 'ab'.repeat(32) }] }),
      'tls.known_clients is set, and the RA-TLS listener asks for no client certificate',
    ],
    [
      'clients would be known by an authority',
      changed('tls', { client_ca: 'ca.pem' }),
      'tls.client_ca is set, and the RA-TLS listener asks for no client certificate',
    ],
    [
      'clients would have to show a certificate',
      changed('tls', { client_auth: 'required' }),
      'tls.client_auth is set, and the RA-TLS listener asks for no client certificate',
    ],
    [
      'the collector is not declared',
      changed('opentelemetry', { enabled: true, endpoint: 'http://collector.example.org:4317' }),
      'tee.nitro.egress.endpoints does not declare collector.example.org on port 4317',
    ],
    [
      'two endpoints are one host',
      withEndpoints(DYNAMODB, KMS, KMS_WEST, endpoint(4, 'kms.eu-west-1.amazonaws.com', { port: 8443 })),
      'tee.nitro.egress.endpoints[3].hostname is the host of an earlier endpoint',
    ],
    [
      'an endpoint is an address',
      withEndpoints(DYNAMODB, KMS, KMS_WEST, endpoint(4, '10.0.0.1')),
      'tee.nitro.egress.endpoints[3].hostname is an IP address',
    ],
  ])('is refused in an image when %s', (_, config, sentence) => {
    expect(inImage(config)).toContainEqual(expect.stringContaining(sentence));
    expect(onHost(config)).toContainEqual(expect.stringContaining(sentence));
  });

  it('without tables needs no DynamoDB and no KMS', () => {
    const { signer_state: _state, key_sources: _keys, ...stateless } = ENCLAVE;
    const url = 'postgres://signer@db.example.org/slashing';
    const tee = {
      platform: 'nitro',
      nitro: {
        egress: { endpoints: [endpoint(1, 'db.example.org', { port: 5432 })] },
        unsafe_parent_writes_tables: true,
      },
    };
    expect(inImage({ ...stateless, anti_slashing: { backend: 'postgres', url }, tee })).toEqual([]);
  });
});

describe('the region', () => {
  it.each([
    ['dynamodb.eu-central-1.amazonaws.com', ['eu-central-1']],
    ['dynamodb.us-gov-west-1.amazonaws.com', ['us-gov-west-1']],
    ['dynamodb.cn-north-1.amazonaws.com.cn', ['cn-north-1']],
    ['dynamodb.eu-central-1.amazonaws.com.example.org', []],
    ['dynamodb.amazonaws.com', []],
    ['mydynamodb.eu-central-1.amazonaws.com', []],
  ])('of %s is %j', (hostname, regions) => {
    expect(dynamodbRegions([{ hostname, loopback: '127.0.1.1', vsock_port: 8001, port: 443 }])).toEqual(regions);
  });
});

describe('tables and their credentials', () => {
  const arn = (table: string, region = 'eu-central-1') => `arn:aws:dynamodb:${region}:111122223333:table/${table}`;
  const ciphertext = Buffer.from('a KMS ciphertext').toString('base64');
  const credentials = (value: object): object =>
    changed('tee.nitro', { egress: ENCLAVE.tee.nitro.egress, table_credentials: value });

  it('are named by name or by ARN, of the region that is declared', () => {
    for (const path of ['signer_state.table', 'key_sources.dynamodb.table', 'anti_slashing.table']) {
      expect(inImage(changed(path, arn('one')))).toEqual([]);
      expect(inImage(changed(path, arn('one', 'eu-west-1')))).toEqual([
        `${path} is an ARN of eu-west-1, and tee.nitro.egress declares the DynamoDB of eu-central-1`,
      ]);
      for (const wrong of [
        'a b',
        'ab',
        'x'.repeat(256),
        arn('a b'),
        arn('one').toUpperCase(),
        `${arn('one')}/index/i`,
        arn('one').replace('111122223333', '1111'),
        arn('one').replace(':dynamodb:', ':s3:'),
        ` ${arn('one')}`,
      ]) {
        expect(inImage(changed(path, wrong))).toEqual([
          expect.stringContaining(`${path} must be the name of a DynamoDB`),
        ]);
      }
    }
  });

  it('may be sealed under a custody key of the ceremony, a replica or a retired one too', () => {
    for (const key of [keyArn(1), multiRegionArn(2, 'eu-west-1')]) {
      expect(inImage(credentials({ ciphertext, key_arn: key }))).toEqual([]);
    }
    expect(inImage(credentials({ ciphertext, key_arn: keyArn(7) }))).toEqual([
      'tee.nitro.table_credentials.key_arn is not a custody key of the ceremony, and no other key is ever called',
    ]);
  });

  it('are asked for, unless the configuration says what that means, and never both', () => {
    const { egress } = ENCLAVE.tee.nitro;
    expect(inImage(changed('tee.nitro', { egress }))).toEqual([
      'tee.nitro.table_credentials is missing: the parent would write the tables that this enclave believes',
    ]);
    const both = { table_credentials: { ciphertext, key_arn: keyArn(1) }, unsafe_parent_writes_tables: true };
    expect(inImage(changed('tee.nitro', { egress, ...both }))).toEqual([
      'tee.nitro.unsafe_parent_writes_tables is true, and there are sealed credentials',
    ]);
    const outside = { tee: { nitro: { unsafe_parent_writes_tables: true } } };
    expect(sentencesOf({ yaml: yamlOf(outside) })).toEqual([
      'tee.nitro.unsafe_parent_writes_tables is true, and this is no enclave',
    ]);
  });

  describe('of a slashing database', () => {
    const named = { 'db.example.org': ['a certificate'] };
    const database = (url: string, nitro: object): object => ({
      ...changed('anti_slashing', { backend: 'postgres', url }),
      tee: {
        platform: 'nitro',
        nitro: {
          egress: { endpoints: [DYNAMODB, KMS, KMS_WEST, endpoint(4, 'db.example.org', { port: 5432 })] },
          ...nitro,
        },
      },
    });
    const SEALED = { table_credentials: { ciphertext, key_arn: keyArn(1) } };
    const UNSAFE = { unsafe_parent_writes_tables: true };
    const OPEN = 'postgres://enclave:TEST-of-the-parent@db.example.org/slashing';
    const BARE = 'postgres://enclave@db.example.org/slashing';
    const HAS_PASSWORD =
      'anti_slashing.url has a password, which the parent reads in this configuration, and the slashing records would be its own';
    const NO_AUTHORITY = 'anti_slashing.url leads to db.example.org, for which this image names no authority';

    it.each([
      ['sealed, and the authority in the image', BARE, SEALED, named, []],
      ['sealed, and no authority in the image', BARE, SEALED, {}, [NO_AUTHORITY]],
      ['sealed, and the authority of another host', BARE, SEALED, { 'kms.example.org': ['one'] }, [NO_AUTHORITY]],
      ['sealed, and one in the URL', OPEN, SEALED, named, [HAS_PASSWORD]],
      ['in the URL, by the word', OPEN, UNSAFE, {}, []],
      [
        'in the URL, without the word',
        OPEN,
        {},
        named,
        ['tee.nitro.table_credentials is missing: the parent would write the tables that this enclave believes'],
      ],
      [
        'nowhere, without the word',
        BARE,
        {},
        named,
        ['tee.nitro.table_credentials is missing: the parent would write the tables that this enclave believes'],
      ],
    ])('%s', (_, url, nitro, authorities, said) => {
      expect(inImage(database(url, nitro), authorities)).toEqual(said);
    });

    it('is asked for where there is no table at all', () => {
      const { signer_state: _, key_sources: __, ...rest } = database(BARE, {}) as Record<string, unknown>;
      expect(inImage(rest, named)).toEqual([
        'tee.nitro.table_credentials is missing: the parent would write the tables that this enclave believes',
      ]);
    });

    it('and its authority are not asked for on a host, which knows no image; its password is', () => {
      expect(onHost(database(BARE, SEALED))).toEqual([]);
      expect(onHost(database(OPEN, SEALED))).toEqual([HAS_PASSWORD]);
    });
  });

  it('are refused half, in another form, outside an enclave and without a table', () => {
    expect(inImage(credentials({ ciphertext }))).toEqual(['tee.nitro.table_credentials is set without key_arn']);
    expect(inImage(credentials({ key_arn: keyArn(1) }))).toEqual([
      'tee.nitro.table_credentials is set without ciphertext',
    ]);
    for (const wrong of ['', 'not base64!', `${ciphertext}\n`, ciphertext.replaceAll('=', ''), 'A'.repeat(8196)]) {
      const sentences = inImage(credentials({ ciphertext: wrong, key_arn: keyArn(1) }));
      expect(sentences).toEqual([expect.stringContaining('tee.nitro.table_credentials.ciphertext must be base64')]);
    }
    expect(inImage(credentials({ ciphertext, key_arn: 'alias/tables' }))).toEqual([
      expect.stringContaining('tee.nitro.table_credentials.key_arn must be a KMS key ARN'),
    ]);
    const outside = { tee: { nitro: { table_credentials: { ciphertext, key_arn: keyArn(1) } } } };
    expect(sentencesOf({ yaml: yamlOf(outside) })).toEqual([
      'tee.nitro.table_credentials is set, and this is no enclave: nothing attested could open it',
      'tee.nitro.table_credentials is set, and no table is named',
    ]);
  });
});
