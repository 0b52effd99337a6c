// The evidence that an enclave writes next to its master key, into the same row (specification/evidence.md#rows).

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '../formats/parse-json.ts';
import {
  type AttestedKey,
  digestSchema,
  documentSchema,
  type KeyEvidenceRefusal,
  type KeyEvidenceTerms,
  type KeyStatement,
  openStatement,
  refuseKeyEvidence,
} from './key-evidence.ts';

const BINDING_TAG = Buffer.from('strongroom row v1\0');
const MAX_EVIDENCE_CHARACTERS = 32_768;
export type RowPurpose = 'root_token' | 'seal_removed';

export interface RowStatement extends Pick<KeyStatement, 'deployment' | 'generation' | 'ceremony'> {
  readonly purpose: RowPurpose;
  readonly origin: string;
  readonly content: string;
}

export interface RowEvidence extends RowStatement {
  readonly document: Buffer;
}

export type VerifiedRow = RowEvidence & AttestedKey;

type RowTerms = Pick<KeyEvidenceTerms, 'provider' | 'deployment' | 'accepts'> &
  Pick<RowStatement, 'purpose' | 'origin' | 'content'>;

/** As `keyStatementBinding`. */
export function rowStatementBinding(statement: RowStatement): Buffer {
  const line = JSON.stringify(inOrder(statement));
  return Buffer.concat([BINDING_TAG, createHash('sha384').update(line).digest()]);
}

export function serializeRowEvidence(evidence: RowEvidence): string {
  return JSON.stringify({ version: 1, ...inOrder(evidence), document: evidence.document.toString('base64') });
}

export function readRowEvidence(text: string): RowEvidence | undefined {
  if (text.length > MAX_EVIDENCE_CHARACTERS) return undefined;
  const evidence = evidenceSchema.safeParse(parseJson(text)).data;
  return evidence === undefined || serializeRowEvidence(evidence) !== text ? undefined : evidence;
}

const evidenceSchema = z.strictObject({
  version: z.literal(1),
  purpose: z.enum(['root_token', 'seal_removed']),
  deployment: z.strictObject({ network: z.string(), id: z.string() }),
  generation: z.int().min(1),
  ceremony: digestSchema,
  origin: digestSchema,
  content: digestSchema,
  document: documentSchema,
});

export function verifyRowEvidence(
  text: string | undefined,
  terms: RowTerms,
): { readonly ok: true; readonly row: VerifiedRow } | KeyEvidenceRefusal {
  if (text === undefined) return refuseKeyEvidence('missing', 'it has none');
  const evidence = readRowEvidence(text);
  if (evidence === undefined) return refuseKeyEvidence('malformed', 'it is not evidence that this version writes');
  const { document, ceremony, deployment } = evidence;
  const statement = { document, binding: rowStatementBinding(evidence), ceremony };
  const opened = openStatement('its evidence', statement, terms.provider);
  if ('ok' in opened) return opened;
  const isOfDeployment = deployment.network === terms.deployment.network && deployment.id === terms.deployment.id;
  const isOfContent = evidence.purpose === terms.purpose && evidence.content === terms.content;
  if (!isOfDeployment || !isOfContent) return refuseKeyEvidence('other_record', 'it is of something else');
  if (evidence.origin !== terms.origin) return refuseKeyEvidence('other_record', 'it is of another master key');
  if (!terms.accepts(opened.pcrs)) return refuseKeyEvidence('other_image', 'another image made it');
  return { ok: true, row: { ...evidence, ...opened } };
}

function inOrder({ purpose, deployment, generation, ceremony, origin, content }: RowStatement) {
  const { network, id } = deployment;
  return { purpose, deployment: { network, id }, generation, ceremony, origin, content };
}
