// What GET /healthcheck answers (specification/signing.md#probes), with 200 or 503. No credential is asked for, so it
// holds no secret, no configured value, and not who sealed the signer, nor why.

import { z } from 'zod';

/** How far the first load of the keys is, as long as it goes on. */
export const keysLoadingSchema = z.object({
  done: z.int(),
  /** Null while the signer does not know it yet: it is still reading key folders or a key table. */
  total: z.int().nullable(),
  remaining_seconds: z.number().nullable(),
});

const healthCheckSchema = z.object({
  id: z.enum([
    'chamber',
    'anti_slashing',
    'clock',
    'state_watcher',
    'keys',
    'receipts',
    'log',
    'keys-check',
    'slashing-protection-db-health-check',
  ]),
  /**
   * NOT_OPENED: this replica started sealed and left its slashing store alone, so nothing is known of it. DEGRADED:
   * something lacks that nothing has to wait for.
   */
  status: z.enum(['UP', 'DEGRADED', 'DOWN', 'NOT_OPENED']),
  detail: z.string().exactOptional(),
  /** While the chamber is sealed: since when, null when the latch does not say. */
  sealed_at: z.string().nullable().exactOptional(),
  /** Of the check `keys`, while keys are being loaded. */
  loading: keysLoadingSchema.exactOptional(),
});

const outcome = z.enum(['UP', 'DOWN']);
export const healthSchema = z.object({ status: outcome, checks: z.array(healthCheckSchema), outcome });

export type KeysLoading = Readonly<z.output<typeof keysLoadingSchema>>;
export type HealthCheck = Readonly<z.output<typeof healthCheckSchema>>;
export type Health = z.output<typeof healthSchema>;
