// The question before something is destroyed. The operator types the name of what will be gone, so that a habit of
// typing `y` cannot do it. Where nobody can be asked the answer is no, unless it was given beforehand with --yes.

import { createInterface } from 'node:readline';
import { EXIT } from '../common/command-line/exit-codes.ts';
import { note, type Terminal } from '../common/command-line/terminal.ts';
import { columnsOf, wrap } from '../common/command-line/wrap.ts';
import { CommandFailure } from './exit.ts';

interface Question {
  readonly at: string;
  readonly consequence: string;
  readonly word: string;
  readonly flag: string;
}

/** @throws CommandFailure with exit code 7 unless the word is typed */
export async function confirm(terminal: Terminal, { at, consequence, word, flag }: Question): Promise<void> {
  if (!terminal.stdin.isTTY || !terminal.stderr.isTTY) {
    throw new CommandFailure(
      EXIT.notConfirmed,
      'not confirmed: there is no terminal to ask on',
      `add ${flag} if it is meant`,
    );
  }
  note(terminal, `At ${at}:`);
  for (const line of wrap(consequence, columnsOf(terminal.stderr))) note(terminal, line);
  const typed = await readLine(
    terminal,
    `Type the word${word.includes(' ') ? 's' : ''} "${word}" to go on, anything else to stop: `,
  );
  if (typed !== word) throw new CommandFailure(EXIT.notConfirmed, 'not confirmed: nothing was sent');
}

async function readLine({ stdin, stderr }: Terminal, question: string): Promise<string | undefined> {
  const lines = createInterface({ input: stdin, output: stderr });
  try {
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    lines.once('close', () => resolve(undefined));
    lines.question(question, resolve);
    return await promise;
  } finally {
    lines.close();
  }
}
