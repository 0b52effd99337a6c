// What the signer answers once, into the file of `--output` (common/command-line/output-file.ts).

import { checkOutput, OutputFileError, withOutput } from '../common/command-line/output-file.ts';
import { CommandFailure, localFailure } from './exit.ts';
import { pathFailure } from './key-batches.ts';

export async function intoFile(path: string, isForced: boolean, run: () => Promise<string>): Promise<void> {
  await withOutput(path, isForced, run).catch(explained(path));
}

export async function checkFile(path: string, isForced: boolean): Promise<void> {
  await checkOutput(path, isForced).catch(explained(path));
}

export function explained(path: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof CommandFailure) throw error;
    throw error instanceof OutputFileError
      ? localFailure(error.message, error.advice)
      : pathFailure(path, 'written', error);
  };
}
