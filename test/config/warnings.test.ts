// What starts and is said: configurations that are valid and hardly meant.

import { describe, expect, it } from 'vitest';
import { SERVICE_WARNINGS } from '../../service/config/rules.ts';
import { USED_POOL_CONNECTIONS } from '../../signer/slashing/postgres/connection/address.ts';
import { type Given, keyArn, load } from './loading.ts';

const RECIPIENT = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p';
const CEREMONY = `ceremony: {generation: 1, kms_threshold: 1, kms_keys: [{arns: ["${keyArn(1)}"]}], root_token_recipients: [${RECIPIENT}]}`;
const TOKEN = 'static_auth: {policies: [{name: a, rules: [{effect: allow}]}], anonymous: {policies: [a]}}';
const PAYS = 'allow, fee_recipients: ["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"]';
const tableArn = (name: string) => `arn:aws:dynamodb:eu-central-1:111122223333:table/${name}`;
const QUIET = `${TOKEN}
server: {listen_address: 127.0.0.1}
metrics: {listen_address: "::1"}
anti_slashing: {path: /var/lib/strongroom/slashing_protection.sqlite}`;

function warnedOf(given: Given): string[] {
  const loaded = load(given);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.violations));
  return loaded.warnings.map(({ at }) => at);
}

const SEALED = `table_credentials: {key_arn: "${keyArn(1)}", ciphertext: "${Buffer.alloc(200).toString('base64')}"}`;

