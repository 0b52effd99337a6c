// The egress endpoints of an enclave (specification/enclave.md#egress).

import { isIPv4 } from 'node:net';
import { z } from 'zod';

export const MAX_EGRESS_ENDPOINTS = 64;

const RESERVED_VSOCK_PORTS: ReadonlyMap<number, string> = new Map([
  [7000, 'is reserved: the enclave sends its logs there'],
  [7001, 'is reserved: the enclave fetches its configuration there'],
  [7002, 'is reserved: the enclave fetches AWS credentials there'],
  [9000, "is reserved: it belongs to nitro-cli's heartbeat on the parent"],
]);

/** RFC 1123: dot-separated labels of letters, digits and inner hyphens. */
export const HOSTNAME = /^(?=.{1,253}$)(?!-)[A-Za-z0-9-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*$/;

/** URL Standard, "ends in a number": `0x7f.1` is 127.0.0.1 to many a resolver. */
const ENDS_IN_NUMBER = /(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$/i;

const LOOPBACK_REFUSED = new Set(['127.0.0.0', '127.0.0.1', '127.255.255.255']);
const MUST_BE_LOOPBACK = 'must be an IPv4 address in 127.0.0.0/8 other than 127.0.0.0, 127.0.0.1 and 127.255.255.255';
const MUST_BE_PORT = 'must be an integer from 1 to 65535';

const USED_TWICE = {
  hostname: 'is the host of an earlier endpoint: declare each host once',
  loopback: 'is used by an earlier endpoint',
  vsock_port: 'is used by an earlier endpoint',
} as const;

const portSchema = z.int(MUST_BE_PORT).min(1, MUST_BE_PORT).max(65_535, MUST_BE_PORT);

export const hostnameSchema = z
  .string('must be a host name')
  .regex(HOSTNAME, 'must be a host name')
  .refine((name) => !isIPv4(name), 'is an IP address, which no alias can stand for: declare the host by name')
  .refine((name) => isIPv4(name) || !ENDS_IN_NUMBER.test(name), 'ends in a number: resolvers take it for an address')
  .transform((name) => name.toLowerCase());

const egressEndpointSchema = z.strictObject({
  hostname: hostnameSchema,
  loopback: z
    .string(MUST_BE_LOOPBACK)
    .refine((text) => isIPv4(text) && text.startsWith('127.') && !LOOPBACK_REFUSED.has(text), MUST_BE_LOOPBACK),
  vsock_port: portSchema.superRefine((port, context) => {
    const reason = RESERVED_VSOCK_PORTS.get(port);
    if (reason !== undefined) context.addIssue({ code: 'custom', message: reason });
  }),
  port: portSchema.default(443),
});

export const egressEndpointsSchema = z
  .array(egressEndpointSchema, 'must be a list of endpoints')
  .max(MAX_EGRESS_ENDPOINTS, `must have at most ${MAX_EGRESS_ENDPOINTS} endpoints`)
  .superRefine((endpoints, context) => {
    for (const member of ['hostname', 'loopback', 'vsock_port'] as const) {
      const seen = new Set<string | number>();
      endpoints.forEach((endpoint, index) => {
        if (seen.has(endpoint[member])) {
          context.addIssue({ code: 'custom', path: [index, member], message: USED_TWICE[member] });
        }
        seen.add(endpoint[member]);
      });
    }
  });

export type EgressEndpoint = z.output<typeof egressEndpointSchema>;
