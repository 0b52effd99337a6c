// `strongroom ceremony keygen`: a new age identity for a holder of the root token. The secret goes into a new file that
// only its owner can read, as `age-keygen` writes it, and nowhere else; the recipient goes to stdout.

import { open } from 'node:fs/promises';
import { command } from '../../common/command-line/program.ts';
import { note } from '../../common/command-line/terminal.ts';
import { generateAgeIdentity } from '../age-identity.ts';
import { type CeremonyTerminal, CommandError, fileProblem } from './command.ts';

export const keygen = command(
  {
    summary: 'Make an age identity: the secret into a new file (mode 0600), its recipient to stdout',
    flags: {
      output: {
        placeholder: 'FILE',
        required: true,
        isOutputFile: true,
        meaning: 'The file to write; one that exists is never overwritten',
      },
    },
    examples: [
      'strongroom ceremony keygen --output alice.age',
      'strongroom ceremony keygen --output /media/offline/root.age >> recipients.txt',
    ],
  },

  async ({ values: { output: file } }, terminal: CeremonyTerminal) => {
    const { identity, recipient } = await generateAgeIdentity();
    await writeNew(file, `# recipient: ${recipient}\n${identity}\n`);
    terminal.stdout.write(`${recipient}\n`);
    note(terminal, `strongroom: the identity is in ${file}: keep it offline, it opens the root token`);
  },
);

async function writeNew(file: string, text: string): Promise<void> {
  try {
    const handle = await open(file, 'wx', 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') throw existsAlready(file);
    throw fileProblem(error, file);
  }
}

function existsAlready(file: string): CommandError {
  return new CommandError(
    `${file} exists already and is not overwritten: it may be the only copy of an identity; ` +
      'name another file, or move that one away',
  );
}
