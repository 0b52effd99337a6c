// pcrs.json (specification/image.md#record). Read here it may be anybody's: only its form is believed.

import { z } from 'zod';
import { explainIssue } from '../common/formats/issues.ts';
import { parseStrictJson } from '../common/formats/strict-json.ts';
import type { Architecture } from './format/format.ts';
import { BuildError, type Input, readImageInput } from './inputs.ts';
import type { ImageMeasurements } from './measure.ts';

export interface ImageRecord {
  readonly commit: string;
  readonly packages: 'verified' | 'unverified';
  readonly measurements: ImageMeasurements;
  readonly image: {
    readonly sha256: string;
    readonly size: number;
    readonly architecture: Architecture;
    readonly signed: boolean;
  };
  readonly ceremony: { readonly generation: number; readonly digest_sha384: string };
  readonly configuration: 'baked' | 'fetched';
  readonly configuration_digest_sha384: string | null;
  readonly tool: { readonly strongroom: string; readonly node: string; readonly esbuild: string };
  readonly inputs: readonly Input[];
}

const register = z.string().regex(/^[0-9a-f]{96}$/i);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const MAX_TEXT_CHARACTERS = 4096;
const text = z.string().max(MAX_TEXT_CHARACTERS);

/** What a record of any version has: only the measurements have to be there. */
const publishedSchema = z.object({
  commit: text.exactOptional(),
  packages: text.exactOptional(),
  measurements: z.record(z.string().regex(/^PCR\d{1,2}$/), z.union([register, z.array(register).min(1)])),
  image: z.object({ sha256 }).exactOptional(),
  tool: z.object({ strongroom: text }).exactOptional(),
  inputs: z.array(z.object({ path: text, sha256, size: z.int().min(0) })).exactOptional(),
});

export type PublishedRecord = z.output<typeof publishedSchema>;

export function readPublishedRecord(path: string): PublishedRecord {
  const value = parseJson(readImageInput(path, 'the record'), path);
  const parsed = publishedSchema.safeParse(value, { error: explainIssue });
  if (!parsed.success) {
    const places = parsed.error.issues.map((issue) => `${issue.path.map(String).join('.')}: ${issue.message}`);
    throw new BuildError(`${path} is not a pcrs.json as "strongroom eif build" writes it`, places.slice(0, 5));
  }
  if (parsed.data.measurements['PCR0'] === undefined) throw new BuildError(`${path} has no PCR0: it names no image`);
  return parsed.data;
}

function parseJson(bytes: Buffer, path: string): unknown {
  const parsed = parseStrictJson(bytes);
  if (parsed.kind === 'refused') throw new BuildError(`${path} is no JSON, or it names a member twice`);
  return parsed.value;
}
