// What a pcrs.json says besides its measurements, for a report. A document is compared with the measurements only;
// members of another form than ours are passed over.

import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { parseStrictJson } from '../../common/formats/strict-json.ts';

const hex = (digits: number) => z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`));
const commit = z.string().regex(/^(?:[0-9a-f]{40}(?:-modified)?|unknown)$/);
const version = z.string().max(64);
const said = <Schema extends z.ZodType>(schema: Schema) => schema.optional().catch(undefined);

const fileSchema = z.object({
  ...{ commit: said(commit), configuration_digest_sha384: said(hex(96)) },
  tool: said(z.object({ strongroom: said(version) })),
  image: said(z.object({ sha256: said(hex(64)) })),
  ceremony: said(z.object({ digest_sha384: said(hex(96)) })),
});

export const referenceRecord = z.strictObject({
  ...{ commit: commit.optional(), version: version.optional(), imageSha256: hex(64).optional() },
  ...{ configurationDigest: hex(96).optional(), ceremonyDigest: hex(96).optional() },
});

export function readReferenceRecord(path: string): z.infer<typeof referenceRecord> {
  const parsed = parseStrictJson(readFileSync(path));
  const file = fileSchema.safeParse(parsed.kind === 'refused' ? undefined : parsed.value).data;
  return {
    ...{ commit: file?.commit, version: file?.tool?.strongroom, imageSha256: file?.image?.sha256 },
    ...{ configurationDigest: file?.configuration_digest_sha384, ceremonyDigest: file?.ceremony?.digest_sha384 },
  };
}
