// GET and POST /api/v1/chamber/slashing-protection: what an import answers (specification/slashing.md#interchange). The
// body both ways is an EIP-3076 interchange file.

import { z } from 'zod';

export const slashingImportAnswerSchema = z.object({
  validators: z.int(),
  blocks: z.int(),
  attestations: z.int(),
  already_present: z.int(),
  /** Entries slashable against each other or the records; merged all the same. */
  conflicts: z.int(),
  /** Which they are, up to 100. A signer of before does not say. */
  conflicting: z
    .array(
      z.union([
        z.object({ public_key: z.string(), slot: z.int() }),
        z.object({ public_key: z.string(), source_epoch: z.int(), target_epoch: z.int() }),
      ]),
    )
    .exactOptional(),
});

export type SlashingImportAnswer = z.output<typeof slashingImportAnswerSchema>;
