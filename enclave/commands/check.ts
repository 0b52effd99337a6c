// What `server --check` says, and what the start says of a configuration that is good and unwise. Data goes to
// stdout, the rest to stderr; exit code 0 for a configuration that can be used, 78 for another.

import { painter } from '../../command-line/color.ts';
import { EXIT } from '../../command-line/exit-codes.ts';
import { note } from '../../command-line/terminal.ts';
import { type Violation, writeViolations } from '../../command-line/violations.ts';
import type { Log } from '../../observe/log.ts';
import { type ConfigWarning, warningText } from '../config/warnings.ts';

export interface Found {
  readonly violations: readonly Violation[];
  readonly warnings: readonly ConfigWarning[];
}

/** That of an option, or of what was translated to options. */
export type SaidWarning = Pick<ConfigWarning, 'says'> & { readonly at: string };

export interface Said {
  readonly warnings: readonly SaidWarning[];
  readonly ignoredVariables: readonly string[];
}

/** @param found what the machine adds to what the configuration says by itself @returns the exit code */
export function reportCheck(
  said: Said,
  found: Found,
  { stdout, stderr, env }: Pick<NodeJS.Process, 'stdout' | 'stderr' | 'env'>,
): number {
  for (const warning of [...said.warnings, ...found.warnings]) note({ stderr }, `warning: ${warningText(warning)}`);
  if (said.ignoredVariables.length > 0) note({ stderr }, `note: ${ignored(said.ignoredVariables)}`);
  if (found.violations.length > 0) {
    writeViolations(found.violations, { stderr, env });
    return EXIT.configuration;
  }
  stdout.write(painter(stdout, env)('strongroom: the configuration is valid\n', 'good'));
  return EXIT.ok;
}

export function sayWarnings({ warnings, ignoredVariables }: Said, log: Log): void {
  for (const warning of warnings) log.warn({ option: warning.at }, warningText(warning));
  if (ignoredVariables.length > 0) log.info({ variables: ignoredVariables.length }, ignored(ignoredVariables));
}

/** One line, however many Services there are. */
function ignored([first = '', ...others]: readonly string[]): string {
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  return `variables that Kubernetes injects for Services are ignored: ${first}${more}`;
}
