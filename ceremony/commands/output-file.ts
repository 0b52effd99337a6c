// What a command writes where `--output FILE` says (common/command-line/output-file.ts), and its refusals as those of a
// ceremony's command.

import { withAdvice } from '../../common/command-line/arguments.ts';
import { checkOutput as check, OutputFileError, writeOutput as write } from '../../common/command-line/output-file.ts';
import { CommandError } from './command.ts';

/** For a command that has much to do before it writes. @throws CommandError */
export async function checkCeremonyOutput(path: string, isForced: boolean): Promise<void> {
  await check(path, isForced).catch(refuse);
}

export async function writeCeremonyOutput(path: string, text: string, isForced: boolean): Promise<void> {
  await write(path, isForced, (file) => file.writeFile(text)).catch(refuse);
}

function refuse(error: unknown): never {
  throw error instanceof OutputFileError ? new CommandError(withAdvice(error)) : error;
}
