// The report of a verification for a terminal: the verdict last, where the eye is. Text of the evidence is made fit for
// a terminal.

import { FAILURES } from '../../common/attestation/failure.ts';
import type { Verdict } from '../../common/attestation/verify.ts';
import { type Paint, paintResults } from '../../common/command-line/paint.ts';
import { renderFields, renderTable } from '../../common/command-line/table.ts';
import { bounded } from '../../common/command-line/text.ts';
import { columnsOf } from '../../common/command-line/wrap.ts';
import {
  chainOf,
  coverageOf,
  type Finding,
  type Findings,
  PARENT_WRITES_TABLES,
  parentReadsWords,
  type RegisterReport,
  type ReportContext,
  registersOf,
  rfc3339,
  sha256Of,
  TITLES,
  VERDICTS,
  verdictOf,
  verdictWithin,
} from './report.ts';

export const AGREES = 'says what its evidence and its own terms give';
export const DISAGREES =
  'does NOT say what its evidence and its own terms give: it was altered, or another version made it';
const MAX_MODULE_ID_CHARACTERS = 256;
/** `PCR16  ` and 48 bytes in hex. */
const REGISTER_COLUMNS = 103;
const NAME_COLUMNS = 7;

type Shown = Parameters<typeof columnsOf>[0];

export function tableReport(
  findings: Findings,
  context: ReportContext,
  shown: Shown = {},
  paint: Paint = (text) => text,
): string {
  const head = renderFields(
    [
      ...(context.parentWritesTables === true ? [['UNSAFE', PARENT_WRITES_TABLES] as const] : []),
      ...readByParent(context.parentReads),
      ['evidence', context.subject],
      ...context.evidence.map(
        ({ kind, bytes }) => ['SHA-256', `${sha256Of(bytes)} (${kind.replace('_', ' ')})`] as const,
      ),
      ...(context.pageAgrees === undefined ? [] : [['the page', context.pageAgrees ? AGREES : DISAGREES] as const]),
      ['judged at', rfc3339(context.at)],
      ['root', `${context.provider.name}, SHA-256 ${context.provider.rootSha256}`],
    ],
    columnsOf(shown),
  );
  const reports = findings.map((finding) =>
    paintResults(tableFinding(finding, findings, context, shown), RESULTS, paint),
  );
  return [head, ...reports, tableVerdict(findings, context, shown, paint)].join('\n');
}

const RESULTS = { passed: 'good', FAILED: 'bad' } as const;
const LAST_WORDS = { ...VERDICTS, not_authentic: 'NOT authentic: everything above is unverified' };

function tableVerdict(findings: Findings, context: ReportContext, shown: Shown, paint: Paint): string {
  const verdict = verdictOf(findings, context);
  const { compared = [], notCompared = [] } = coverageOf(findings, context) ?? {};
  const covered: (readonly [string, string])[] = [
    ...(compared.length === 0 ? [] : [['compared', compared.join(', ')] as const]),
    ...(notCompared.length === 0 ? [] : [['NOT compared', notCompared.join('; ')] as const]),
  ];
  const words = renderFields([['verdict', LAST_WORDS[verdict]]], columnsOf(shown));
  const text = covered.length === 0 ? words : `${renderFields(covered, columnsOf(shown))}${words}`;
  return paint(text, verdict === 'expected' ? 'good' : verdict === 'partly_compared' ? 'doubtful' : 'bad');
}

function tableFinding(finding: Finding, findings: Findings, context: ReportContext, shown: Shown): string {
  const { evidence, verdict } = finding;
  const steps = verdict.steps.map(({ name, result, code, detail }) => {
    const words = result === 'failed' ? `FAILED: ${code}` : result.replace('_', ' ');
    return [name, words, detail];
  });
  const isBeforeSteps = !verdict.steps.some(({ result }) => result === 'failed');
  const parts = [
    `${TITLES[evidence]}: ${VERDICTS[verdictWithin(finding, findings, context)]}\n`,
    ...verdict.failures
      .filter(() => isBeforeSteps)
      .map(({ code, detail }) =>
        renderFields([[`${code}:`, `${FAILURES[code].meaning}: ${detail}`]], columnsOf(shown)),
      ),
    renderTable(['STEP', 'RESULT', 'DETAIL'], steps, columnsOf(shown)),
    ...tableDocument(verdict, context, shown),
  ];
  return parts.join('\n');
}

function tableDocument(verdict: Verdict, { referenceValues }: ReportContext, shown: Shown): string[] {
  const { document } = verdict;
  if (document === undefined) return [];
  const registers = registersOf(verdict, referenceValues);
  const hex = (bytes: Buffer | undefined): string => bytes?.toString('hex') ?? 'none';
  return [
    renderTable(
      ['FROM', 'UNTIL', 'SIGNED BY'],
      chainOf(verdict).map(({ name, notBefore, notAfter }) => [rfc3339(notBefore), rfc3339(notAfter), name]),
      columnsOf(shown),
    ),
    renderFields(
      [
        ['module id', bounded(document.moduleId, MAX_MODULE_ID_CHARACTERS)],
        ['made at', rfc3339(document.timestamp)],
        ['user data', hex(document.userData)],
        ['nonce', hex(document.nonce)],
        ['public key', hex(document.publicKey)],
      ],
      columnsOf(shown),
    ),
    renderTable(
      ['REGISTER', 'RESULT', 'HOLDS'],
      registers.map((register) => [`PCR${register.index}`, resultWords(register), contents(register)]),
      columnsOf(shown),
    ),
    registers.map((register) => valueLines(register, shown)).join(''),
  ];
}

/** As ceremony plan, parent-proxy --check and eif describe print a register: to be compared by eye, or by grep. */
function valueLines({ index, value }: RegisterReport, { columns = REGISTER_COLUMNS }: Shown): string {
  if (value === undefined || isZero(value)) return '';
  const name = `PCR${index}`.padEnd(NAME_COLUMNS);
  if (columns >= REGISTER_COLUMNS) return `${name}${value}\n`;
  const half = value.length / 2;
  return `${name}${value.slice(0, half)}\n${' '.repeat(NAME_COLUMNS)}${value.slice(half)}\n`;
}

function resultWords({ result }: RegisterReport): string {
  return result === 'mismatch' ? 'MISMATCH' : result.replace('_', ' ');
}

function contents({ holds, value }: RegisterReport): string {
  if (value === undefined) return `${holds} (not in the document)`.trim();
  return isZero(value) ? `${holds} (zero)`.trim() : holds;
}

function isZero(value: string): boolean {
  return /^0*$/.test(value);
}

export function readByParent(options: readonly string[] = []): readonly (readonly [string, string])[] {
  return options.length === 0 ? [] : [['the parent reads', parentReadsWords(options)]];
}
