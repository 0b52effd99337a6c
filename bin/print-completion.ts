// `strongroom completion`: the script of a shell, and the names that the script asks for while the user types.

import { basename } from 'node:path';
import { ArgumentsError, withAdvice } from '../common/command-line/arguments.ts';
import type { Description } from '../common/command-line/command.ts';
import { completionScript, SHELLS, type Shell } from '../common/command-line/completion.ts';
import { EXIT } from '../common/command-line/exit-codes.ts';
import { sayFailure, seeHelp } from '../common/command-line/failure.ts';
import { readCommand } from '../common/command-line/read-command.ts';
import { note } from '../common/command-line/terminal.ts';

/** What the scripts ask for the names of profiles with. */
const PROFILES = 'profiles';

const DESTINATIONS: Readonly<Record<Shell, string>> = {
  bash: '/etc/bash_completion.d/strongroom',
  zsh: '"$fpath[1]/_strongroom"',
  fish: '~/.config/fish/completions/strongroom.fish',
};

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
    const shell = shellOf(argument === '' ? basename(process.env['SHELL'] ?? '') : argument);
    process.stdout.write(completionScript(shell, await described()));
    if (process.stdout.isTTY)
      note(process, `to keep it: strongroom completion ${shell} > ${DESTINATIONS[shell]}, then start a new shell`);
  } catch (error) {
    if (!(error instanceof ArgumentsError)) throw error;
    sayFailure(process, 'strongroom completion', withAdvice(error), [seeHelp('strongroom completion')]);
    process.exitCode = EXIT.failed;
  }
}

/** @throws ArgumentsError */
function shellOf(word: string): Shell {
  const shell = SHELLS.find((known) => known === word);
  if (shell !== undefined) return shell;
  throw new ArgumentsError('SHELL is needed: the variable SHELL names none of them', `one of ${SHELLS.join(', ')}`);
}
