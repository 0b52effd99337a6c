import { describe, expect, it } from 'vitest';
import { parseCeremony } from '../../../ceremony/definition.ts';
import { OPTION_PATHS, SECTION_PATHS } from '../../../enclave/config/options.ts';
import { RULES } from '../../../enclave/config/rules/rules.ts';
import { type Given, keyArn, load, multiRegionArn, sentencesOf } from '../loading.ts';

const RECIPIENT = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p';
const STATE = 'signer_state: {backend: dynamodb, table: state}';
const KEYS_TABLE = 'key_sources: {dynamodb: {table: keys}}';
const STATIC = 'static_auth: {policies: [{name: all, rules: [{effect: allow}]}]}';

function ceremony(keys: readonly (readonly string[])[], threshold = 1, members: object = {}): string {
  const kms_keys = keys.map((arns) => ({ arns }));
  const block = { generation: 1, kms_threshold: threshold, kms_keys, root_token_recipients: [RECIPIENT], ...members };
  return `ceremony: ${JSON.stringify(block)}`;
}

const CEREMONY = ceremony([[keyArn(1)], [keyArn(2)]]);
const COMPILED = parseCeremony({
  generation: 1,
  kms_threshold: 1,
  kms_keys: [{ arns: [keyArn(1)] }],
  root_token_recipients: [RECIPIENT],
});

function lines(...parts: readonly string[]): string {
  return parts.join('\n');
}

function endpoints(...list: readonly object[]): string {
  return `tee: {nitro: {egress: {endpoints: ${JSON.stringify(list)}}}}`;
}

const KMS_ENDPOINT = { hostname: 'kms.example.org', loopback: '127.0.1.1', vsock_port: 8001 };

