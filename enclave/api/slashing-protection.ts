// GET and POST /api/v1/chamber/slashing-protection: what an import answers (specification/slashing.md#interchange). The
// body both ways is an EIP-3076 interchange file.

import { z } from 'zod';

export const slashingImportAnswerSchema = z.object({
  /** Keys named by the file. */
  validators: z.int(),
  blocks: z.int(),
  attestations: z.int(),
  /** Entries that were there already, with the same root. */
  already_present: z.int(),
  /** Entries slashable against each other or the records; merged all the same. */
  conflicts: z.int(),
});

export type SlashingImportAnswer = z.output<typeof slashingImportAnswerSchema>;
