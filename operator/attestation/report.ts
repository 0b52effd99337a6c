// What a verification found, for an auditor, and the report for programs; report-sections.ts and report-page.ts are
// for people. The registers of a document that is not authentic are never compared: what it says is a claim.

import { createHash } from 'node:crypto';
import { type ChainCertificate, readLinks } from '../../common/attestation/chain.ts';
import { CEREMONY_PCR, CONFIGURATION_PCR, type DocumentProvider } from '../../common/attestation/contract.ts';
import type { AttestationDocument } from '../../common/attestation/document.ts';
import { EvidenceError, FAILURES, type Fault } from '../../common/attestation/failure.ts';
import { compareRegisters, type ReferenceValues, type RegisterComparison } from '../../common/attestation/policy.ts';
import type { EvidenceVerdict, StepName } from '../../common/attestation/verify.ts';

export interface Finding {
  readonly evidence: 'document' | 'certificate' | 'fresh_document';
  readonly verdict: EvidenceVerdict;
}

export type Findings = readonly [Finding, ...Finding[]];

export interface ReportContext {
  readonly subject: string;
  readonly at: number;
  readonly provider: DocumentProvider;
  readonly referenceValues?: ReferenceValues | undefined;
  readonly parentWritesTables?: boolean | undefined;
  readonly parentReads?: readonly string[] | undefined;
  readonly evidence: readonly JudgedEvidence[];
  readonly referenceSha256?: string | undefined;
  /** Of a report's page that was judged again: whether it says what its own evidence and terms give. */
  readonly pageAgrees?: boolean | undefined;
}

export interface JudgedEvidence {
  readonly kind: Finding['evidence'];
  readonly bytes: Buffer;
  /** Of the bytes. */
  readonly sha256: string;
  /** When it was judged, and whether that was the present. */
  readonly at: number;
  readonly live: boolean;
  readonly nonce?: Buffer | undefined;
}

export const PARENT_WRITES_TABLES =
  'the configuration says unsafe_parent_writes_tables: whoever controls the parent instance writes the tables that this ' +
  'enclave believes. An authentic enclave protects neither its seal nor its slashing records against them';

/** `not_evaluated`: the document is not authentic, and a register of it says nothing. */
export type RegisterReport = Omit<RegisterComparison, 'result'> & {
  readonly result: RegisterComparison['result'] | 'not_evaluated';
  /** What a register of this number is of; empty when nothing is said of it. */
  readonly holds: string;
};

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
export const TITLES: Readonly<Record<Finding['evidence'], string>> = {
  document: 'the document',
  certificate: 'the evidence in the TLS certificate',
  fresh_document: 'the fresh document, bound to this connection',
};

/** Of everything that was judged: what was not compared in everything is never called expected. */
export type VerdictName = Fault | 'expected' | 'partly_compared';

export const VERDICTS: Readonly<Record<VerdictName, string>> = {
  expected: 'authentic and expected',
  partly_compared: 'authentic, and expected only in what was compared',
  not_expected: 'authentic, and NOT what was expected',
  no_reference_values: 'authentic; no reference values given',
  not_authentic: 'NOT authentic: everything below is unverified',
};

/** What is not authentic comes before what is not expected, so that a relayed connection is never called authentic. */
export function decisive(findings: Findings): EvidenceVerdict {
  const verdicts = findings.map(({ verdict }) => verdict);
  return (
    verdicts.find(({ authentic }) => !authentic) ?? verdicts.find(({ expected }) => !expected) ?? findings[0].verdict
  );
}

