// A command of `strongroom setup` that prints a document: it reads files, calls nothing, and throws what it refuses.

import type { Piped } from '../../command-line/terminal.ts';

export interface SetupCommand {
  /** @throws ArgumentsError, InputRefused, KeyPolicyRefused, ConfigurationViolated */
  run(argv: readonly string[], terminal: Omit<Piped, 'stdin'>): void;
}