describe('a configuration', () => {
  it('that says all of it is quiet', () => {
    expect(warnedOf({ yaml: QUIET })).toEqual([]);
  });

  it.each([
    ['only allows payments to somebody', `${PAYS}}`],
    ['allows the rest by another rule', `${PAYS}}, {effect: allow, operations: [ATTESTATION, BLOCK_V2]}`],
    [
      'has operations beside the scope sign, or beside none',
      'allow, scopes: [sign], operations: [BLOCK_V2]}, {effect: deny, operations: [VOLUNTARY_EXIT]}',
    ],
    ['denies payments to somebody', `allow}, {effect: deny${PAYS.slice('allow'.length)}}`],
    [
      'allows other keys to pay anybody',
      `${PAYS}, keys: ["${'11'.repeat(48)}"]}, {effect: allow, keys: ["${'22'.repeat(48)}"]}`,
    ],
  ])('that %s is quiet', (_what, rules) => {
    expect(warnedOf({ yaml: QUIET.replace('allow}', rules) })).toEqual([]);
  });

  it('that is not there listens for everybody, lets nobody in and keeps its records in the working directory', () => {
    expect(warnedOf({})).toEqual([
      'static_auth',
      'server.listen_address',
      'metrics.listen_address',
      'anti_slashing.path',
    ]);
  });

  it.each<[string, string, Given]>([
    [
      'fee recipients are of a message that has none',
      'static_auth',
      { yaml: QUIET.replace('allow}', `${PAYS}, operations: [BLOCK_V2]}`) },
    ],
    [
      'operations stand beside a scope whose requests have none',
      'static_auth',
      { yaml: QUIET.replace('allow}', 'allow, scopes: [sign, public_keys], operations: [BLOCK_V2]}') },
    ],
    [
      'fee recipients are of a scope that signs nothing',
      'static_auth',
      { yaml: QUIET.replace('allow}', `${PAYS}, scopes: [list_keys]}`) },
    ],
    [
      'another rule allows payments to everybody',
      'static_auth',
      { yaml: QUIET.replace('allow}', `${PAYS}}, {effect: allow, scopes: [sign]}`) },
    ],
    ['nobody can be authenticated', 'static_auth', { yaml: QUIET.replace(/.*\n/, '') }],
    [
      'plain HTTP is for the network, TLS or not',
      'server.listen_address',
      { argv: ['--server-listen-address=10.0.0.1'] },
    ],
    ['metrics are for the network', 'metrics.listen_address', { argv: ['--metrics-listen-address=::'] }],
    ['the slashing path depends on the folder', 'anti_slashing.path', { argv: ['--anti-slashing-sqlite-path=db'] }],
    [
      'the priority pool is for nothing',
      'signing.priority.operations',
      { env: { SVC_SIGNING__PRIORITY__ENABLED: 'true' } },
    ],
    ['no proxy is trusted', 'server.trust_proxy_headers', { env: { SVC_SERVER__TRUST_PROXY_HEADERS: 'true' } }],
    [
      'proxies are listed for nothing',
      'server.trusted_proxy_cidrs',
      { env: { SVC_SERVER__TRUSTED_PROXY_CIDRS: '10.0.0.0/8' } },
    ],
    [
      'backups have no keys',
      'chamber.keys.backup.recipients',
      { argv: [`--chamber-keys-backup-recipients=${RECIPIENT}`] },
    ],
    ['a ceremony protects nothing', 'ceremony', { yaml: `${QUIET}\n${CEREMONY}` }],
    [
      'most of the pool is never used',
      'anti_slashing.pool_size',
      {
        yaml: QUIET.replace(/anti_slashing.*/, ''),
        argv: [
          '--anti-slashing-backend=postgres',
          '--anti-slashing-postgres-url=postgres://a@b/c',
          `--anti-slashing-postgres-pool-size=${USED_POOL_CONNECTIONS + 1}`,
        ],
      },
    ],
  ])('is warned of when %s', (_, option, given) => {
    expect(warnedOf({ yaml: QUIET, ...given })).toEqual([option]);
  });

  it('is warned of a file of its own for keys that several signers load', () => {
    const fleet = `server: {listen_address: 127.0.0.1}
metrics: {listen_address: 127.0.0.1}
signer_state: {backend: dynamodb, table: state}
key_sources: {dynamodb: {table: keys}}
${CEREMONY}`;
    const sqlite = 'anti_slashing: {path: /var/lib/strongroom/slashing_protection.sqlite}';
    expect(warnedOf({ yaml: `${fleet}\n${sqlite}` })).toEqual(['anti_slashing.backend']);
    expect(warnedOf({ yaml: `${fleet}\nanti_slashing: {backend: dynamodb, table: slashing}` })).toEqual([]);
  });

  it('is not warned of its pool when nobody set it, or it is small', () => {
    const yaml = QUIET.replace(/anti_slashing.*/, 'anti_slashing: {backend: postgres, url: "postgres://a@b/c"}');
    expect(warnedOf({ yaml })).toEqual([]);
    expect(warnedOf({ yaml, argv: [`--anti-slashing-postgres-pool-size=${USED_POOL_CONNECTIONS}`] })).toEqual([]);
  });

  it('for an enclave is warned of what its parent reads: tokens, anonymous rules, the password of a database', () => {
    const db = '{hostname: db.example.org, loopback: 127.0.1.2, vsock_port: 8002, port: 5432}';
    const withUser = (user: string, access = '') => `${access}
tee: {platform: nitro, nitro: {egress: {endpoints: [${db}]}, unsafe_parent_writes_tables: true}}
tls: {mode: ratls}
anti_slashing: {backend: postgres, url: "postgres://${user}@db.example.org/slashing"}`;
    const warned = (yaml: string) => warnedOf({ yaml, argv: ['--check'] }).slice(1);
    expect(warned(withUser('signer', TOKEN))).toEqual(['static_auth']);
    expect(warned(withUser('signer:TEST', TOKEN))).toEqual(['static_auth', 'anti_slashing.url']);
    expect(
      warned(
        withUser(
          'signer',
          TOKEN.replace('anonymous: {policies: [a]}', 'tokens: [{secret: TEST-secret-of-a-token, policies: [a]}]'),
        ),
      ),
    ).toEqual(['static_auth']);
  });

  it('for an enclave listens on vsock, where an address means nothing', () => {
    const yaml = `signer_state: {backend: dynamodb, table: "${tableArn('state')}"}
tee: {platform: nitro, nitro: {egress: {endpoints: [{hostname: dynamodb.eu-central-1.amazonaws.com, loopback: 127.0.1.1, vsock_port: 8001}]}, ${SEALED}}}
tls: {mode: ratls}
anti_slashing: {backend: dynamodb, table: ${tableArn('records')}}`;
    expect(warnedOf({ yaml, argv: ['--check'] })).toEqual([]);
  });

  it('for an enclave is warned of each table that it names without its account', () => {
    const loaded = load({
      yaml: `${TOKEN}
tee: {platform: nitro, nitro: {egress: {endpoints: [{hostname: dynamodb.eu-central-1.amazonaws.com, loopback: 127.0.1.1, vsock_port: 8001}]}, ${SEALED}}}
tls: {mode: ratls}
anti_slashing: {backend: dynamodb, table: records}`,
      argv: ['--check'],
    });
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.violations));
    const { config } = loaded;
    const warned = (state: string, keys: string, slashing: string, backend: 'dynamodb' | 'sqlite' = 'dynamodb') =>
      SERVICE_WARNINGS.filter(({ applies }) =>
        applies(
          {
            ...config,
            signer_state: { ...config.signer_state, table: state },
            key_sources: { ...config.key_sources, dynamodb: { ...config.key_sources.dynamodb, table: keys } },
            anti_slashing: { ...config.anti_slashing, table: slashing, backend },
          },
          { isSet: () => false } as never,
        ),
      )
        .map(({ at }) => at)
        .filter((at) => at.endsWith('.table'));
    const [state, keys, slashing] = ['state', 'keys', 'slashing'].map(tableArn) as [string, string, string];
    expect(warned('state', 'keys', 'slashing')).toEqual([
      'signer_state.table',
      'key_sources.dynamodb.table',
      'anti_slashing.table',
    ]);
    expect(warned(state, keys, slashing)).toEqual([]);
    expect(warned(state, 'keys', slashing)).toEqual(['key_sources.dynamodb.table']);
    expect(warned(state, keys, 'slashing', 'sqlite')).toEqual([]);
  });
});
