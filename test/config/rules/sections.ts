// Sections of configurations, as text, for the tests of the rules: each is good, or is made wrong by its caller.
// The keys, tables and recipients in them are TEST ones.

import { parseCeremony } from '../../../ceremony/definition.ts';
import { keyArn } from '../loading.ts';

export const RECIPIENT = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p';
export const STATE = 'signer_state: {backend: dynamodb, table: state}';
export const KEYS_TABLE = 'key_sources: {dynamodb: {table: keys}}';
export const STATIC = 'static_auth: {policies: [{name: all, rules: [{effect: allow}]}]}';

export function ceremony(keys: readonly (readonly string[])[], threshold = 1, members: object = {}): string {
  const kms_keys = keys.map((arns) => ({ arns }));
  const block = { generation: 1, kms_threshold: threshold, kms_keys, root_token_recipients: [RECIPIENT], ...members };
  return `ceremony: ${JSON.stringify(block)}`;
}

export const CEREMONY = ceremony([[keyArn(1)], [keyArn(2)]]);
export const COMPILED = parseCeremony({
  generation: 1,
  kms_threshold: 1,
  kms_keys: [{ arns: [keyArn(1)] }],
  root_token_recipients: [RECIPIENT],
});

export function lines(...parts: readonly string[]): string {
  return parts.join('\n');
}

export function endpoints(...list: readonly object[]): string {
  return `tee: {nitro: {egress: {endpoints: ${JSON.stringify(list)}}}}`;
}

export const KMS_ENDPOINT = { hostname: 'kms.example.org', loopback: '127.0.1.1', vsock_port: 8001 };
