// What GET /healthcheck answers (specification/signing.md#probes), with 200 or 503. No credential is asked for, so it
// holds no secret and no configured value; the reason of a seal is what its caller wrote for everybody to read.

import { z } from 'zod';

const healthCheckSchema = z.object({
  id: z.enum(['chamber', 'anti_slashing', 'state_watcher', 'keys']),
  /** NOT_OPENED: this replica started sealed and left its slashing store alone, so nothing is known of it. */
  status: z.enum(['UP', 'DOWN', 'NOT_OPENED']),
  /** What is wrong. */
  detail: z.string().exactOptional(),
  /** While the chamber is sealed: what the latch says, each null when it does not say. */
  sealed_at: z.string().nullable().exactOptional(),
  reason: z.string().nullable().exactOptional(),
  /** The accessor of the token that sealed it. */
  accessor: z.string().nullable().exactOptional(),
});

const outcome = z.enum(['UP', 'DOWN']);
export const healthSchema = z.object({ status: outcome, checks: z.array(healthCheckSchema), outcome });

export type HealthCheck = Readonly<z.output<typeof healthCheckSchema>>;
export type Health = z.output<typeof healthSchema>;
