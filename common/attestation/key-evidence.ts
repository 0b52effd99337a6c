// The provenance of a master key: a chain of attestation documents (specification/evidence.md#master-key).

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '../formats/parse-json.ts';
import { extendedOnce } from '../formats/register.ts';
import { CEREMONY_PCR, type DocumentProvider } from './contract.ts';
import { type AttestationDocument, MAX_DOCUMENT_BYTES, readCoseSign1, readPayload } from './document.ts';
import { EvidenceError } from './failure.ts';
import { IMAGE_PCRS } from './policy.ts';
import { verifyDocument } from './verify.ts';

/** DynamoDB keeps 400 KiB in an item. */
export const MAX_KEY_LINKS = 16;
export const MAX_KEY_EVIDENCE_CHARACTERS = 300_000;

const BINDING_TAG = Buffer.from('strongroom master-key v1\0');

export interface KeyStatement {
  readonly purpose: 'made' | 'wrapped';
  readonly counter: number;
  readonly deployment: { readonly network: string; readonly id: string };
  readonly generation: number;
  readonly ceremony: string;
  readonly record: string;
  /** SHA-384, hex, of the document that made the key and of the one before this; null in the first link. */
  readonly origin: string | null;
  readonly previous: string | null;
}

export interface KeyLink extends KeyStatement {
  readonly document: Buffer;
}

export interface VerifiedKeyLink extends KeyLink {
  readonly moduleId: string;
  readonly madeAt: number;
  readonly pcrs: ReadonlyMap<number, Buffer>;
}

export type KeyEvidenceFault =
  | 'missing'
  | 'malformed'
  | 'not_authentic'
  | 'debug'
  | 'other_statement'
  | 'other_record'
  | 'broken_chain'
  | 'other_ceremony'
  | 'other_image';

export interface KeyEvidenceRefusal {
  readonly ok: false;
  readonly fault: KeyEvidenceFault;
  readonly detail: string;
}

export interface KeyEvidenceTerms {
  readonly provider: DocumentProvider;
  readonly deployment: KeyStatement['deployment'];
  readonly generation: number;
  readonly record: string;
  /** Digests, hex: this ceremony's, and the one before when this one names it. */
  readonly ceremonies: readonly string[];
  readonly accepts: (pcrs: ReadonlyMap<number, Buffer>) => boolean;
}

export function sha384Hex(content: Uint8Array | string): string {
  return createHash('sha384').update(content).digest('hex');
}

/** The tag, and SHA-384 of the statement as one line of JSON, members in this order. */
export function keyStatementBinding(statement: KeyStatement): Buffer {
  const { purpose, counter, deployment, generation, ceremony, record, origin, previous } = statement;
  const { network, id } = deployment;
  const line = JSON.stringify({
    ...{ purpose, counter, deployment: { network, id }, generation, ceremony, record, origin, previous },
  });
  return Buffer.concat([BINDING_TAG, createHash('sha384').update(line).digest()]);
}

export function placeAfter(
  links: readonly KeyLink[],
): Pick<KeyStatement, 'purpose' | 'counter' | 'origin' | 'previous'> {
  const [first] = links;
  const last = links.at(-1);
  if (first === undefined || last === undefined) return { purpose: 'made', counter: 1, origin: null, previous: null };
  return {
    purpose: 'wrapped',
    counter: last.counter + 1,
    origin: sha384Hex(first.document),
    previous: sha384Hex(last.document),
  };
}

/** The second one goes when there are too many. */
export function withKeyLink(links: readonly KeyLink[], link: KeyLink): readonly KeyLink[] {
  const all = [...links, link];
  return all.length <= MAX_KEY_LINKS ? all : [...all.slice(0, 1), ...all.slice(2)];
}

export function serializeKeyEvidence(links: readonly KeyLink[]): string {
  const written = links.map((link) => {
    const { purpose, counter, deployment, generation, ceremony, record, origin, previous, document } = link;
    const { network, id } = deployment;
    return {
      ...{ purpose, counter, deployment: { network, id }, generation, ceremony, record, origin, previous },
      document: document.toString('base64'),
    };
  });
  return JSON.stringify({ version: 1, links: written });
}

export function readKeyEvidence(text: string): readonly KeyLink[] | undefined {
  if (text.length > MAX_KEY_EVIDENCE_CHARACTERS) return undefined;
  const links = evidenceSchema.safeParse(parseJson(text)).data?.links;
  // One spelling: a member that is there twice, or base64 with other bits, does not come out as it was.
  return links === undefined || serializeKeyEvidence(links) !== text ? undefined : links;
}

export const digestSchema = z.string().regex(/^[0-9a-f]{96}$/);
export const documentSchema = z
  .string()
  .max(Math.ceil(MAX_DOCUMENT_BYTES / 3) * 4)
  .transform((text) => Buffer.from(text, 'base64'));

const evidenceSchema = z.strictObject({
  version: z.literal(1),
  links: z
    .array(
      z.strictObject({
        purpose: z.enum(['made', 'wrapped']),
        counter: z.int().min(1),
        deployment: z.strictObject({ network: z.string(), id: z.string() }),
        generation: z.int().min(1),
        ceremony: digestSchema,
        record: digestSchema,
        origin: digestSchema.nullable(),
        previous: digestSchema.nullable(),
        document: documentSchema,
      }),
    )
    .min(1)
    .max(MAX_KEY_LINKS),
});

