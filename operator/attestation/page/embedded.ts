// What a report's page was made of, on the page itself: the evidence and the terms of its judgement, in base64, so that
// `operator verify` judges it again from the page alone, and writes it again to compare its words. What writes the
// block stands here with what reads it. A page is anybody's: what it says of itself is a claim.

import { z } from 'zod';
import type { DocumentProvider } from '../../../common/attestation/contract.ts';
import { MAX_TIMESTAMP_MS } from '../../../common/attestation/document.ts';
import type { ReferenceValues } from '../../../common/attestation/policy.ts';
import type { Html } from '../../../common/formats/html.ts';
import { parseStrictJson } from '../../../common/formats/strict-json.ts';
import { type JudgedEvidence, sha256Of } from '../report.ts';
import { html } from './html.ts';
import type { PageContext } from './page-context.ts';

const FORMAT = 'strongroom verification page v1';
export const PAGE_BEGINS = '<!doctype html>';
const BLOCK = /<pre class="evidence">([A-Za-z0-9+/=]+)<\/pre>/g;

export const hex = z.string().regex(/^(?:[0-9a-f]{2})*$/);
export const text = z.string().max(4096);
/** Up to the year 9999, as all times of evidence. */
export const moment = z.int().min(0).max(MAX_TIMESTAMP_MS);
/** Accepted values by register. */
export const registers = z.record(z.string().regex(/^(?:[12]?\d|3[01])$/), z.array(hex));
/** Of what the parent reads in the configuration. */
export const optionNames = z.array(text).max(16);
const schema = z.strictObject({
  format: z.literal(FORMAT),
  subject: text,
  at: moment,
  made_at: moment,
  max_age_seconds: z.int().min(0),
  nonce: hex.exactOptional(),
  any_configuration: z.boolean(),
  parent_writes_tables: z.boolean().exactOptional(),
  parent_reads: optionNames.exactOptional(),
  reference_values: registers.exactOptional(),
  reference_sha256: hex.exactOptional(),
  pcrs_file: text.exactOptional(),
  record: z.record(text, text).exactOptional(),
  evidence: z
    .array(
      z.strictObject({
        kind: z.enum(['document', 'certificate', 'fresh_document']),
        sha256: hex,
        base64: z.string(),
        at: moment,
        live: z.boolean(),
        nonce: hex.exactOptional(),
      }),
    )
    .min(1)
    .max(2),
});

export function embedded(context: PageContext): Html | undefined {
  const { evidence, referenceValues, record } = context;
  if (evidence.length === 0) return undefined;
  const block: z.output<typeof schema> = {
    format: FORMAT,
    subject: context.subject,
    at: context.at,
    made_at: context.madeAt,
    max_age_seconds: context.maxAgeSeconds,
    ...optional('nonce', context.nonce?.toString('hex')),
    any_configuration: context.anyConfiguration,
    ...optional('parent_writes_tables', context.parentWritesTables),
    ...optional('parent_reads', context.parentReads && [...context.parentReads]),
    ...optional('reference_values', referenceValues === undefined ? undefined : asObject(referenceValues)),
    ...optional('reference_sha256', context.referenceSha256),
    ...optional('pcrs_file', context.pcrsFile),
    ...optional('record', record === undefined ? undefined : defined(record)),
    evidence: evidence.map(({ kind, bytes, at, live, nonce }) => ({
      kind,
      sha256: sha256Of(bytes),
      base64: bytes.toString('base64'),
      at,
      live,
      ...optional('nonce', nonce?.toString('hex')),
    })),
  };
  return writeBlock(block);
}

export function writeBlock(block: object): Html {
  const base64 = Buffer.from(JSON.stringify(block)).toString('base64');
  return html`<h2>The evidence itself</h2>
<p class="note">With the terms of this judgement, in base64: <code>strongroom operator verify</code> of this page judges it
again, and says whether the page says what it should.</p>
<pre class="evidence">${base64}</pre>`;
}

export type ReadPage =
  | { readonly ok: true; readonly context: PageContext }
  | { readonly ok: false; readonly problem: string };

/** @returns `value` undefined: it is no JSON */
export function readBlock(page: string): { readonly ok: boolean; readonly value?: unknown } {
  const blocks = [...page.matchAll(BLOCK)];
  const [block] = blocks;
  if (block === undefined || blocks.length > 1) return { ok: false };
  const parsed = parseStrictJson(Buffer.from(block[1] ?? '', 'base64'));
  return { ok: true, value: parsed.kind === 'refused' ? undefined : parsed.value };
}

export function readPage(page: string, provider: DocumentProvider): ReadPage {
  const block = readBlock(page);
  if (!block.ok) return { ok: false, problem: 'it holds no evidence, or more than one' };
  const read = schema.safeParse(block.value);
  if (!read.success) return { ok: false, problem: 'its evidence has another form than a report writes' };
  const evidence = read.data.evidence.map(({ kind, sha256, base64, at, live, nonce }) => ({
    sha256,
    judged: { kind, bytes: Buffer.from(base64, 'base64'), at, live, nonce: bytesOf(nonce) } satisfies JudgedEvidence,
  }));
  if (evidence.some(({ sha256, judged }) => sha256Of(judged.bytes) !== sha256))
    return { ok: false, problem: 'its evidence was altered: it has another SHA-256' };
  const { data } = read;
  const { commit, version, imageSha256, configurationDigest, ceremonyDigest } = data.record ?? {};
  const context: PageContext = {
    subject: data.subject,
    at: data.at,
    provider,
    referenceValues: data.reference_values === undefined ? undefined : valuesOf(data.reference_values),
    parentWritesTables: data.parent_writes_tables,
    parentReads: data.parent_reads,
    evidence: evidence.map(({ judged }) => judged),
    referenceSha256: data.reference_sha256,
    madeAt: data.made_at,
    maxAgeSeconds: data.max_age_seconds,
    nonce: bytesOf(data.nonce),
    anyConfiguration: data.any_configuration,
    pcrsFile: data.pcrs_file,
    record:
      data.record === undefined ? undefined : { commit, version, imageSha256, configurationDigest, ceremonyDigest },
  };
  return { ok: true, context };
}

function bytesOf(value: string | undefined): Buffer | undefined {
  return value === undefined ? undefined : Buffer.from(value, 'hex');
}

export function valuesOf(written: Readonly<Record<string, readonly string[]>>): ReferenceValues {
  return new Map(Object.entries(written).map(([index, accepted]) => [Number(index), accepted]));
}

export function asObject(values: ReferenceValues): Record<string, string[]> {
  return Object.fromEntries([...values].map(([index, accepted]) => [index, [...accepted]]));
}

function defined(record: object): Record<string, string> {
  return Object.fromEntries(
    Object.entries(record).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

export function optional<Name extends string, Value>(name: Name, value: Value | undefined) {
  return (value === undefined ? {} : { [name]: value }) as { [One in Name]?: Value };
}
