// The rules across options (specification/operating.md#startup-failures): each mistake refuses the start, with a
// sentence that names the option.

import { describe, expect, it } from 'vitest';
import { type Given, keyArn, load, sentencesOf } from '../loading.ts';
import { CEREMONY, COMPILED, ceremony, endpoints, KEYS_TABLE, KMS_ENDPOINT, lines, STATE, STATIC } from './sections.ts';

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
    ['receipts have no storage', { yaml: 'receipts: {interval_seconds: 10}' }, 'receipts is set without storage'],
    [
      'receipts are kept in a folder without a path',
      { yaml: 'receipts: {storage: folder}' },
      'receipts.storage is folder, and no folder is named',
    ],
    [
      'receipts are kept in the state table, and a folder is named',
      { yaml: lines('receipts: {storage: state_table, path: /srv}', STATE, CEREMONY) },
      'receipts.path is set, and the log is kept in the state table',
    ],
    [
      'receipts are kept in a state table that is not there',
      { yaml: 'receipts: {storage: state_table}' },
      'receipts.storage is state_table, and there is no signer_state',
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
