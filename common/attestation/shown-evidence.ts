// The evidence of a master key as a signer's status shows it, or as a transcript keeps it, judged by people outside the
// enclave (specification/evidence.md#shown). It trusts the root of the given provider alone, and nothing else that the
// status says. What has no evidence, or another form, is refused; without terms it is authentic, and never expected.

import type { DocumentProvider } from './contract.ts';
import {
  type KeyEvidenceFault,
  type KeyEvidenceRefusal,
  type KeyEvidenceTerms,
  readKeyEvidence,
  refuseKeyEvidence,
  sha384Hex,
  type VerifiedKeyLink,
  verifyKeyEvidence,
} from './key-evidence.ts';
import { IMAGE_PCRS, type ReferenceValues } from './policy.ts';
import { type RowPurpose, readRowEvidence, type VerifiedRow, verifyRowEvidence } from './row-evidence.ts';

const LINK_MEMBERS = [
  ...['purpose', 'counter', 'deployment', 'generation', 'ceremony', 'record', 'origin', 'previous', 'document'],
] as const;
const ROW_MEMBERS = ['purpose', 'deployment', 'generation', 'ceremony', 'origin', 'content', 'document'] as const;
const ROWS = [
  ['root_token', 'root_token'],
  ['seal_removal', 'seal_removed'],
] as const;

export interface ShownEvidence {
  readonly key: string | undefined;
  readonly record: string;
  readonly rows: readonly ShownRow[];
}

interface ShownRow {
  readonly purpose: RowPurpose;
  readonly evidence: string;
  readonly content: string | undefined;
}

export type OriginTerms = Pick<KeyEvidenceTerms, 'deployment' | 'ceremonies' | 'accepts'>;

export interface Origin {
  readonly links: readonly VerifiedKeyLink[];
  readonly rows: readonly VerifiedRow[];
  readonly refusal: KeyEvidenceRefusal | undefined;
}

/** @returns undefined when it is no status of a signer with custody */
export function readShownEvidence(status: unknown): ShownEvidence | undefined {
  const custody = memberOf(status, 'custody');
  const key = memberOf(custody, 'master_key');
  if (key === undefined) return undefined;
  if (key === null) return { key: undefined, record: '', rows: [] };
  const [links, record] = [memberOf(key, 'links'), memberOf(key, 'record')];
  if (!Array.isArray(links) || typeof record !== 'string') return undefined;
  const rows = ROWS.flatMap(([member, purpose]): ShownRow[] => {
    const row = memberOf(custody, member) ?? null;
    if (row === null) return [];
    const seal = memberOf(row, 'seal');
    const content = typeof seal === 'string' ? sha384Hex(seal) : undefined;
    return [{ purpose, evidence: JSON.stringify({ version: 1, ...picked(row, ROW_MEMBERS) }), content }];
  });
  const shown = links.map((link: unknown) => picked(link, LINK_MEMBERS));
  return { key: JSON.stringify({ version: 1, links: shown }), record, rows };
}

export function isAuthenticFault(fault: KeyEvidenceFault): boolean {
  return ['debug', 'other_record', 'other_ceremony', 'other_image'].includes(fault);
}

/** Everything against its own statements first, so that what is authentic can be shown; then against the terms. */
export function judgeShownEvidence(
  shown: ShownEvidence,
  provider: DocumentProvider,
  terms: OriginTerms | undefined,
): Origin {
  const stated = shown.key === undefined ? undefined : readKeyEvidence(shown.key);
  const [first, last] = [stated?.[0], stated?.at(-1)];
  const own: OriginTerms = {
    deployment: first?.deployment ?? { network: '', id: '' },
    ceremonies: last === undefined ? [] : [last.ceremony],
    accepts: () => true,
  };
  const judgedBy = ({ deployment, ceremonies, accepts }: OriginTerms): Origin => {
    const generation = last?.generation ?? 0;
    const { record } = shown;
    const key = verifyKeyEvidence(shown.key, { provider, deployment, generation, record, ceremonies, accepts });
    if (!key.ok) return { links: [], rows: [], refusal: key };
    const { links } = key;
    const origin = sha384Hex(links[0]?.document ?? '');
    const rows: VerifiedRow[] = [];
    for (const { purpose, evidence, content = readRowEvidence(evidence)?.content ?? '' } of shown.rows) {
      const row = verifyRowEvidence(evidence, { provider, deployment, accepts, purpose, origin, content });
      if (!row.ok) return { links, rows, refusal: refuseKeyEvidence(row.fault, `${purpose}: ${row.detail}`) };
      rows.push(row.row);
    }
    return { links, rows, refusal: undefined };
  };
  const proven = judgedBy(own);
  if (terms === undefined || proven.refusal !== undefined) return proven;
  return { ...proven, refusal: judgedBy(terms).refusal };
}

/** An image is accepted when each of PCR0, 1 and 2 that has reference values has one of them. PCR0 always has. */
export function imagesOf(reference: ReferenceValues): OriginTerms['accepts'] {
  return (pcrs) =>
    reference.has(0) &&
    IMAGE_PCRS.every((index) => reference.get(index)?.includes(pcrs.get(index)?.toString('hex') ?? '') ?? true);
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}

function picked(value: unknown, members: readonly string[]): object {
  return Object.fromEntries(members.map((name) => [name, memberOf(value, name)]));
}
