// What a report's page was made of, in an attribute of the page: the evidence and the terms of its judgement, so that
// `operator verify` judges it again from the page alone, and writes it again to compare its words. One form writes and
// reads each kind. A page is anybody’s: what it says of itself is a claim.

import { z } from 'zod';
import { MAX_TIMESTAMP_MS } from '../../common/attestation/document.ts';
import type { ReferenceValues } from '../../common/attestation/policy.ts';
import { parseStrictJson } from '../../common/formats/strict-json.ts';
import { referenceRecord } from './reference-record.ts';
import { sha256Of } from './report.ts';

export const VERIFICATION_FORMAT = 'strongroom verification page v1' as const;
export const MASTER_KEY_FORMAT = 'strongroom master key page v1' as const;
const BLOCK = / data-evidence="([A-Za-z0-9+/=]+)"/g;

const hex = z.string().regex(/^(?:[0-9a-f]{2})*$/);
const text = z.string().max(4096);
/** Up to the year 9999, as all times of evidence. */
const moment = z.int().min(0).max(MAX_TIMESTAMP_MS);
const bytes = z.codec(z.base64(), z.instanceof(Buffer), {
  decode: (written) => Buffer.from(written, 'base64'),
  encode: (content) => content.toString('base64'),
});
/** Accepted values by register. */
const registers = z.codec(
  z.array(z.tuple([z.int().min(0).max(31), z.array(hex).readonly()])),
  z.custom<ReferenceValues>((values) => values instanceof Map),
  { decode: (entries) => new Map(entries), encode: (values) => [...values] },
);
const reported = {
  ...{ subject: text, madeAt: moment },
  ...{ parentWritesTables: z.boolean().optional(), parentReads: z.array(text).max(16).readonly().optional() },
};

const piece = z.strictObject({
  ...{ kind: z.enum(['document', 'certificate', 'fresh_document']), sha256: hex, bytes, at: moment },
  ...{ live: z.boolean(), nonce: bytes.optional() },
});
const verification = z.strictObject({
  format: z.literal(VERIFICATION_FORMAT),
  ...reported,
  ...{ at: moment, maxAgeSeconds: z.int().min(0), anyConfiguration: z.boolean(), nonce: bytes.optional() },
  ...{ referenceValues: registers.optional(), referenceSha256: hex.optional(), pcrsFile: text.optional() },
  ...{ record: referenceRecord.optional(), evidence: z.array(piece).min(1).max(2).readonly() },
});
const deployment = z.strictObject({ network: text, id: text });
const terms = z.strictObject({ deployment, ceremonies: z.array(hex).readonly(), images: registers });
const masterKey = z.strictObject({
  format: z.literal(MASTER_KEY_FORMAT),
  ...reported,
  given: z
    .array(z.tuple([text, text]).readonly())
    .max(16)
    .readonly(),
  terms: terms.optional(),
  ...{ sha256: hex, status: bytes },
});
const either = z.discriminatedUnion('format', [verification, masterKey]);

export type VerificationPage = z.output<typeof verification>;
export type MasterKeyPage = z.output<typeof masterKey>;

/** For the attribute. The members stand in the order of the form, so what is read and written again is the same. */
export function embedded(page: VerificationPage | MasterKeyPage): string {
  return Buffer.from(JSON.stringify(z.encode(either, page))).toString('base64');
}

/** @returns text: why the page is refused */
export function readKeptPage(page: string): VerificationPage | MasterKeyPage | string {
  const [block, ...more] = [...page.matchAll(BLOCK)];
  if (block === undefined || more.length > 0) return 'it holds no evidence, or more than one';
  const parsed = parseStrictJson(Buffer.from(block[1] ?? '', 'base64'));
  const { data } = either.safeParse(parsed.kind === 'refused' ? undefined : parsed.value);
  if (data === undefined) return 'its evidence has another form than a report writes';
  const kept = 'evidence' in data ? data.evidence : [{ ...data, bytes: data.status }];
  const isAltered = kept.some((one) => sha256Of(one.bytes) !== one.sha256);
  return isAltered ? 'its evidence was altered: it has another SHA-256' : data;
}
