// The `parent_proxy` block of the configuration, which the enclave's measurement covers
// (specification/enclave.md#shape).

import { isIP } from 'node:net';
import { isAbsolute } from 'node:path';
import { z } from 'zod';

const MAX_GRACE_SECONDS = 3600;
const MAX_PATH_CHARACTERS = 4096;
const MUST_BE_CID = 'must be the CID of an enclave, 4 to 4294967294 (or 1, loopback, in a test)';
const MUST_BE_ADDRESS = 'must be an IP address to listen on';
const MUST_BE_OUTPUT = 'must be stdout, or the absolute path of a file';

const cidSchema = z.int(MUST_BE_CID).refine((cid) => cid === 1 || (cid >= 4 && cid <= 4_294_967_294), MUST_BE_CID);
const addressSchema = z.string(MUST_BE_ADDRESS).refine((text) => isIP(text) !== 0, MUST_BE_ADDRESS);

export const parentProxySchema = z
  .strictObject({
    enclave_cid: cidSchema.default(16),
    /** TCP on the parent. Without a port, the enclave's own port of that listener. */
    ingress: z
      .strictObject({
        tls: listenSchema('0.0.0.0').prefault({}),
        probes: listenSchema('0.0.0.0').prefault({}),
        metrics: listenSchema('0.0.0.0').prefault({}),
      })
      .prefault({}),
    metrics: z
      .strictObject({
        listen_address: addressSchema.default('127.0.0.1'),
        listen_port: integer(0, 65_535).default(9101),
      })
      .prefault({}),
    limits: z
      .strictObject({
        max_connections_per_port: integer(1, 65_536).default(1024),
        idle_timeout_seconds: integer(1, 86_400).default(600),
        connect_timeout_ms: integer(10, 60_000).default(5000),
        connect_retry_ms: integer(0, 60_000).default(5000),
        graceful_shutdown_timeout_seconds: integer(0, MAX_GRACE_SECONDS).default(25),
      })
      .prefault({}),
    credentials: z
      .strictObject({
        /** The SDK's chain ends at the instance's role. none: nothing listens on 7002. */
        source: z.enum(['aws_default_chain', 'none'], 'must be aws_default_chain or none').default('aws_default_chain'),
      })
      .prefault({}),
    logs: z
      .strictObject({
        output: z
          .string(MUST_BE_OUTPUT)
          .max(MAX_PATH_CHARACTERS, MUST_BE_OUTPUT)
          .refine((text) => text === 'stdout' || (isAbsolute(text) && !text.includes('\0')), MUST_BE_OUTPUT)
          .default('stdout'),
        max_bytes_per_second: integer(65_536, 1_073_741_824).default(8_388_608),
      })
      .prefault({}),
  })
  .prefault({});

function listenSchema(address: string) {
  return z.strictObject({
    listen_address: addressSchema.default(address),
    listen_port: integer(0, 65_535).optional(),
  });
}

function integer(min: number, max: number) {
  const expects = `must be an integer from ${min} to ${max}`;
  return z.int(expects).min(min, expects).max(max, expects);
}
