// What the commands of `strongroom ceremony` share: the terminal that they see, and how they say that a file or an
// input cannot be used. Data goes to stdout, everything else to stderr; a failure is one sentence.

import { AWS_NITRO, type DocumentProvider } from '../../common/attestation/contract.ts';
import { fileFault } from '../../common/command-line/file-faults.ts';
import type { Printed } from '../../common/command-line/terminal.ts';

export interface CeremonyTerminal extends Printed {
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whose attestation documents are believed; those of AWS when not said, and no command line says it. */
  readonly documents?: DocumentProvider;
}

export function documentsOf({ documents = AWS_NITRO }: CeremonyTerminal): DocumentProvider {
  return documents;
}

export class CommandError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CommandError';
  }
}

/** @param file for a fault that does not name it @throws the error, when no file operation failed */
export function fileProblem(error: unknown, file = 'a file'): CommandError {
  if (!(error instanceof Error && 'syscall' in error && 'code' in error)) throw error;
  const { syscall } = error;
  const verb = syscall === 'open' ? 'opened' : syscall === 'read' ? 'read' : syscall === 'write' ? 'written' : 'used';
  return new CommandError(fileFault('path' in error ? String(error.path) : file, verb, error));
}
