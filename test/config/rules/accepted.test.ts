// What the rules let through: configurations beside each refusal that are good, and one violation for one mistake.

import { describe, expect, it } from 'vitest';
import { type Given, keyArn, multiRegionArn, sentencesOf } from '../loading.ts';
import { CEREMONY, ceremony, endpoints, KEYS_TABLE, KMS_ENDPOINT, lines, STATE } from './sections.ts';

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
    ['receipts are kept in a folder', { yaml: 'receipts: {storage: folder, path: /srv/receipts}' }],
    ['receipts are kept in the state table', { yaml: lines('receipts: {storage: state_table}', STATE, CEREMONY) }],
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

describe('one mistake makes one violation', () => {
  it('a rule does not judge options that are refused already', () => {
    expect(sentencesOf({ yaml: 'server: {listen_port: nine}', argv: ['--metrics-listen-port=9000'] })).toHaveLength(1);
    expect(sentencesOf({ yaml: 'signer_state: {backend: dynamodb, tabel: state}' })).toEqual([
      'signer_state.tabel is not an option',
      'ceremony is missing: the master key of signer_state is made and unsealed under a ceremony',
    ]);
  });

  it('and hides no other: what does not depend on the refused value is said at once', () => {
    const yaml = [
      'signer_state: {backend: dynamodb, table: [no, name]}',
      'static_auth: {}',
      'key_sources: {dynamodb: {table: "?"}}',
      'receipts: {storage: folder}',
      'tls: {mode: file, listen_port: 9000, min_version: 7}',
    ].join('\n');
    expect(sentencesOf({ yaml })).toEqual([
      expect.stringMatching(/^tls\.min_version is not an option/),
      expect.stringMatching(/^key_sources\.dynamodb\.table must be the name of a DynamoDB table/),
      expect.stringMatching(/^signer_state\.table must be the name of a DynamoDB table/),
      expect.stringMatching(/^static_auth is set together with signer_state/),
      'tls.file.cert_path is missing, and tls.mode is file',
      'tls.file.key_path is missing, and tls.mode is file',
      expect.stringMatching(/^ceremony is missing/),
      'receipts.storage is folder, and no folder is named',
      'tls.listen_port is the same as server.listen_port',
    ]);
  });
});