describe('the start is refused when', () => {
  it.each<[string, Given, string]>([
    [
      'a directory of keystores has no passwords',
      { yaml: 'key_sources: {filesystem: {keystores: {path: /keystores}}}' },
      'key_sources.filesystem.keystores',
    ],
    [
      'a directory of keystores has passwords of two kinds',
      {
        yaml: 'key_sources: {filesystem: {keystores: {path: /keystores, passwords_path: /secrets, password_file: /secret}}}',
      },
      'key_sources.filesystem.keystores',
    ],
    [
      'passwords are for no directory of keystores',
      { yaml: 'key_sources: {filesystem: {keystores: {password_file: /secret}}}' },
      'key_sources.filesystem.keystores',
    ],
    [
      '1: static_auth is set together with signer_state',
      { yaml: lines(STATIC, STATE, CEREMONY) },
      'static_auth is set together with signer_state',
    ],
    [
      '1: even when signer_state is an empty section',
      { yaml: lines(STATIC, 'signer_state:', CEREMONY) },
      'static_auth is set together with signer_state',
    ],
    [
      '1: even when static_auth is empty',
      { yaml: lines('static_auth: {}', STATE, CEREMONY) },
      'static_auth is set together with signer_state',
    ],
    [
      '2: the backend is noop without the flag',
      { yaml: 'anti_slashing: {backend: noop}' },
      'anti_slashing.backend is noop',
    ],
    [
      '4: the key table is set without signer_state',
      { yaml: KEYS_TABLE },
      'key_sources.dynamodb is set without signer_state',
    ],
    [
      '4: even when all that is set of it is an interval',
      { env: { SVC_KEY_SOURCES__DYNAMODB__REFRESH_INTERVAL_SECONDS: '5' } },
      'key_sources.dynamodb is set without signer_state',
    ],
    [
      'the key table has no name',
      { yaml: lines('key_sources: {dynamodb: {}}', STATE, CEREMONY) },
      'key_sources.dynamodb names no table',
    ],
    [
      'signer_state has no table',
      { yaml: lines('signer_state: {backend: dynamodb}', CEREMONY) },
      'signer_state is set without table',
    ],
    [
      'signer_state has no backend',
      { yaml: lines('signer_state: {table: state}', CEREMONY) },
      'signer_state is set without backend',
    ],
    ['5: RA-TLS is asked for without a TEE', { yaml: 'tls: {mode: ratls}' }, 'tls.mode is ratls, and there is no TEE'],
    [
      '6: an enclave build is given a ceremony',
      { yaml: CEREMONY, build: { compiledCeremony: COMPILED } },
      'ceremony is set, and an enclave takes',
    ],
    [
      '6: the platform is nitro and there is a ceremony block',
      { yaml: lines(CEREMONY, 'tee: {platform: nitro, nitro: {}}') },
      'ceremony is set, and an enclave takes',
    ],
    ['6: signer_state has no ceremony to be initialised with', { yaml: STATE }, 'ceremony is missing'],
    [
      '7: the threshold is greater than the number of custody keys',
      { yaml: ceremony([[keyArn(1)]], 2) },
      'ceremony.kms_threshold is greater than the number of kms_keys',
    ],
    [
      '10: a static token is bound to all of IPv4',
      { yaml: `static_auth: {tokens: [{secret: hunter2hunter2hunter2, policies: [a], bound_cidrs: [0.0.0.0/0]}]}` },
      'static_auth.tokens[0].bound_cidrs[0] is refused: 0.0.0.0/0 is unsafe',
    ],
    [
      '10: a static token is bound to a short IPv6 prefix',
      { yaml: `static_auth: {tokens: [{secret: hunter2hunter2hunter2, policies: [a], bound_cidrs: ["2000::/15"]}]}` },
      'static_auth.tokens[0].bound_cidrs[0] is refused: 2000::/15 is unsafe',
    ],
    [
      '10: a trusted proxy range is unsafe',
      { yaml: 'server: {trusted_proxy_cidrs: [10.0.0.0/8, "::/0"]}' },
      'server.trusted_proxy_cidrs[1] is refused: ::/0 is unsafe',
    ],
    [
      '10: generate is enabled without the key table',
      { argv: ['--chamber-keys-generate-enabled'] },
      'chamber.keys.generate.enabled is true, and there is no table',
    ],
    [
      '10: generate_keys is enabled without the key table',
      { argv: ['--chamber-keys-generate-keys-enabled'] },
      'chamber.keys.generate_keys.enabled is true, and there is no table',
    ],
    [
      '10: deposit_data is enabled without the key table',
      { argv: ['--chamber-keys-deposit-data-enabled'] },
      'chamber.keys.deposit_data.enabled is true, and there is no table',
    ],
    [
      '11: two egress endpoints share a loopback address',
      { yaml: endpoints(KMS_ENDPOINT, { ...KMS_ENDPOINT, vsock_port: 8002 }) },
      'tee.nitro.egress.endpoints[1].loopback is used by an earlier endpoint',
    ],
    [
      '11: two egress endpoints share a vsock port',
      { yaml: endpoints(KMS_ENDPOINT, { ...KMS_ENDPOINT, loopback: '127.0.1.2' }) },
      'tee.nitro.egress.endpoints[1].vsock_port is used by an earlier endpoint',
    ],
    [
      '11: an egress port is the TLS listener’s',
      { yaml: endpoints({ ...KMS_ENDPOINT, vsock_port: 9443 }) },
      'tee.nitro.egress.endpoints[0].vsock_port is the ingress port of a listener',
    ],
    [
      '11: an egress port is the metrics listener’s',
      { yaml: endpoints({ ...KMS_ENDPOINT, vsock_port: 3000 }) },
      'tee.nitro.egress.endpoints[0].vsock_port is the ingress port of a listener',
    ],
    [
      'the platform is nitro without a tee.nitro section',
      { yaml: 'tee: {platform: nitro}' },
      'tee.platform is nitro without a tee.nitro section',
    ],
    [
      'the network is custom without its members',
      { yaml: 'network: custom' },
      'custom_network.capella_fork_version is missing',
    ],
    [
      'custom_network is set for a known network',
      { yaml: 'custom_network: {genesis_fork_version: "0x00000001"}' },
      'custom_network is set, and the network is not custom',
    ],
    ['postgres has no URL', { yaml: 'anti_slashing: {backend: postgres}' }, 'anti_slashing.url is missing'],
    [
      'the dynamodb backend has no table',
      { yaml: 'anti_slashing: {backend: dynamodb}' },
      'anti_slashing.table is missing',
    ],
    [
      'a database URL is set and the backend forgotten',
      { env: { SVC_ANTI_SLASHING__URL: 'postgres://a@b/c' } },
      'anti_slashing.url is set, and no anti_slashing.backend is',
    ],
    [
      'a database URL is set for sqlite',
      { yaml: 'anti_slashing: {backend: sqlite, url: "postgres://a@b/c"}' },
      'anti_slashing.url is set, and the backend is sqlite, which does not use it',
    ],
    [
      'a slashing table is set for postgres',
      { yaml: 'anti_slashing: {backend: postgres, url: "postgres://a@b/c", table: records}' },
      'anti_slashing.table is set, and the backend is postgres, which does not use it',
    ],
    [
      'tls.mode file has no certificate',
      { yaml: 'tls: {mode: file, file: {key_path: key.pem}}' },
      'tls.file.cert_path is missing',
    ],
    [
      'tls.mode file has no key',
      { yaml: 'tls: {mode: file, file: {cert_path: cert.pem}}' },
      'tls.file.key_path is missing',
    ],
    [
      'attested certificates would expire before they rotate',
      { yaml: 'tls: {ratls: {cert_validity_seconds: 600, rotation_interval_seconds: 600}}' },
      'tls.ratls.rotation_interval_seconds is not less',
    ],
    [
      'the priority pool takes every permit',
      { yaml: 'signing: {max_concurrent_jobs: 50, priority: {enabled: true, operations: [BLOCK_V2]}}' },
      'signing.priority.max_concurrent_jobs leaves nothing',
    ],
    [
      'a token names a policy that is not there',
      { yaml: `static_auth: {tokens: [{secret: hunter2hunter2hunter2, policies: [ghost]}]}` },
      'static_auth.tokens[0].policies[0] names a policy',
    ],
    [
      'anonymous names a policy that is not there',
      { yaml: 'static_auth: {anonymous: {policies: [ghost]}}' },
      'static_auth.anonymous.policies[0] names a policy',
    ],
    [
      'two policies have one name',
      { yaml: 'static_auth: {policies: [{name: a, rules: [{effect: deny}]}, {name: a, rules: [{effect: allow}]}]}' },
      'static_auth.policies[1].name is the name of an earlier policy',
    ],
    [
      'metrics and signing share a port',
      { argv: ['--metrics-listen-port=9000'] },
      'metrics.listen_port is the same as server.listen_port',
    ],
    [
      'TLS and metrics share a port',
      { yaml: 'tls: {mode: file, listen_port: 3000, file: {cert_path: c, key_path: k}}' },
      'tls.listen_port is the same as metrics.listen_port',
    ],
    [
      'a listener on every address meets one on a single address',
      { argv: ['--metrics-listen-port=9000', '--metrics-listen-address=127.0.0.1'] },
      'metrics.listen_port is the same as server.listen_port',
    ],
    [
      'one address is spelled in two ways',
      {
        argv: ['--metrics-listen-port=9000', '--metrics-listen-address=::1', '--server-listen-address=0:0:0:0:0:0:0:1'],
      },
      'metrics.listen_port is the same as server.listen_port',
    ],
    [
      'a canary key is no public key',
      { yaml: `canary_keys: ["0x${'ab'.repeat(47)}"]` },
      'canary_keys[0] must be a validator public key',
    ],
  ])('%s', (_, given, sentence) => {
    expect(load(given).ok).toBe(false);
    expect(sentencesOf(given).join('\n')).toContain(sentence);
  });
});

