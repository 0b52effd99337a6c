// What a verification found, for an auditor: every step with its result, who signed, what each register holds and
// whether that was asked for. As JSON for programs, as tables for people. Text of the evidence is made fit for a
// terminal; what is not authentic is called a claim.

import { renderFields, renderTable } from '../../command-line/table.ts';
import { bounded } from '../../command-line/text.ts';
import { CEREMONY_PCR, CONFIGURATION_PCR } from '../../enclave/api/attestation.ts';
import { describeChain } from './chain.ts';
import { FAILURES, type Fault } from './failure.ts';
import { compareRegisters, type ReferenceValues, type RegisterComparison } from './policy.ts';
import type { DocumentProvider } from './provider.ts';
import type { Verdict } from './verify.ts';

export interface Finding {
  /** What was verified: `document`, `certificate`, `fresh_document`. */
  readonly evidence: 'document' | 'certificate' | 'fresh_document';
  readonly verdict: Verdict;
}

export interface ReportContext {
  /** The file or URL. */
  readonly subject: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly provider: DocumentProvider;
  readonly referenceValues: ReferenceValues | undefined;
}

const REGISTERS: Readonly<Record<number, string>> = {
  0: 'the image',
  1: 'kernel and first ramdisk',
  2: 'application',
  3: "the parent's IAM role",
  4: "the parent's instance id",
  8: 'certificate of the image',
  [CONFIGURATION_PCR]: 'configuration',
  [CEREMONY_PCR]: 'ceremony',
};
const TITLES: Readonly<Record<Finding['evidence'], string>> = {
  document: 'the document',
  certificate: 'the evidence in the TLS certificate',
  fresh_document: 'the fresh document, bound to this connection',
};
const WORDS: Readonly<Record<Fault | 'expected', string>> = {
  expected: 'authentic and expected',
  not_expected: 'authentic, and NOT what was expected',
  no_reference_values: 'authentic; no reference values given',
  not_authentic: 'NOT authentic: everything below is unverified',
};
const MAX_MODULE_ID_CHARACTERS = 256;

/**
 * The worst decides: what is not authentic before what is not expected, so that a relayed connection is never called
 * authentic.
 */
export function decisive(findings: readonly [Finding, ...Finding[]]): Verdict {
  const verdicts = findings.map(({ verdict }) => verdict);
  return (
    verdicts.find(({ authentic }) => !authentic) ?? verdicts.find(({ expected }) => !expected) ?? findings[0].verdict
  );
}

export function jsonReport(findings: readonly [Finding, ...Finding[]], context: ReportContext): string {
  const verdict = decisive(findings);
  return JSON.stringify(
    {
      subject: context.subject,
      at: rfc3339(context.at),
      provider: { name: context.provider.name, root_sha256: context.provider.rootSha256 },
      verdict: faultOf(verdict),
      authentic: verdict.authentic,
      expected: verdict.expected,
      findings: findings.map((finding) => jsonFinding(finding, context)),
    },
    null,
    2,
  );
}

function jsonFinding({ evidence, verdict }: Finding, { referenceValues }: ReportContext): object {
  const { document } = verdict;
  const hex = (bytes: Buffer | undefined): string | null => bytes?.toString('hex') ?? null;
  return {
    evidence,
    verdict: faultOf(verdict),
    steps: verdict.steps,
    failures: verdict.failures,
    document:
      document === undefined
        ? null
        : {
            module_id: document.moduleId,
            timestamp: rfc3339(document.timestamp),
            user_data: hex(document.userData),
            nonce: hex(document.nonce),
            public_key: hex(document.publicKey),
            pcrs: compareRegisters(document, referenceValues).map(({ index, value, result, accepted }) => {
              return { pcr: index, holds: REGISTERS[index] ?? null, value: value ?? null, result, accepted };
            }),
          },
    chain: chainOf(verdict).map(({ name, sha256, notBefore, notAfter }) => {
      return { name, sha256, not_before: rfc3339(notBefore), not_after: rfc3339(notAfter) };
    }),
  };
}

