// Verification of a Nitro attestation document: an ordered list of named steps, of which the first that fails ends it
// (specification/evidence.md#checks). Without reference values there is no success.

import { type Chain, checkChain } from './chain.ts';
import type { DocumentProvider } from './contract.ts';
import { type AttestationDocument, checkDocumentSignature, readCoseSign1, readPayload } from './document.ts';
import { demand, EvidenceError, type EvidenceFailure, FAILURES, type FailureCode } from './failure.ts';
import { IMAGE_PCRS, policyFailures, type ReferenceValues } from './policy.ts';

/** Between the clocks of the enclave and of the verifier. */
export const CLOCK_SKEW_SECONDS = 300;

export interface VerifyOptions {
  readonly provider: DocumentProvider;
  readonly at: number;
  /** `at` is now, by a clock that may be behind: certificates may begin later by the skew. */
  readonly live?: boolean | undefined;
  readonly maxAgeSeconds: number;
  readonly nonce?: Uint8Array | undefined;
  readonly expectedUserData?: Uint8Array | undefined;
  readonly referenceValues?: ReferenceValues | undefined;
}

export const STEP_NAMES = ['cose', 'payload', 'chain', 'signature', 'freshness', 'binding', 'debug', 'policy'] as const;
export type StepName = (typeof STEP_NAMES)[number];

export interface VerificationStep {
  readonly name: StepName;
  /** `not_asked`: nothing was given to compare with. `not_reached`: an earlier step failed. */
  readonly result: 'passed' | 'failed' | 'not_asked' | 'not_reached';
  readonly code?: FailureCode;
  readonly detail: string;
}

interface Report {
  readonly steps: readonly VerificationStep[];
  readonly failures: readonly EvidenceFailure[];
}

interface AuthenticVerdict extends Report {
  readonly authentic: true;
  readonly expected: boolean;
  readonly document: AttestationDocument;
  readonly chain: Chain;
}

export interface RefusedVerdict extends Report {
  readonly authentic: false;
  readonly expected: false;
  readonly document: AttestationDocument | undefined;
  readonly chain: undefined;
}

export type EvidenceVerdict = AuthenticVerdict | RefusedVerdict;

export function toleranceMs({ live = false }: Pick<VerifyOptions, 'live'>): number {
  return live ? CLOCK_SKEW_SECONDS * 1000 : 0;
}

export function verifyDocument(bytes: Uint8Array, options: VerifyOptions): EvidenceVerdict {
  const log = createStepLog();
  let document: AttestationDocument | undefined;
  let authentic: Pick<AuthenticVerdict, 'document' | 'chain'> | undefined;
  try {
    const sign1 = log.run('cose', () => [readCoseSign1(bytes), 'COSE_Sign1, ES384']);
    const read = log.run('payload', () => [readPayload(sign1.payload), 'every field in its limits']);
    document = read;
    const chain = log.run('chain', () => {
      const checked = checkChain(read, options.provider, { at: options.at, toleranceMs: toleranceMs(options) });
      return [checked, `${checked.certificates.length} certificates up to the root of ${options.provider.name}`];
    });
    log.run('signature', () => [checkDocumentSignature(sign1, chain.leafKey), 'made with the key of the leaf']);
    log.run('freshness', () => [undefined, checkFreshness(read, options)]);
    const { expectedUserData } = options;
    if (expectedUserData === undefined) log.skip('binding', 'no TLS key to compare with');
    else log.run('binding', () => [checkBinding(read, expectedUserData), 'user_data is of the TLS key']);
    authentic = { document: read, chain };
    log.run('debug', () => [checkDebug(read), 'PCR0, PCR1 and PCR2 are measured']);
    log.run('policy', () => [undefined, checkPolicy(read, options.referenceValues)]);
    return { authentic: true, expected: true, ...authentic, steps: log.steps(), failures: [] };
  } catch (error) {
    if (!(error instanceof EvidenceError)) throw error;
    const report = { expected: false, steps: log.steps(), failures: error.failures } as const;
    if (authentic !== undefined) return { authentic: true, ...authentic, ...report };
    return { authentic: false, document, chain: undefined, ...report };
  }
}

interface StepLog {
  /** @throws EvidenceError what the step throws, noted as its failure */
  run<T>(name: StepName, check: () => readonly [T, string]): T;
  skip(name: StepName, detail: string): void;
  steps(): readonly VerificationStep[];
}

function createStepLog(): StepLog {
  const done: VerificationStep[] = [];
  return {
    run(name, check) {
      try {
        const [value, detail] = check();
        done.push({ name, result: 'passed', detail });
        return value;
      } catch (error) {
        if (!(error instanceof EvidenceError)) throw error;
        const [{ code }] = error.failures;
        const detail = `${FAILURES[code].meaning}: ${error.failures.map((failure) => failure.detail).join('; ')}`;
        done.push({ name, result: 'failed', code, detail });
        throw error;
      }
    },
    skip: (name, detail) => void done.push({ name, result: 'not_asked', detail }),
    steps: () => [
      ...done,
      ...STEP_NAMES.slice(done.length).map((name): VerificationStep => ({ name, result: 'not_reached', detail: '' })),
    ],
  };
}

function checkFreshness({ timestamp, nonce }: AttestationDocument, options: VerifyOptions): string {
  const ageSeconds = (options.at - timestamp) / 1000;
  const made = `made ${new Date(timestamp).toISOString()}`;
  demand(ageSeconds >= -CLOCK_SKEW_SECONDS, 'from_the_future', `${made}, ${Math.ceil(-ageSeconds)} s later`);
  const age = `${Math.max(0, Math.floor(ageSeconds))} s before`;
  demand(ageSeconds <= options.maxAgeSeconds, 'stale', `${made}, ${age}; at most ${options.maxAgeSeconds} s`);
  if (options.nonce === undefined) return `${made}, ${age}`;
  demand(nonce !== undefined, 'nonce_mismatch', 'it carries none');
  demand(nonce.equals(options.nonce), 'nonce_mismatch', 'it carries another one');
  return `${made}, ${age}, with the nonce asked for`;
}

function checkBinding({ userData }: AttestationDocument, expected: Uint8Array): void {
  demand(
    userData?.equals(expected) === true,
    'wrong_key',
    userData === undefined ? 'it has no user_data' : 'its user_data is not of this key',
  );
}

/** PCR3 and PCR4 say nothing about it: they are of the instance. */
function checkDebug({ pcrs }: AttestationDocument): void {
  const zero = IMAGE_PCRS.find((index) => pcrs.get(index)?.every((byte) => byte === 0) ?? true);
  if (zero === undefined) return;
  throw new EvidenceError({ code: 'debug', pcr: zero, detail: `PCR${zero} is ${pcrs.has(zero) ? 'zero' : 'missing'}` });
}

function checkPolicy(document: AttestationDocument, reference: ReferenceValues | undefined): string {
  demand(reference?.has(0) === true, 'no_reference_values', 'PCR0 at least is needed');
  const [first, ...others] = policyFailures(document, reference);
  if (first !== undefined) throw new EvidenceError(first, ...others);
  return `${[...reference.keys()].map((index) => `PCR${index}`).join(', ')} as expected`;
}