/** Every document is judged at its own time: the certificates of an NSM live for hours, and a master key for years. */
export function verifyKeyEvidence(
  text: string | undefined,
  terms: KeyEvidenceTerms,
): { readonly ok: true; readonly links: readonly VerifiedKeyLink[] } | KeyEvidenceRefusal {
  if (text === undefined) return refuseKeyEvidence('missing', 'it has none');
  const links = readKeyEvidence(text);
  if (links === undefined) return refuseKeyEvidence('malformed', 'it is not evidence that this version writes');
  const verified: VerifiedKeyLink[] = [];
  for (const link of links) {
    const one = verifyLink(link, terms.provider);
    if ('ok' in one) return one;
    verified.push(one);
  }
  return refuseChain(verified) ?? refuseTerms(verified, terms) ?? { ok: true, links: verified };
}

function verifyLink(link: KeyLink, provider: DocumentProvider): VerifiedKeyLink | KeyEvidenceRefusal {
  const statement = { document: link.document, binding: keyStatementBinding(link), ceremony: link.ceremony };
  const opened = openStatement(`link ${link.counter}`, statement, provider);
  return 'ok' in opened ? opened : { ...link, ...opened };
}

export type AttestedKey = Pick<VerifiedKeyLink, 'moduleId' | 'madeAt' | 'pcrs'>;

/** At its own time: authentic, of no debug mode, of this statement, of an enclave of its ceremony. */
export function openStatement(
  at: string,
  { document, binding, ceremony }: { readonly document: Buffer; readonly binding: Buffer; readonly ceremony: string },
  provider: DocumentProvider,
): AttestedKey | KeyEvidenceRefusal {
  const claimed = readDocument(document);
  if (claimed === undefined) return refuseKeyEvidence('not_authentic', `${at}: its document cannot be read`);
  const { timestamp } = claimed;
  const verdict = verifyDocument(document, { provider, at: timestamp, maxAgeSeconds: 0 });
  if (!verdict.authentic) {
    const [failure] = verdict.failures;
    return refuseKeyEvidence('not_authentic', `${at}: ${failure === undefined ? 'its document' : failure.code}`);
  }
  const { pcrs, moduleId, userData } = verdict.document;
  if (IMAGE_PCRS.some((index) => pcrs.get(index)?.every((byte) => byte === 0) ?? true))
    return refuseKeyEvidence('debug', `${at}: it was made in debug mode`);
  if (userData?.equals(binding) !== true)
    return refuseKeyEvidence('other_statement', `${at}: its document says something else`);
  if (pcrs.get(CEREMONY_PCR)?.equals(extendedOnce(Buffer.from(ceremony, 'hex'))) !== true)
    return refuseKeyEvidence('other_statement', `${at}: its enclave had another ceremony (PCR${CEREMONY_PCR})`);
  return { moduleId, madeAt: timestamp, pcrs };
}

function readDocument(bytes: Buffer): AttestationDocument | undefined {
  try {
    return readPayload(readCoseSign1(bytes).payload);
  } catch (error) {
    if (error instanceof EvidenceError) return undefined;
    throw error;
  }
}

/** Only the second may be missing its predecessors, and only in a full chain. */
function refuseChain(links: readonly VerifiedKeyLink[]): KeyEvidenceRefusal | undefined {
  for (const [index, link] of links.entries()) {
    const before = links.slice(0, index);
    const expected = placeAfter(before);
    const isBehindGap = index === 1 && links.length === MAX_KEY_LINKS && link.counter > expected.counter;
    const fits =
      link.purpose === expected.purpose &&
      link.origin === expected.origin &&
      (isBehindGap || (link.counter === expected.counter && link.previous === expected.previous));
    if (!fits) return refuseKeyEvidence('broken_chain', `link ${link.counter} does not follow the one before it`);
    const last = before.at(-1);
    if (last === undefined) continue;
    if (link.generation <= last.generation)
      return refuseKeyEvidence('broken_chain', `link ${link.counter} is of no later generation`);
    if (link.record === last.record)
      return refuseKeyEvidence('broken_chain', `link ${link.counter} is of the same record`);
  }
  return undefined;
}

function refuseTerms(links: readonly VerifiedKeyLink[], terms: KeyEvidenceTerms): KeyEvidenceRefusal | undefined {
  const { deployment } = terms;
  for (const link of links) {
    if (link.deployment.network !== deployment.network || link.deployment.id !== deployment.id)
      return refuseKeyEvidence('other_record', `link ${link.counter} is of the deployment "${link.deployment.id}"`);
    if (!terms.accepts(link.pcrs)) {
      const registers = IMAGE_PCRS.map((index) => `PCR${index}=${link.pcrs.get(index)?.toString('hex')}`);
      return refuseKeyEvidence('other_image', `link ${link.counter} was made by another image: ${registers.join(' ')}`);
    }
  }
  const last = links.at(-1);
  if (last?.record !== terms.record || last.generation !== terms.generation)
    return refuseKeyEvidence('other_record', 'it is of another record');
  if (!terms.ceremonies.includes(last.ceremony))
    return refuseKeyEvidence('other_ceremony', `it is of the ceremony with the digest ${last.ceremony}`);
  return undefined;
}

export function refuseKeyEvidence(fault: KeyEvidenceFault, detail: string): KeyEvidenceRefusal {
  return { ok: false, fault, detail };
}
