// What a verification found of a master key's evidence, for an auditor: who made the key, when, by which measurements,
// in which generation, and who wrapped it since. Here are the verdict, the lines for a terminal and the report for
// programs; report-page.ts is for paper. A link is shown only when its document is authentic.

import type { DocumentProvider } from '../../common/attestation/contract.ts';
import type { Fault } from '../../common/attestation/failure.ts';
import type { VerifiedKeyLink } from '../../common/attestation/key-evidence.ts';
import { deploymentWords, keySections } from '../../common/attestation/key-sections.ts';
import type { ReferenceValues } from '../../common/attestation/policy.ts';
import type { VerifiedRow } from '../../common/attestation/row-evidence.ts';
import { imagesOf, isAuthenticFault, type Origin, type OriginTerms } from '../../common/attestation/shown-evidence.ts';
import type { Paint } from '../../common/command-line/paint.ts';
import type { Fields } from '../../common/command-line/report-page.ts';
import { columnsOf } from '../../common/command-line/wrap.ts';
import { CommandFailure } from '../exit.ts';
import { EXIT_OF_VERDICT } from './attestation-failure.ts';
import { rfc3339 } from './report.ts';
import { fieldsText, pageFields, reportWarnings, sectionText } from './report-sections.ts';

export interface KeyFinding {
  readonly origin: Origin;
  /** Undefined: nothing says which key is the right one. */
  readonly terms: OriginTerms | undefined;
  /** The status says that the parent writes the tables; or the configuration that was given does. */
  readonly parentWritesTables: boolean;
  readonly parentReads: readonly string[] | undefined;
}

interface KeyReportContext {
  readonly subject: string;
  readonly provider: DocumentProvider;
  /** Of a page that was judged again: whether it says what its own evidence and terms give. */
  readonly pageAgrees?: boolean | undefined;
}

/** Which key is the right one, as it can be written down. */
export type KeyTerms = Pick<OriginTerms, 'deployment' | 'ceremonies'> & { readonly images: ReferenceValues };

export function originTerms(terms: KeyTerms | undefined): OriginTerms | undefined {
  return terms === undefined ? undefined : { ...terms, accepts: imagesOf(terms.images) };
}

type KeyVerdict = Fault | 'expected';

export const KEY_VERDICTS: Readonly<Record<KeyVerdict, string>> = {
  expected: 'an accepted image made this master key, and accepted images alone have wrapped it',
  not_expected: 'authentic, and NOT what was expected',
  no_reference_values:
    'authentic; nothing says which key is the right one (--pcrs, --ceremony, --deployment, --network)',
  not_authentic: 'NOT authentic: nothing proves where this master key comes from',
};

export function keyVerdict({ origin: { refusal }, terms }: KeyFinding): KeyVerdict {
  if (refusal !== undefined) return isAuthenticFault(refusal.fault) ? 'not_expected' : 'not_authentic';
  return terms === undefined ? 'no_reference_values' : 'expected';
}

/** @throws CommandFailure for every verdict but `expected` */
export function demandExpected(finding: KeyFinding, subject: string): void {
  const verdict = keyVerdict(finding);
  if (verdict === 'expected') return;
  const { refusal } = finding.origin;
  const detail = refusal === undefined ? '' : `\n  ${refusal.fault}: ${refusal.detail}`;
  throw new CommandFailure(EXIT_OF_VERDICT[verdict], `the master key of ${subject}: ${KEY_VERDICTS[verdict]}${detail}`);
}

type Shown = Parameters<typeof columnsOf>[0];

/** Of the page, too. */
export function keyHead({ origin }: KeyFinding, { subject, provider, pageAgrees }: KeyReportContext): Fields {
  const [first] = origin.links;
  return [
    ['evidence', subject],
    ...pageFields(pageAgrees),
    ['judged at', 'the time of each document'],
    ['root', `${provider.name}, SHA-256 ${provider.rootSha256}`],
    ...(first === undefined ? [] : [['deployment', deploymentWords(first)] as const]),
  ];
}

export function keyTable(finding: KeyFinding, context: KeyReportContext, shown: Shown, paint: Paint): string {
  const { refusal } = finding.origin;
  const columns = columnsOf(shown);
  const verdict = keyVerdict(finding);
  const last = [
    ...(refusal === undefined ? [] : [[refusal.fault, refusal.detail] as const]),
    ['verdict', KEY_VERDICTS[verdict]] as const,
  ];
  return [
    fieldsText([...reportWarnings(finding), ...keyHead(finding, context)], columns),
    ...keySections(finding.origin).map((section) => sectionText(section, columns)),
    paint(fieldsText(last, columns), verdict === 'expected' ? 'good' : 'bad'),
  ].join('\n');
}

export function keyJson(finding: KeyFinding, { subject, provider, pageAgrees }: KeyReportContext): string {
  const verdict = keyVerdict(finding);
  const { links, rows, refusal } = finding.origin;
  const stated = (of: VerifiedKeyLink | VerifiedRow) => {
    const { purpose, deployment, generation, ceremony, madeAt, moduleId, pcrs } = of;
    const own =
      'counter' in of
        ? { counter: of.counter, record: of.record, origin: of.origin, previous: of.previous }
        : { content: of.content, origin: of.origin };
    return {
      ...{ purpose, deployment, generation, ceremony, ...own, made_at: rfc3339(madeAt), module_id: moduleId },
      pcrs: Object.fromEntries([...pcrs].map(([index, value]) => [index, value.toString('hex')])),
    };
  };
  return JSON.stringify(
    {
      verdict,
      authentic: verdict !== 'not_authentic',
      expected: verdict === 'expected',
      subject,
      provider: { name: provider.name, root_sha256: provider.rootSha256 },
      parent_writes_tables: finding.parentWritesTables,
      parent_reads: finding.parentReads ?? null,
      page_agrees: pageAgrees ?? null,
      failure: refusal === undefined ? null : { code: refusal.fault, detail: refusal.detail },
      master_key: links.map(stated),
      rows: rows.map(stated),
    },
    null,
    2,
  );
}
