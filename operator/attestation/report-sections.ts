// The report of a verification as sections, which a terminal and a page (report-page.ts) show alike; on a terminal the
// verdict is last, where the eye is. Text of the evidence is made fit for a terminal.

import { type EvidenceFailure, FAILURES } from '../../common/attestation/failure.ts';
import { type Paint, paintResults } from '../../common/command-line/paint.ts';
import type { Fields, PageSection, Value } from '../../common/command-line/report-page.ts';
import { renderFields, renderTable } from '../../common/command-line/table.ts';
import { bounded } from '../../common/command-line/text.ts';
import { columnsOf } from '../../common/command-line/wrap.ts';
import {
  chainOf,
  coverageOf,
  type Finding,
  type Findings,
  PARENT_WRITES_TABLES,
  type RegisterReport,
  type ReportContext,
  registersOf,
  rfc3339,
  TITLES,
  VERDICTS,
  verdictOf,
  verdictWithin,
} from './report.ts';

export const DISAGREES =
  'does NOT say what its evidence and its own terms give: it was altered, or another version made it';
const AGREES = 'says what its evidence and its own terms give';
const MAX_MODULE_ID_CHARACTERS = 256;
/** `PCR16  ` and 48 bytes in hex. */
const REGISTER_COLUMNS = 103;
const NAME_COLUMNS = 7;
/** Of a table; the page has all. */
const TERMINAL_COLUMNS = 3;

type Shown = Parameters<typeof columnsOf>[0];

/** The table without its last columns, on which nothing depends: values of registers follow by themselves. */
export function sectionText({ title, fields = [], table }: PageSection, columns: number): string {
  const rows = (table?.rows ?? []).map((row) => row.slice(0, TERMINAL_COLUMNS).map(textOf));
  return [
    `${title}\n`,
    fieldsText(fields, columns),
    table === undefined ? '' : renderTable(table.head.slice(0, TERMINAL_COLUMNS), rows, columns),
  ].join('');
}

export function fieldsText(fields: Fields, columns: number): string {
  return renderFields(
    fields.map(([name, value]) => [name, textOf(value)]),
    columns,
  );
}

function textOf(value: Value): string {
  if (typeof value !== 'object') return String(value ?? '');
  if ('exact' in value) return value.exact;
  return 'tone' in value ? value.text : value.map(textOf).join(' ');
}

/** What has to be known before anything else of the report. */
export function reportWarnings({
  parentWritesTables = false,
  parentReads = [],
}: Pick<ReportContext, 'parentWritesTables' | 'parentReads'>): Fields {
  return [
    ...(parentWritesTables ? [['UNSAFE', PARENT_WRITES_TABLES] as const] : []),
    ...(parentReads.length > 0
      ? [
          [
            'the parent reads',
            `${parentReads.join(', ')} of the configuration: it can do whatever these let their holders do`,
          ] as const,
        ]
      : []),
  ];
}

export function pageFields(agrees: boolean | undefined): Fields {
  return agrees === undefined ? [] : [['the page', agrees ? AGREES : DISAGREES]];
}

export function reportHead(context: ReportContext): Fields {
  return [
    ['evidence', context.subject],
    ...context.evidence.map(({ kind, sha256 }) => ['SHA-256', `${sha256} (${kind.replace('_', ' ')})`] as const),
    ...pageFields(context.pageAgrees),
    ['judged at', rfc3339(context.at)],
    ['root', `${context.provider.name}, SHA-256 ${context.provider.rootSha256}`],
  ];
}

/** Of what is no success, nothing. */
export function coverFields(findings: Findings, context: ReportContext): Fields {
  const { compared = [], notCompared = [] } = coverageOf(findings, context) ?? {};
  return [
    ...(compared.length === 0 ? [] : [['compared', compared.join(', ')] as const]),
    ...(notCompared.length === 0 ? [] : [['NOT compared', notCompared.join('; ')] as const]),
  ];
}

export function failureField({ code, detail }: EvidenceFailure): readonly [string, string] {
  return [code, `${FAILURES[code].meaning}: ${detail}`];
}

const RESULTS = { passed: 'good', FAILED: 'bad' } as const;
const LAST_WORDS = { ...VERDICTS, not_authentic: 'NOT authentic: everything above is unverified' };

