// A verdict that is no success, as the failure of a command: exit 5 when the evidence is bad, 6 when it is good and
// another program's, 8 when no reference values were given, 14 when they do not say everything. The code of each
// failing check is in the message.

import { type EvidenceFailure, FAILURES, type Fault } from '../../common/attestation/failure.ts';
import type { EvidenceVerdict } from '../../common/attestation/verify.ts';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { CommandFailure, type OperatorExitCode } from '../exit.ts';
import type { VerdictName } from './report.ts';

/** specification/evidence.md#checks */
export const EXIT_OF_VERDICT: Readonly<Record<VerdictName, OperatorExitCode>> = {
  expected: EXIT.ok,
  partly_compared: EXIT.partlyCompared,
  not_authentic: EXIT.evidenceNotAuthentic,
  not_expected: EXIT.evidenceNotExpected,
  no_reference_values: EXIT.noReferenceValues,
};

export class AttestationFailure extends CommandFailure {
  readonly failures: readonly EvidenceFailure[];

  constructor(verdict: EvidenceVerdict, subject: string) {
    const { fault, meaning, advice } = describe(verdict);
    const details = verdict.failures.map(({ code, detail }) => `${code}: ${detail}`).join('\n  ');
    super(EXIT_OF_VERDICT[fault], `${headline(fault, subject)}: ${meaning}\n  ${details}`, advice);
    this.name = 'AttestationFailure';
    this.failures = verdict.failures;
  }
}

export function partlyCompared(subject: string, notCompared: readonly string[]): CommandFailure {
  return new CommandFailure(
    EXIT_OF_VERDICT.partly_compared,
    `${subject} is attested, and was compared only in part\n  ${notCompared.map((open) => `not compared: ${open}`).join('\n  ')}`,
    'give reference values of PCR16 and PCR17, and the URL or its certificate in place of a bare document',
  );
}

interface Description {
  readonly fault: Fault;
  readonly meaning: string;
  readonly advice?: string;
}

/** Fail closed: what has no failure to show is not authentic. */
function describe({ failures: [failure] }: EvidenceVerdict): Description {
  return failure === undefined ? { fault: 'not_authentic', meaning: 'no evidence' } : FAILURES[failure.code];
}

function headline(fault: Fault, subject: string): string {
  if (fault === 'not_authentic') return `${subject} is not attested`;
  return fault === 'not_expected' ? `${subject} is attested, and not what was expected` : `${subject} is attested`;
}
