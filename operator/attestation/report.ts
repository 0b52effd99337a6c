// What a verification found, for an auditor: every step with its result, who signed, what each register holds and
// whether that was asked for. Here are the words of it, and the report for programs; report-table.ts and page/page.ts
// are for people. The registers of a document that is not authentic are never compared: what it says is a claim.

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

export type Findings = readonly [Finding, ...Finding[]];

export interface ReportContext {
  /** The file or URL. */
  readonly subject: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly provider: DocumentProvider;
  readonly referenceValues: ReferenceValues | undefined;
}

/** `not_evaluated`: the document is not authentic, and a register of it says nothing. */
export type RegisterReport = Omit<RegisterComparison, 'result'> & {
  readonly result: RegisterComparison['result'] | 'not_evaluated';
  /** What a register of this number is of; empty when nothing is said of it. */
  readonly holds: string;
};

export const REGISTERS: Readonly<Record<number, string>> = {
  0: 'the image',
  1: 'kernel and first ramdisk',
  2: 'application',
  3: "the parent's IAM role",
  4: "the parent's instance id",
  8: 'certificate of the image',
  [CONFIGURATION_PCR]: 'configuration',
  [CEREMONY_PCR]: 'ceremony',
};
export const TITLES: Readonly<Record<Finding['evidence'], string>> = {
  document: 'the document',
  certificate: 'the evidence in the TLS certificate',
  fresh_document: 'the fresh document, bound to this connection',
};
export const VERDICTS: Readonly<Record<Fault | 'expected', string>> = {
  expected: 'authentic and expected',
  not_expected: 'authentic, and NOT what was expected',
  no_reference_values: 'authentic; no reference values given',
  not_authentic: 'NOT authentic: everything below is unverified',
};

/**
 * The worst decides: what is not authentic before what is not expected, so that a relayed connection is never called
 * authentic.
 */
export function decisive(findings: Findings): Verdict {
  const verdicts = findings.map(({ verdict }) => verdict);
  return (
    verdicts.find(({ authentic }) => !authentic) ?? verdicts.find(({ expected }) => !expected) ?? findings[0].verdict
  );
}

export function jsonReport(findings: Findings, context: ReportContext): string {
  const verdict = decisive(findings);
  return JSON.stringify(
    {
      verdict: faultOf(verdict),
      authentic: verdict.authentic,
      expected: verdict.expected,
      subject: context.subject,
      at: rfc3339(context.at),
      provider: { name: context.provider.name, root_sha256: context.provider.rootSha256 },
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
            pcrs: registersOf(verdict, referenceValues).map(({ index, holds, value, result, accepted }) => {
              return { pcr: index, holds: holds || null, value: value ?? null, result, accepted };
            }),
          },
    chain: chainOf(verdict).map(({ name, sha256, notBefore, notAfter }) => {
      return { name, sha256, not_before: rfc3339(notBefore), not_after: rfc3339(notAfter) };
    }),
  };
}

/** Every register of the document, and every one that was asked for, ascending. */
export function registersOf(
  { authentic, document }: Verdict,
  referenceValues: ReferenceValues | undefined,
): readonly RegisterReport[] {
  if (document === undefined) return [];
  return compareRegisters(document, referenceValues).map((register) => ({
    ...register,
    result: authentic ? register.result : 'not_evaluated',
    holds: REGISTERS[register.index] ?? '',
  }));
}

/** PCR0 covers the image: what it runs with, its parent may have chosen. A success says when nobody asked. */
export function openQuestion(verdict: Verdict, { referenceValues }: ReportContext): string | undefined {
  if (!verdict.expected) return undefined;
  const open = registersOf(verdict, referenceValues).filter(
    ({ index, result }) => result === 'unchecked' && [CONFIGURATION_PCR, CEREMONY_PCR].includes(index),
  );
  if (open.length === 0) return undefined;
  const names = open.map(({ index, holds }) => `PCR${index} (${holds})`).join(' and ');
  return `${names}: no reference value says what it should be`;
}

export function chainOf(verdict: Verdict): ReturnType<typeof describeChain> {
  if (verdict.authentic) return verdict.chain.certificates;
  return verdict.document === undefined ? [] : describeChain(verdict.document);
}

/** Fail closed: what is no success and names no failure is not authentic. */
export function faultOf({ expected, failures: [failure] }: Verdict): Fault | 'expected' {
  if (expected) return 'expected';
  return failure === undefined ? 'not_authentic' : FAILURES[failure.code].fault;
}

/** Certificates have whole seconds. */
export function rfc3339(time: number): string {
  return new Date(time).toISOString().replace('.000Z', 'Z');
}