describe('nothing is wrong when', () => {
  it.each<[string, Given]>([
    [
      'noop is permitted by its flag',
      { yaml: 'anti_slashing: {backend: noop}', argv: ['--allow-unsafe-noop-anti-slashing'] },
    ],
    ['the key table comes with signer_state and a ceremony', { yaml: lines(KEYS_TABLE, STATE, CEREMONY) }],
    [
      'generate has the key table',
      { yaml: lines(KEYS_TABLE, STATE, CEREMONY), argv: ['--chamber-keys-generate-enabled'] },
    ],
    [
      'import and lifecycle have no table: they serve keys in memory',
      { argv: ['--chamber-keys-import-enabled', '--chamber-keys-lifecycle-enabled'] },
    ],
    ['a threshold equals the number of custody keys', { yaml: ceremony([[keyArn(1)], [keyArn(2)]], 2) }],
    [
      'a custody key lists the replicas of one multi-region key',
      { yaml: ceremony([[multiRegionArn(1, 'eu-west-1'), multiRegionArn(1, 'us-east-1')]]) },
    ],
    [
      'ports are 0: each listener gets one of its own',
      { argv: ['--server-listen-port=0', '--metrics-listen-port=0', '--tls-listen-port=0'] },
    ],
    [
      'a port is shared by two different addresses',
      {
        argv: ['--metrics-listen-port=9000', '--metrics-listen-address=127.0.0.1', '--server-listen-address=127.0.0.2'],
      },
    ],
    ['the TLS port is another’s while TLS is off', { argv: ['--tls-listen-port=9000'] }],
    ['the priority pool has no operations yet', { yaml: 'signing: {priority: {enabled: true}}' }],
    ['the priority pool is off, whatever its size', { yaml: 'signing: {max_concurrent_jobs: 10}' }],
    [
      'egress endpoints differ',
      {
        yaml: endpoints(KMS_ENDPOINT, {
          hostname: 'db.example.org',
          loopback: '127.255.255.254',
          vsock_port: 65535,
        }),
      },
    ],
    ['the shortest safe ranges are trusted', { yaml: 'server: {trusted_proxy_cidrs: [10.0.0.0/8, "fd00::/16"]}' }],
    [
      'the network is custom with all its members',
      {
        yaml: `network: custom\ncustom_network: {genesis_validators_root: "0x${'AB'.repeat(32)}", genesis_fork_version: "0x00000001", capella_fork_version: "0x00000002"}`,
      },
    ],
  ])('%s', (_, given) => {
    expect(sentencesOf(given)).toEqual([]);
  });
});

