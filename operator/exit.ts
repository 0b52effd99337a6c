// Exit codes of the operator commands (specification/operating.md#exit-codes) and the one way a command fails. Never a
// stack, never a token.

import { EXIT, type ExitCode } from '../common/command-line/exit-codes.ts';

/** The operator reads no configuration of a signer, and compares no images. */
export type OperatorExitCode = Exclude<ExitCode, typeof EXIT.configuration | typeof EXIT.unknownSources>;

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
  11: 'receipts: a log is broken',
  12: 'receipts: a log has gaps',
  13: 'receipts: what was asked for is not in the log',
  14: 'verify: expected in what was compared, and the configuration, the ceremony or the TLS key was not',
  70: 'a bug in this program',
};

export class CommandFailure extends Error {
  readonly exitCode: OperatorExitCode;
  readonly advice: string | undefined;

  constructor(exitCode: OperatorExitCode, message: string, advice?: string) {
    super(message);
    this.name = 'CommandFailure';
    this.exitCode = exitCode;
    this.advice = advice;
  }
}

export class SignerRefusal extends CommandFailure {
  readonly reason: string;

  constructor(reason: string, exitCode: OperatorExitCode, message: string, advice?: string) {
    super(exitCode, message, advice);
    this.reason = reason;
  }
}

/** Something answers that is no signer of a version that is known here: a proxy, another service, another port. */
export class ForeignAnswer extends CommandFailure {}

export class UsageFailure extends CommandFailure {
  constructor(message: string, advice?: string) {
    super(EXIT.failed, message, advice);
    this.name = 'UsageFailure';
  }
}

export function localFailure(message: string, advice?: string): CommandFailure {
  return new CommandFailure(EXIT.failed, message, advice);
}

/** @throws what is no failure of a command: a bug */
export function attempt<Value>(run: () => Value): Value | CommandFailure {
  try {
    return run();
  } catch (error) {
    if (error instanceof CommandFailure) return error;
    throw error;
  }
}

/** @throws what is no failure of a command: a bug */
export async function orFailure<Value>(asked: Promise<Value>): Promise<Value | CommandFailure> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof CommandFailure) return error;
    throw error;
  }
}
