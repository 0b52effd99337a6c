// GET and POST /reload, as Web3Signer 26 has them (openapi-specs/eth2/signing/paths/reload.yaml): asked for, answered
// at once, looked at later.

import { z } from 'zod';

export const reloadStatusSchema = z.strictObject({
  status: z.enum(['idle', 'running', 'completed', 'completed_with_errors', 'failed']),
  lastOperationTime: z.iso.datetime().optional(),
  lastError: z.string().optional(),
});

export type ReloadStatus = z.infer<typeof reloadStatusSchema>;

export const reloadAnswerSchema = z.strictObject({ status: z.literal('accepted'), message: z.string() });

export const RELOAD_ACCEPTED: z.infer<typeof reloadAnswerSchema> = {
  status: 'accepted',
  message: 'the reload is under way; GET /reload says how it ends',
};
