// What the chamber routes answer (specification/custody.md#sealing): the latch, and the status of one replica. The
// signer writes as these types say, and the operator reads with the schemas. Nothing secret is ever in a status.

import { z } from 'zod';
import { keysLoadingSchema } from './health.ts';

const timestamp = z.iso.datetime();
const chamberStateSchema = z.enum(['Unsealed', 'Sealed']);

/** What the latch holds; of several calls, the first one's. */
export const sealAnswerSchema = z.object({
  state: z.literal('Sealed'),
  /** Null when an operator made the row by hand without it. */
  sealed_at: timestamp.nullable(),
  reason: z.string().nullable(),
});

const custodyKeySchema = z.object({
  arns: z.array(z.string()),
  status: z.string(),
});

/** Where the master key comes from, as this start verified it (specification/evidence.md#master-key). */
const masterKeyOriginSchema = z.object({
  /** This start made the key: nothing was in the table. */
  made_by_this_start: z.boolean(),
  record: z.string(),
  links: z.array(
    z.object({
      purpose: z.enum(['made', 'wrapped']),
      counter: z.int(),
      deployment: z.object({ network: z.string(), id: z.string() }),
      generation: z.int(),
      ceremony: z.string(),
      record: z.string(),
      origin: z.string().nullable(),
      previous: z.string().nullable(),
      made_at: timestamp,
      module_id: z.string(),
      measurements: z.record(z.string(), z.string()),
      document: z.string(),
    }),
  ),
});

/** What an enclave wrote next to the master key, as this start verified it (specification/evidence.md#rows). */
const rowEvidenceSchema = z.object({
  purpose: z.enum(['root_token', 'seal_removed']),
  deployment: z.object({ network: z.string(), id: z.string() }),
  generation: z.int(),
  ceremony: z.string(),
  origin: z.string(),
  content: z.string(),
  made_at: timestamp,
  module_id: z.string(),
  measurements: z.record(z.string(), z.string()),
  document: z.string(),
});

export const chamberStatusSchema = z.object({
  state: chamberStateSchema,
  /** Why nothing is signed now, whatever the message is: what a signing request would be told; null: it is signed. */
  hindrance: z.string().nullable(),
  /** Null without signer_state. */
  custody: z
    .object({
      generation: z.int(),
      threshold: z.int(),
      keys: z.array(custodyKeySchema),
      keys_reachable: z.int(),
      /** Null while sealed, and outside an enclave, where nothing proves it. */
      master_key: masterKeyOriginSchema.nullable(),
      /** The ciphertext of the root token. Null likewise, and when there was none. */
      root_token: rowEvidenceSchema.nullable(),
      /** The last seal whose removal a start has found. Null likewise, and when no seal was removed. */
      seal_removal: rowEvidenceSchema.extend({ seal: z.string() }).nullable(),
    })
    .nullable(),
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
  /** Null when the first load has ended. */
  keys_loading: keysLoadingSchema.nullable(),
  /** What server.mlock asks for (off in an enclave), and how many loaded keys lie in memory that is not locked. */
  memory: z.object({ mlock: z.enum(['off', 'best_effort', 'required']), unlocked_keys: z.int() }),
  slashing: z.object({
    backend: z.string(),
    /** unopened: the replica started sealed, and left its store alone. */
    status: z.enum(['up', 'down', 'unopened']),
    since: timestamp,
    /** The store that this replica signs over, or waits for; null where nothing binds a fleet to one. */
    store: z.string().nullable(),
    bound: z.boolean().nullable(),
    /** What this start refuses whatever the store says (anti_slashing.jump_at_boot); null when it did not jump. */
    jumped_at_boot: z.object({ slot: z.int(), source_epoch: z.int(), target_epoch: z.int() }).nullable(),
    /** Why nothing is signed over the store: an unconfirmed clock, a floor of the future, a doubt; null: nothing is. */
    trouble: z.string().nullable(),
    /** Keys with records ahead of the clock, with their highest marks. 100 at most. */
    keys_ahead: z.array(
      z.object({
        public_key: z.string(),
        slot: z.int().nullable(),
        source_epoch: z.int().nullable(),
        target_epoch: z.int().nullable(),
      }),
    ),
    /** What a person who controls the parent instances of two enclaves could do; null outside an enclave. */
    warning: z.string().nullable(),
  }),
  network: z.string(),
  version: z.string(),
  uptime_seconds: z.number(),
  /** Of `receipts.storage`: what no kept head covers, since when, and what had no room. */
  receipts: z.object({ uncovered_entries: z.int(), uncovered_seconds: z.number(), lost: z.int() }).nullable(),
  tee: z.object({
    platform: z.enum(['off', 'nitro']),
    measurements: z.record(z.string(), z.string()),
    /** SHA-384, hex; null outside an enclave, where nothing measures it. */
    configuration_digest: z.string().nullable(),
    /** tee.nitro.unsafe_parent_writes_tables: what the enclave believes, in tables or a database, is the parent's. */
    parent_writes_tables: z.boolean(),
  }),
});

export type SealAnswer = z.output<typeof sealAnswerSchema>;
export type ChamberStatus = z.output<typeof chamberStatusSchema>;
export type ChamberState = z.output<typeof chamberStateSchema>;
