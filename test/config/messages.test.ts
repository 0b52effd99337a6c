// What a report advises: it names what was probably meant, and offers nothing that would not help.

import { describe, expect, it } from 'vitest';
import { OPERATIONS, SCOPES } from '../../signer/api/operations.ts';
import { violationsOf } from './loading.ts';

const rule = (members: string) => `static_auth: {policies: [{name: a, rules: [{effect: allow, ${members}}]}]}`;

describe('the advice for', () => {
  it('an unknown scope is the one that was meant, and all there are', () => {
    const [violation] = violationsOf({ yaml: rule('scopes: [sing]') });
    expect(violation?.problem).toContain('unknown scope (not shown), did you mean sign?');
    for (const scope of SCOPES) expect(violation?.problem).toContain(scope);
  });

  it('an unknown operation is the one that was meant, and all there are', () => {
    const [violation] = violationsOf({ yaml: rule('operations: [attestation]') });
    expect(violation?.problem).toContain('did you mean ATTESTATION?');
    for (const operation of OPERATIONS) expect(violation?.problem).toContain(operation);
  });

  it.each([
    ['a member that is missing', 'ceremony: {generation: 1}', 'write it: it has no default'],
    [
      'a member of an object',
      'tee: {nitro: {egress: {endpoints: [{hostname: h, loopback: x, vsock_port: 8001}]}}}',
      'correct it',
    ],
    ['a whole option with a default', 'network: ropstn', 'write one of them'],
    ['a choice in quotes', String.raw`network: "\"mainnet\""`, 'write mainnet without quotes or blanks around it'],
    [
      'a choice with a carriage return',
      String.raw`network: "hoodi\r"`,
      'write hoodi without quotes or blanks around it',
    ],
    ['a choice that is nearly one', 'network: sepollia', 'did you mean sepolia?'],
    ['a text where a list belongs', 'key_sources: {filesystem: {paths: /etc/keys}}', 'write a list: […]'],
    [
      'a number where text belongs',
      'key_sources: {filesystem: {paths: [7]}}',
      'quote it: as it stands it is a number or a boolean, not text',
    ],
    ['a number in quotes', 'server: {listen_port: "9000"}', 'correct it; in the file a number has no quotes'],
    [
      'a boolean of YAML 1.1',
      'tls: {mode: "disabled"}\nsigning: {priority: {enabled: yes}}',
      'write true or false, without quotes',
    ],
    ['a number out of range', 'server: {listen_port: 70000}', 'correct it, or leave it at the default'],
    [
      'an option without a default',
      'custom_network: {genesis_fork_version: "0x1"}',
      'correct it, or leave the option out',
    ],
  ])('%s', (_, yaml, remedy) => {
    const remedies = violationsOf({ yaml }).map((violation) => violation.remedy);
    expect(remedies).toContain(remedy);
  });

  it('an unknown module of the log is the list of modules', () => {
    const [violation] = violationsOf({ yaml: 'logging: {level: "info,htpp=debug"}' });
    expect(violation?.problem).toContain(
      'modules: audit, server, http, auth, keys, signing, slashing, slashing_trace, tls, chamber, tee',
    );
  });

  it('a key that is indented too far is at its own line', () => {
    const [violation] = violationsOf({ yaml: 'network: mainnet\n  server: {listen_port: 1}' });
    expect(violation?.problem).toContain('indented');
    expect(violation?.origin).toBe('config.yaml line 2');
  });
});