export function tableReport(findings: readonly [Finding, ...Finding[]], context: ReportContext): string {
  const head = renderFields([
    ['evidence', context.subject],
    ['judged at', rfc3339(context.at)],
    ['root', `${context.provider.name}, SHA-256 ${context.provider.rootSha256}`],
    ['verdict', WORDS[faultOf(decisive(findings))]],
    ...openQuestions(decisive(findings), context),
  ]);
  return [head, ...findings.map((finding) => tableFinding(finding, context))].join('\n');
}

/** PCR0 covers the image: what it runs with, its parent may have chosen. A success says when nobody asked. */
function openQuestions({ expected, document }: Verdict, { referenceValues }: ReportContext): [string, string][] {
  if (!expected || document === undefined) return [];
  const open = compareRegisters(document, referenceValues).filter(
    ({ index, result }) => result === 'unchecked' && [CONFIGURATION_PCR, CEREMONY_PCR].includes(index),
  );
  if (open.length === 0) return [];
  const names = open.map(({ index }) => `PCR${index} (${REGISTERS[index]})`).join(' and ');
  return [['NOT asked', `${names}: no reference value says what it should be`]];
}

function tableFinding({ evidence, verdict }: Finding, { referenceValues }: ReportContext): string {
  const steps = verdict.steps.map(({ name, result, code, detail }) => {
    const shown = result === 'failed' ? `FAILED: ${code}` : result.replace('_', ' ');
    return [name, shown, detail];
  });
  const { failures } = verdict;
  const beforeAny = steps.some(([, result]) => result?.startsWith('FAILED')) ? [] : failures;
  const parts = [
    `${TITLES[evidence]}: ${WORDS[faultOf(verdict)]}\n`,
    ...beforeAny.map(({ code, detail }) => `${code}: ${FAILURES[code].meaning}: ${detail}\n`),
    renderTable(['STEP', 'RESULT', 'DETAIL'], steps),
    ...tableDocument(verdict, referenceValues),
  ];
  return parts.join('\n');
}

function tableDocument(verdict: Verdict, referenceValues: ReferenceValues | undefined): string[] {
  const { document } = verdict;
  if (document === undefined) return [];
  const registers = compareRegisters(document, referenceValues);
  const hex = (bytes: Buffer | undefined): string => bytes?.toString('hex') ?? 'none';
  return [
    renderTable(
      ['SIGNED BY', 'FROM', 'UNTIL'],
      chainOf(verdict).map(({ name, notBefore, notAfter }) => [name, rfc3339(notBefore), rfc3339(notAfter)]),
    ),
    renderFields([
      ['module id', bounded(document.moduleId, MAX_MODULE_ID_CHARACTERS)],
      ['made at', rfc3339(document.timestamp)],
      ['user data', hex(document.userData)],
      ['nonce', hex(document.nonce)],
      ['public key', hex(document.publicKey)],
    ]),
    renderTable(
      ['REGISTER', 'RESULT', 'HOLDS'],
      registers.map(({ index, result, value }) => [`PCR${index}`, shownResult(result), holds(index, value)]),
    ),
    // Without headings beside them: a register's value fills the line.
    renderFields(registers.flatMap(({ index, value }) => (isZero(value) ? [] : [[String(index), value ?? '']]))),
  ];
}

function shownResult(result: RegisterComparison['result']): string {
  return result === 'mismatch' ? 'MISMATCH' : result;
}

function holds(index: number, value: string | undefined): string {
  const what = REGISTERS[index] ?? '';
  if (value === undefined) return `${what} (not in the document)`.trim();
  return isZero(value) ? `${what} (zero)`.trim() : what;
}

function isZero(value: string | undefined): boolean {
  return value === undefined || /^0*$/.test(value);
}

function chainOf(verdict: Verdict): ReturnType<typeof describeChain> {
  if (verdict.authentic) return verdict.chain.certificates;
  return verdict.document === undefined ? [] : describeChain(verdict.document);
}

/** Fail closed: what is no success and names no failure is not authentic. */
function faultOf({ expected, failures: [failure] }: Verdict): Fault | 'expected' {
  if (expected) return 'expected';
  return failure === undefined ? 'not_authentic' : FAILURES[failure.code].fault;
}

/** Certificates have whole seconds. */
function rfc3339(time: number): string {
  return new Date(time).toISOString().replace('.000Z', 'Z');
}
