// What the sections of a ceremony and of egress endpoints may not say, each with the sentence of its refusal.

import { describe, expect, it } from 'vitest';
import { keyArn, multiRegionArn, sentencesOf } from '../loading.ts';
import { ceremony, endpoints, KMS_ENDPOINT, RECIPIENT } from './sections.ts';

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
