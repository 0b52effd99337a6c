// What a start says of a configuration that is good: what is unwise, and what is ignored.

import type { Log } from '../common/observe/log.ts';
import { logWarnings, type SaidWarning } from '../signer/config/warnings.ts';

export interface LoadedNotes {
  readonly warnings: readonly SaidWarning[];
  readonly ignoredVariables: readonly string[];
}

export function sayWarnings({ warnings, ignoredVariables }: LoadedNotes, log: Log): void {
  logWarnings(warnings, log);
  if (ignoredVariables.length > 0) log.info({ variables: ignoredVariables.length }, ignoredText(ignoredVariables));
}

export function ignoredText([first = '', ...others]: readonly string[]): string {
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  return `variables that Kubernetes injects for Services are ignored: ${first}${more}`;
}
