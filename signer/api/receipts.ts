// GET /api/v1/receipts/boots: the starts whose logs the storage holds (specification/receipts.md#routes).

import { z } from 'zod';

const MAX_BOOTS = 100_000;

const boot = z.string().regex(/^[0-9a-f]{32}$/);

export const receiptsBootsSchema = z.object({ boot, boots: z.array(boot).max(MAX_BOOTS) });
