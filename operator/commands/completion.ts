// `strongroom operator completion`: a completion script for a shell, printed for the shell to read.

import { localCommand } from '../command.ts';
import { completionScript, SHELLS } from '../completion.ts';

export const completion = localCommand({
  summary: 'Print a completion script for a shell',
  flags: {},
  argument: { name: 'SHELL', meaning: 'Whose language the script is in', choices: SHELLS },
  examples: [
    'completion bash > /etc/bash_completion.d/strongroom',
    'completion fish > ~/.config/fish/completions/strongroom.fish',
  ],
  async run({ argument, terminal, tree }) {
    terminal.stdout.write(completionScript(argument as (typeof SHELLS)[number], tree));
  },
});