export function tableReport(
  findings: Findings,
  context: ReportContext,
  shown: Shown = {},
  paint: Paint = (text) => text,
): string {
  const columns = columnsOf(shown);
  const verdict = verdictOf(findings, context);
  const last = fieldsText([...coverFields(findings, context), ['verdict', LAST_WORDS[verdict]]], columns);
  const reports = findings.flatMap((finding) => [
    ...sectionsOf(finding, findings, context).map((section) =>
      paintResults(sectionText(section, columns), RESULTS, paint),
    ),
    registersOf(finding.verdict, context.referenceValues)
      .map((register) => valueLines(register, shown))
      .join(''),
  ]);
  return [
    fieldsText([...reportWarnings(context), ...reportHead(context)], columns),
    ...reports.filter((text) => text !== ''),
    paint(last, verdict === 'expected' ? 'good' : verdict === 'partly_compared' ? 'doubtful' : 'bad'),
  ].join('\n');
}

export function sectionsOf(finding: Finding, findings: Findings, context: ReportContext): PageSection[] {
  const { evidence, verdict } = finding;
  const { document } = verdict;
  const steps = verdict.steps.map(({ name, result, code, detail }) => [name, resultOf(result, code), detail]);
  const isBeforeSteps = !verdict.steps.some(({ result }) => result === 'failed');
  const first: PageSection = {
    title: `${TITLES[evidence]}: ${VERDICTS[verdictWithin(finding, findings, context)]}`,
    fields: isBeforeSteps ? verdict.failures.map(failureField) : [],
    table: { head: ['STEP', 'RESULT', 'DETAIL'], rows: steps },
  };
  if (document === undefined) return [first];
  const says = verdict.authentic ? 'what the document says' : 'what the document claims';
  const registers = registersOf(verdict, context.referenceValues);
  return [
    first,
    {
      title: 'its chain',
      table: {
        head: ['FROM', 'UNTIL', 'SIGNED BY', 'SHA-256', 'AT THE JUDGED TIME'],
        rows: chainOf(verdict).map(({ name, sha256, notBefore, notAfter }) => {
          const window = windowOf(context.at, notBefore, notAfter);
          return [rfc3339(notBefore), rfc3339(notAfter), name, { exact: sha256 }, window];
        }),
      },
    },
    {
      title: says,
      fields: [
        ['module id', bounded(document.moduleId, MAX_MODULE_ID_CHARACTERS)],
        ['made at', rfc3339(document.timestamp)],
        ['user data', exact(document.userData) ?? 'none'],
        ['nonce', exact(document.nonce) ?? 'none'],
        ['public key', exact(document.publicKey) ?? 'none'],
      ],
    },
    {
      title: 'its registers',
      table: {
        head: ['REGISTER', 'RESULT', 'HOLDS', 'OF THE DOCUMENT', 'REFERENCE VALUE'],
        rows: registers.map((register) => {
          const { index, result, value, accepted } = register;
          const isQuiet = accepted.length === 0 && value !== undefined && isZero(value);
          const values = [exact(value), accepted.length === 0 ? 'none given' : accepted.map(exact)];
          return [`PCR${index}`, resultOf(result), contents(register), ...(isQuiet ? ['', ''] : values)];
        }),
      },
    },
  ];
}

function windowOf(at: number, notBefore: number, notAfter: number): Value {
  if (at > notAfter) return { tone: 'bad', text: 'ended before' };
  return at < notBefore ? { tone: 'bad', text: 'begins later' } : { tone: 'good', text: 'valid' };
}

export function exact(value: Buffer | string | undefined): Value {
  return value === undefined ? undefined : { exact: typeof value === 'string' ? value : value.toString('hex') };
}

/** As ceremony plan, parent-proxy --check and eif describe print a register: to be compared by eye, or by grep. */
function valueLines({ index, value }: RegisterReport, { columns = REGISTER_COLUMNS }: Shown): string {
  if (value === undefined || isZero(value)) return '';
  const name = `PCR${index}`.padEnd(NAME_COLUMNS);
  if (columns >= REGISTER_COLUMNS) return `${name}${value}\n`;
  const half = value.length / 2;
  return `${name}${value.slice(0, half)}\n${' '.repeat(NAME_COLUMNS)}${value.slice(half)}\n`;
}

function resultOf(result: string, code = ''): Value {
  if (result === 'failed') return { tone: 'bad', text: `FAILED: ${code}` };
  if (result === 'mismatch') return { tone: 'bad', text: 'MISMATCH' };
  const isGood = result === 'passed' || result === 'match';
  return { tone: isGood ? 'good' : 'doubtful', text: result.replace('_', ' ') };
}

function contents({ holds, value }: RegisterReport): string {
  if (value === undefined) return `${holds} (not in the document)`.trim();
  return isZero(value) ? `${holds} (zero)`.trim() : holds;
}

function isZero(value: string): boolean {
  return /^0*$/.test(value);
}
