// Where the master key of a ceremony comes from, as a transcript keeps it: the evidence of the enclaves themselves,
// judged by what the transcript says before it (specification/evidence.md#shown). It trusts the root of the given
// provider. It refuses a key of another ceremony or deployment, and one of an image whose PCR values no line before
// records.

import type { DocumentProvider } from '../../common/attestation/contract.ts';
import type { KeyEvidenceRefusal, VerifiedKeyLink } from '../../common/attestation/key-evidence.ts';
import { IMAGE_PCRS } from '../../common/attestation/policy.ts';
import type { VerifiedRow } from '../../common/attestation/row-evidence.ts';
import { judgeShownEvidence } from '../../common/attestation/shown-evidence.ts';
import type { Entry, MasterKeyEntry } from './entries.ts';
import { acceptedCeremonies } from './meaning.ts';

/** What is said of a key: of an entry, before it has its place and after. */
export type Stated = Pick<MasterKeyEntry, 'deployment' | 'record' | 'evidence' | 'root_token'>;

type JudgedOrigin =
  | {
      readonly ok: true;
      readonly links: readonly VerifiedKeyLink[];
      readonly rootToken: VerifiedRow | undefined;
    }
  | KeyEvidenceRefusal;

export type RecordedOrigin = Extract<JudgedOrigin, { ok: true }> & {
  readonly line: number;
  readonly entry: MasterKeyEntry;
};

export function judgeOrigin(before: readonly Entry[], stated: Stated, provider: DocumentProvider): JudgedOrigin {
  const { deployment, record, evidence, root_token: rootToken } = stated;
  const rows =
    rootToken === undefined ? [] : [{ purpose: 'root_token', evidence: rootToken, content: undefined } as const];
  const images = before.flatMap((entry) => (entry.entry === 'pcrs' ? [entry.registers] : []));
  const accepts = (pcrs: ReadonlyMap<number, Buffer>): boolean =>
    images.some((registers) =>
      IMAGE_PCRS.every((index) => {
        const recorded = registers[`PCR${index}`];
        return index !== 0 && recorded === undefined ? true : recorded === pcrs.get(index)?.toString('hex');
      }),
    );
  const [start] = before;
  const ceremonies = start?.entry === 'start' ? acceptedCeremonies(start) : [];
  const judged = judgeShownEvidence({ key: evidence, record, rows }, provider, { deployment, ceremonies, accepts });
  if (judged.refusal !== undefined) return judged.refusal;
  return { ok: true, links: judged.links, rootToken: judged.rows[0] };
}

export function originsIn(
  entries: readonly Entry[],
  provider: DocumentProvider,
): readonly RecordedOrigin[] | (KeyEvidenceRefusal & { readonly line: number }) {
  const origins: RecordedOrigin[] = [];
  for (const [at, entry] of entries.entries()) {
    if (entry.entry !== 'master_key') continue;
    const judged = judgeOrigin(entries.slice(0, at), entry, provider);
    if (!judged.ok) return { ...judged, line: entry.number };
    origins.push({ ...judged, line: entry.number, entry });
  }
  return origins;
}
