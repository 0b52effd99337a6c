// Exit codes of the operator commands (specification/operating.md#exit-codes) and the one way a command fails. Scripts
// decide by the code, people by the message: it says what happened and, where there is something to do, what. Never a
// stack, never a token.

import { EXIT, type ExitCode } from '../command-line/exit-codes.ts';

/** The operator reads no configuration of a signer. */
export type OperatorExitCode = Exclude<ExitCode, typeof EXIT.configuration>;

export const EXIT_MEANINGS: Readonly<Record<OperatorExitCode, string>> = {
  0: 'done',
  1: 'wrong usage, or a fault on this machine',
  2: 'the signer refused, failed or could not be reached',
  3: 'the signer is sealed',
  4: 'the token is missing, unknown, expired or not allowed to do this',
  5: 'the evidence of the enclave is not authentic: nothing was sent',
  6: 'authentic evidence of another image than expected, or of debug mode: nothing was sent',
  7: 'not confirmed: nothing was sent',
  8: 'verify: authentic evidence, and no reference values were given',
  9: 'slashing import: merged, and it holds slashable messages',
  70: 'a bug in this program',
};

export class CommandFailure extends Error {
  readonly exitCode: OperatorExitCode;
  /** What to do about it. */
  readonly advice: string | undefined;

  constructor(exitCode: OperatorExitCode, message: string, advice?: string) {
    super(message);
    this.name = 'CommandFailure';
    this.exitCode = exitCode;
    this.advice = advice;
  }
}

/** A signer says no, with its reason. */
export class SignerRefusal extends CommandFailure {}

/** Something answers that is no signer of a version that is known here: a proxy, another service, another port. */
export class ForeignAnswer extends CommandFailure {}

/** The command line or the settings say something that cannot be. */
export class UsageFailure extends CommandFailure {
  constructor(message: string, advice?: string) {
    super(EXIT.failed, message, advice);
    this.name = 'UsageFailure';
  }
}

/** Something on this machine that cannot be used. */
export function localFailure(message: string, advice?: string): CommandFailure {
  return new CommandFailure(EXIT.failed, message, advice);
}