export function jsonReport(findings: Findings, context: ReportContext): string {
  const name = verdictOf(findings, context);
  const coverage = coverageOf(findings, context);
  return JSON.stringify(
    {
      verdict: name,
      authentic: decisive(findings).authentic,
      expected: name === 'expected',
      subject: context.subject,
      at: rfc3339(context.at),
      provider: { name: context.provider.name, root_sha256: context.provider.rootSha256 },
      parent_writes_tables: context.parentWritesTables ?? null,
      parent_reads: context.parentReads ?? null,
      compared: coverage?.compared ?? null,
      not_compared: coverage?.notCompared ?? null,
      evidence_sha256: context.evidence.map(({ sha256 }) => sha256),
      reference_file_sha256: context.referenceSha256 ?? null,
      page_agrees: context.pageAgrees ?? null,
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

export function registersOf(
  { authentic, document }: EvidenceVerdict,
  referenceValues: ReferenceValues | undefined,
): readonly RegisterReport[] {
  if (document === undefined) return [];
  return compareRegisters(document, referenceValues).map((register) => ({
    ...register,
    result: authentic ? register.result : 'not_evaluated',
    holds: REGISTERS[register.index] ?? '',
  }));
}

interface Coverage {
  readonly compared: readonly string[];
  readonly notCompared: readonly string[];
}

/**
 * What a success was compared in, and in what not: PCR0 covers the image, but its parent may have chosen what it runs
 * with, and a bare document says nothing of who answers. @returns undefined when it is no success
 */
export function coverageOf(findings: Findings, { referenceValues }: ReportContext): Coverage | undefined {
  const verdict = decisive(findings);
  if (!verdict.expected) return undefined;
  const registers = registersOf(verdict, referenceValues);
  const compared = registers.filter(({ result }) => result === 'match').map(({ index, holds }) => named(index, holds));
  const notCompared = [CONFIGURATION_PCR, CEREMONY_PCR]
    .filter((index) => registers.every((register) => register.index !== index || register.result !== 'match'))
    .map((index) => {
      const isThere = registers.some((register) => register.index === index && register.value !== undefined);
      const why = isThere ? 'no reference value says what it should be' : 'the document does not have it';
      return `${named(index, REGISTERS[index] ?? '')}: ${why}`;
    });
  const isBound = findings.some((finding) => isPassed(finding, 'binding'));
  return {
    compared: [...compared, ...(isBound ? ['the TLS key'] : [])],
    notCompared: [...notCompared, ...(isBound ? [] : ['the TLS key: a bare document names the key of no connection'])],
  };
}

export function verdictOf(findings: Findings, context: ReportContext): VerdictName {
  const { notCompared = [] } = coverageOf(findings, context) ?? {};
  return notCompared.length > 0 ? 'partly_compared' : faultOf(decisive(findings));
}

/** Of one of several pieces of evidence: it is not called expected where all of them together are not. */
export function verdictWithin({ verdict }: Finding, findings: Findings, context: ReportContext): VerdictName {
  const own = faultOf(verdict);
  return own === 'expected' && verdictOf(findings, context) === 'partly_compared' ? 'partly_compared' : own;
}

function named(index: number, holds: string): string {
  return holds === '' ? `PCR${index}` : `PCR${index} (${holds})`;
}

function isPassed({ verdict }: Finding, step: StepName): boolean {
  return verdict.steps.some(({ name, result }) => name === step && result === 'passed');
}

export function chainOf(verdict: EvidenceVerdict): readonly ChainCertificate[] {
  if (verdict.authentic) return verdict.chain.certificates;
  return verdict.document === undefined ? [] : describeChain(verdict.document);
}

/** What the document says about its chain; empty when it cannot be read. */
export function describeChain(document: AttestationDocument): readonly ChainCertificate[] {
  try {
    return readLinks(document);
  } catch (error) {
    if (error instanceof EvidenceError) return [];
    throw error;
  }
}

/** Fail closed: what is no success and names no failure is not authentic. */
export function faultOf({ expected, failures: [failure] }: EvidenceVerdict): Fault | 'expected' {
  if (expected) return 'expected';
  return failure === undefined ? 'not_authentic' : FAILURES[failure.code].fault;
}

export function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Certificates have whole seconds. */
export function rfc3339(time: number): string {
  return new Date(time).toISOString().replace('.000Z', 'Z');
}