describe('a ceremony is refused when', () => {
  it.each<[string, string, string]>([
    [
      'it names an alias',
      ceremony([['arn:aws:kms:eu-central-1:111122223333:alias/custody']]),
      'arns[0] must be a KMS key ARN',
    ],
    ['it names a bare key id', ceremony([['1234abcd-12ab-34cd-56ef-1234567890ab']]), 'arns[0] must be a KMS key ARN'],
    ['one key counts twice', ceremony([[keyArn(1)], [keyArn(1)]]), 'kms_keys must not name one key in two entries'],
    [
      'replicas of one key count twice',
      ceremony([[multiRegionArn(1, 'eu-west-1')], [multiRegionArn(1, 'us-east-1')]]),
      'kms_keys must not name one key in two entries',
    ],
    [
      'an entry mixes two keys',
      ceremony([[keyArn(1), keyArn(2)]]),
      'arns must be the replicas of one multi-region key',
    ],
    ['an entry has no ARN', ceremony([[]]), 'arns must name at least one key ARN'],
    ['there is no custody key', ceremony([]), 'kms_keys must name at least one custody key'],
    [
      'nobody could open the root token',
      ceremony([[keyArn(1)]], 1, { root_token_recipients: [] }),
      'root_token_recipients must name at least one recipient',
    ],
    [
      'a recipient is mistyped',
      ceremony([[keyArn(1)]], 1, { root_token_recipients: [RECIPIENT.replace('ql3z7', 'ql3z8')] }),
      'root_token_recipients[0] must be an age X25519 public key',
    ],
    [
      'it has a member too many',
      ceremony([[keyArn(1)]], 1, { threshold: 1 }),
      'ceremony.threshold is not a member of this object',
    ],
    ['a member is missing', 'ceremony: {generation: 1}', 'ceremony.kms_threshold is required'],
  ])('%s', (_, yaml, sentence) => {
    expect(sentencesOf({ yaml }).join('\n')).toContain(sentence);
  });
});

describe('an egress endpoint is refused when', () => {
  it.each([
    ['its port is reserved for logs', { vsock_port: 7000 }, 'vsock_port is reserved: the enclave sends its logs'],
    [
      'its port is reserved for configuration',
      { vsock_port: 7001 },
      'vsock_port is reserved: the enclave fetches its configuration',
    ],
    [
      'its port is reserved for credentials',
      { vsock_port: 7002 },
      'vsock_port is reserved: the enclave fetches AWS credentials',
    ],
    [
      'its port is the heartbeat’s',
      { vsock_port: 9000 },
      "vsock_port is reserved: it belongs to nitro-cli's heartbeat",
    ],
    ['its port is 0', { vsock_port: 0 }, 'vsock_port must be an integer from 1'],
    ['its port is no u16', { vsock_port: 65536 }, 'vsock_port must be an integer from 1'],
    ['it has no port', { vsock_port: undefined }, 'vsock_port must be an integer from 1'],
    ['its address is the network', { loopback: '127.0.0.0' }, 'loopback must be an IPv4 address in 127.0.0.0/8'],
    ['its address is localhost', { loopback: '127.0.0.1' }, 'loopback must be an IPv4 address in 127.0.0.0/8'],
    [
      'its address is the broadcast one',
      { loopback: '127.255.255.255' },
      'loopback must be an IPv4 address in 127.0.0.0/8',
    ],
    ['its address is no loopback', { loopback: '10.0.0.1' }, 'loopback must be an IPv4 address in 127.0.0.0/8'],
    [
      'its address is written with zeros in front',
      { loopback: '127.0.01.1' },
      'loopback must be an IPv4 address in 127.0.0.0/8',
    ],
    ['its host name is none', { hostname: 'a b' }, 'hostname must be a host name'],
    ['it has a member too many', { protocol: 'tcp' }, 'protocol is not a member of this object'],
  ])('%s', (_, members, sentence) => {
    const [first] = sentencesOf({ yaml: endpoints({ ...KMS_ENDPOINT, ...members }) });
    expect(first).toContain('tee.nitro.egress.endpoints[0]');
    expect(first).toContain(sentence);
  });
});

describe('one mistake makes one violation', () => {
  it('a rule does not judge options that are refused already', () => {
    expect(sentencesOf({ yaml: 'server: {listen_port: nine}', argv: ['--metrics-listen-port=9000'] })).toHaveLength(1);
    expect(sentencesOf({ yaml: 'signer_state: {backend: dynamodb, tabel: state}' })).toEqual([
      'signer_state.tabel is not an option',
    ]);
  });

  it('every rule reads options and sections that exist', () => {
    const known = new Set<string>([...OPTION_PATHS, ...SECTION_PATHS]);
    for (const at of RULES.flatMap(({ reads }) => reads)) {
      expect(known).toContain(at);
    }
  });
});
