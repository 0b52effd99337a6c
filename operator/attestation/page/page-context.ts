// What a page is told beside the findings.

import type { KeyReportContext, KeyTerms } from '../key-report.ts';
import type { ReferenceRecord } from '../reference-record.ts';
import type { ReportContext } from '../report.ts';

export interface PageContext extends ReportContext {
  readonly madeAt: number;
  readonly maxAgeSeconds: number;
  readonly nonce: Buffer | undefined;
  readonly anyConfiguration: boolean;
  /** Where the reference values came from, as it was written, and what else is said there. */
  readonly pcrsFile: string | undefined;
  readonly record: ReferenceRecord | undefined;
}

export interface KeyPageContext extends KeyReportContext {
  /** Milliseconds since the epoch. */
  readonly madeAt: number;
  /** What it was judged by, as it was written on the command line. */
  readonly given: readonly (readonly [string, string])[];
  /** The same as values; undefined: nothing says which key is the right one. */
  readonly terms: KeyTerms | undefined;
  /** What was judged, as the signer showed it. */
  readonly status: Buffer;
}
