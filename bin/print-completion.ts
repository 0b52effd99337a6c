// `strongroom completion`: the script of a shell, and the names that the script asks for while somebody types.

import { ArgumentsError, withAdvice } from '../command-line/arguments.ts';
import type { Description } from '../command-line/command.ts';
import { completionScript, SHELLS } from '../command-line/completion.ts';
import { EXIT } from '../command-line/exit-codes.ts';
import { sayWrongUsage } from '../command-line/failure.ts';
import { readCommand } from '../command-line/read-command.ts';

/** What the scripts ask for the names of profiles with. */
const PROFILES = 'profiles';

export async function printCompletion(
  argv: readonly string[],
  description: Description,
  described: () => Promise<Description>,
): Promise<void> {
  if (argv.length === 1 && argv[0] === PROFILES) {
    const { profileNames } = await import('../operator/profile-file.ts');
    for (const name of profileNames(process.env)) process.stdout.write(`${name}\n`);
    return;
  }
  try {
    const { argument } = readCommand(description, argv);
    const shell = SHELLS.find((known) => known === argument) ?? 'bash'; // the description's choices
    process.stdout.write(completionScript(shell, await described()));
  } catch (error) {
    if (!(error instanceof ArgumentsError)) throw error;
    sayWrongUsage(process, 'strongroom completion', withAdvice(error));
    process.exitCode = EXIT.failed;
  }
}
