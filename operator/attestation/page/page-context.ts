// What a page is told beside the findings.

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
