// What a page was made of, in an attribute of the page: the evidence and the terms of its judgement, so that
// `operator verify` judges it again from the page alone, and writes it again to compare its words. What writes it
// stands here with what reads it, for both kinds of page. A page is anybody’s: what it says of itself is a claim.

import { z } from 'zod';
import type { DocumentProvider } from '../../../common/attestation/contract.ts';
import { MAX_TIMESTAMP_MS } from '../../../common/attestation/document.ts';
import type { Html } from '../../../common/formats/html.ts';
import { parseStrictJson } from '../../../common/formats/strict-json.ts';
import { type StatusEvidence, statusIn } from '../evidence-file.ts';
import type { KeyFinding } from '../key-report.ts';
import { sha256Of } from '../report.ts';
import { html } from './html.ts';
import type { KeyPageContext, PageContext } from './page-context.ts';

const BLOCK = /<p class="note" data-evidence="([A-Za-z0-9+/=]+)">/g;
const ALTERED = 'its evidence was altered: it has another SHA-256';

const hex = z.string().regex(/^(?:[0-9a-f]{2})*$/);
const text = z.string().max(4096);
/** Up to the year 9999, as all times of evidence. */
const moment = z.int().min(0).max(MAX_TIMESTAMP_MS);
const bytes = z.base64().transform((written) => Buffer.from(written, 'base64'));
/** Accepted values by register. */
const registers = z
  .array(z.tuple([z.int().min(0).max(31), z.array(hex).readonly()]))
  .transform((entries) => new Map(entries));
const byParent = { parentReads: z.array(text).max(16).readonly().exactOptional() };

const verification = z.strictObject({
  format: z.literal('strongroom verification page v1'),
  ...{ subject: text, at: moment, madeAt: moment, maxAgeSeconds: z.int().min(0), anyConfiguration: z.boolean() },
  ...{ nonce: bytes.exactOptional(), parentWritesTables: z.boolean().exactOptional(), ...byParent },
  ...{
    referenceValues: registers.exactOptional(),
    referenceSha256: hex.exactOptional(),
    pcrsFile: text.exactOptional(),
  },
  record: z
    .strictObject({
      ...{ commit: text.optional(), version: text.optional(), imageSha256: text.optional() },
      ...{ configurationDigest: text.optional(), ceremonyDigest: text.optional() },
    })
    .exactOptional(),
  evidence: z
    .array(
      z.strictObject({
        ...{ kind: z.enum(['document', 'certificate', 'fresh_document']), sha256: hex, bytes, at: moment },
        ...{ live: z.boolean(), nonce: bytes.exactOptional() },
      }),
    )
    .min(1)
    .max(2),
});
const masterKey = z.strictObject({
  format: z.literal('strongroom master key page v1'),
  ...{ subject: text, madeAt: moment, given: z.array(z.tuple([text, text])).max(16) },
  ...{ parentWritesTables: z.boolean(), ...byParent },
  terms: z
    .strictObject({
      deployment: z.strictObject({ network: text, id: text }),
      ...{ ceremonies: z.array(hex), images: registers },
    })
    .exactOptional(),
  ...{ sha256: hex, status: bytes },
});

type ByParent = Pick<KeyFinding, 'parentWritesTables' | 'parentReads'>;

export function embedded(context: PageContext): Html | undefined {
  if (context.evidence.length === 0) return undefined;
  const evidence = context.evidence.map(({ kind, bytes: own, at, live, nonce }) => {
    return { kind, sha256: sha256Of(own), bytes: own, at, live, nonce };
  });
  return written(verification, { ...context, evidence });
}

export function embeddedKey(context: KeyPageContext, { parentWritesTables, parentReads }: ByParent): Html {
  return written(masterKey, { ...context, parentWritesTables, parentReads, sha256: sha256Of(context.status) });
}

/** The members of the form, in its order: what is read and written again is the same. */
function written({ shape }: typeof verification | typeof masterKey, context: object): Html {
  const { format, ...members } = shape;
  const given = new Map(Object.entries(context));
  const block = Object.keys(members).map((name) => [name, given.get(name)] as const);
  const json = JSON.stringify({ format: format.value, ...Object.fromEntries(block) }, (_name, value: unknown) =>
    value instanceof Map ? [...value] : isBuffer(value) ? Buffer.from(value.data).toString('base64') : value,
  );
  return html`<h2>The evidence itself</h2>
<p class="note" data-evidence="${Buffer.from(json).toString('base64')}">It is in this page, with the terms of this
judgement: <code>strongroom operator verify</code> of the page judges it again, and says whether the page says what it
should.</p>`;
}

/** As JSON.stringify() shows one to its replacer. */
function isBuffer(value: unknown): value is { readonly data: number[] } {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer' && 'data' in value;
}

/** @returns undefined without exactly one block */
function blockOf(page: string): { readonly value: unknown } | undefined {
  const [block, ...more] = [...page.matchAll(BLOCK)];
  if (block === undefined || more.length > 0) return undefined;
  const parsed = parseStrictJson(Buffer.from(block[1] ?? '', 'base64'));
  return { value: parsed.kind === 'refused' ? undefined : parsed.value };
}

type ReadPage = { readonly ok: true; readonly context: PageContext } | { readonly ok: false; readonly problem: string };

export function readPage(page: string, provider: DocumentProvider): ReadPage {
  const block = blockOf(page);
  if (block === undefined) return { ok: false, problem: 'it holds no evidence, or more than one' };
  const { data } = verification.safeParse(block.value);
  if (data === undefined) return { ok: false, problem: 'its evidence has another form than a report writes' };
  if (data.evidence.some((one) => sha256Of(one.bytes) !== one.sha256)) return { ok: false, problem: ALTERED };
  const { nonce, parentWritesTables, parentReads, referenceValues, referenceSha256, pcrsFile, record } = data;
  const evidence = data.evidence.map((one) => ({ ...one, nonce: one.nonce }));
  const optional = { nonce, parentWritesTables, parentReads, referenceValues, referenceSha256, pcrsFile };
  return {
    ok: true,
    context: { ...data, ...optional, record: record && { ...NO_RECORD, ...record }, evidence, provider },
  };
}

const NO_RECORD = {
  ...{ commit: undefined, version: undefined, imageSha256: undefined },
  ...{ configurationDigest: undefined, ceremonyDigest: undefined },
};

interface KeptKey {
  readonly file: StatusEvidence;
  readonly context: KeyPageContext;
  /** As the page says it. */
  readonly byParent: ByParent;
}

/** @returns undefined for a page of something else; text: why it is refused */
export function readKeyPage(page: string, provider: DocumentProvider): KeptKey | string | undefined {
  const value = blockOf(page)?.value;
  if ((value as { format?: unknown } | undefined)?.format !== masterKey.shape.format.value) return undefined;
  const { data } = masterKey.safeParse(value);
  if (data === undefined) return 'its evidence has another form than a report writes';
  const { status, sha256, terms, parentWritesTables, parentReads } = data;
  if (sha256Of(status) !== sha256) return ALTERED;
  const file = statusIn(status, 'its evidence');
  if (file === undefined) return 'its evidence is no status of a signer';
  return { file, context: { ...data, terms, provider }, byParent: { parentWritesTables, parentReads } };
}
