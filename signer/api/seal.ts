// What POST /api/v1/chamber/seal takes (specification/custody.md#sealing).

import { z } from 'zod';
import { MAX_SEAL_REASON_CHARACTERS } from './primitives.ts';

export const sealRequestSchema = z.strictObject({
  reason: z
    .string()
    .max(MAX_SEAL_REASON_CHARACTERS, `a reason has at most ${MAX_SEAL_REASON_CHARACTERS} characters`)
    .exactOptional(),
});
