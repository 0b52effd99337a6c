// What keeps a first step from being done, with what to do about it. It is alone because the commands throw it, and
// their program tells it.

import type { ExitCode } from '../../common/command-line/exit-codes.ts';
import { adviceOn, shownErrorCode } from '../../common/command-line/file-faults.ts';
import { quoted } from '../../common/command-line/printable.ts';

export class FirstStepFailure extends Error {
  readonly remedies: readonly string[];
  readonly exitCode: ExitCode | undefined;

  constructor(message: string, remedies: readonly string[] = [], exitCode?: ExitCode) {
    super(message);
    this.name = 'FirstStepFailure';
    this.remedies = remedies;
    this.exitCode = exitCode;
  }
}

export function unusablePath(path: string, what: 'be read' | 'be written', error: unknown): FirstStepFailure {
  const code = shownErrorCode(error);
  const advice = adviceOn(code);
  return new FirstStepFailure(`${quoted(path)} cannot ${what} (${code})`, advice === undefined ? [] : [advice]);
}
