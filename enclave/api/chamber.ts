// What the chamber routes take and answer (specification/custody.md#sealing): sealing, and the status of one replica.
// The signer writes with these schemas and the operator's CLI reads with them. Nothing secret is ever in a status.

import { z } from 'zod';
import { MAX_SEAL_REASON_CHARACTERS } from './limits.ts';

/** RFC 3339, UTC. */
const timestamp = z.iso.datetime();
const chamberStateSchema = z.enum(['Unsealed', 'Sealed']);

/** Body of POST /api/v1/chamber/seal; an empty body is `{}`. */
export const sealRequestSchema = z.strictObject({
  reason: z
    .string()
    .max(MAX_SEAL_REASON_CHARACTERS, `a reason has at most ${MAX_SEAL_REASON_CHARACTERS} characters`)
    .exactOptional(),
});

/** What the latch holds; of several calls, the first one's. */
export const sealAnswerSchema = z.object({
  state: z.literal('Sealed'),
  /** Null when somebody made the row by hand without it. */
  sealed_at: timestamp.nullable(),
  reason: z.string().nullable(),
});

/** One custody key as this replica can use it now. `reachable`, or why it cannot be used. */
const custodyKeySchema = z.object({
  arns: z.array(z.string()),
  status: z.string(),
});

export const chamberStatusSchema = z.object({
  state: chamberStateSchema,
  /** Null without signer_state. */
  custody: z
    .object({
      /** That of this replica's ceremony. */
      generation: z.int(),
      threshold: z.int(),
      keys: z.array(custodyKeySchema),
      keys_reachable: z.int(),
    })
    .nullable(),
  /** The break-glass latch as last seen; null when there is none. */
  latch: z
    .object({ sealed_at: timestamp.nullable(), reason: z.string().nullable(), accessor: z.string().nullable() })
    .nullable(),
  /** Null without signer_state or with a refresh interval of 0. */
  state_watcher: z.object({ stale: z.boolean(), age_seconds: z.number() }).nullable(),
  keys: z.array(
    z.object({
      source: z.enum(['filesystem', 'dynamodb', 'memory']),
      status: z.enum(['active', 'inactive']),
      count: z.int(),
    }),
  ),
  /** What server.mlock asks for (off in an enclave), and how many loaded keys lie in memory that is not locked. */
  memory: z.object({ mlock: z.enum(['off', 'best_effort', 'required']), unlocked_keys: z.int() }),
  slashing: z.object({
    backend: z.string(),
    /** unopened: the replica started sealed, and left its store alone. */
    status: z.enum(['up', 'down', 'unopened']),
    since: timestamp,
    /**
     * The store that this replica signs over, or the one that it waits for; null where nothing binds a fleet to one.
     */
    store: z.string().nullable(),
    /** Whether this replica has the right to sign over it now; null where nothing binds a fleet. */
    bound: z.boolean().nullable(),
    /** What this start refuses whatever the store says (anti_slashing.jump_at_boot); null when it did not jump. */
    jumped_at_boot: z.object({ slot: z.int(), source_epoch: z.int(), target_epoch: z.int() }).nullable(),
    /** What whoever holds the parents of two enclaves could do; null outside an enclave. */
    warning: z.string().nullable(),
  }),
  network: z.string(),
  version: z.string(),
  uptime_seconds: z.number(),
  tee: z.object({
    platform: z.enum(['off', 'nitro']),
    /** PCR number → hex. Empty outside an enclave. */
    measurements: z.record(z.string(), z.string()),
    /** SHA-384, hex; null outside an enclave, where nothing measures it. */
    configuration_digest: z.string().nullable(),
  }),
});

export type SealRequest = z.output<typeof sealRequestSchema>;
export type SealAnswer = z.output<typeof sealAnswerSchema>;
export type ChamberStatus = z.output<typeof chamberStatusSchema>;
export type ChamberState = z.output<typeof chamberStateSchema>;
