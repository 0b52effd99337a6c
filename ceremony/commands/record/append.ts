// What the commands of `strongroom ceremony record` share: what happens at a ceremony goes into a transcript as it
// happens. Each adds its lines durably and prints the last one's number and digest, which the participants may note on
// paper. No secret belongs into a transcript: everybody who was there gets a copy.

import { note } from '../../../command-line/terminal.ts';
import { headOf, type Transcript } from '../../transcript/chain.ts';
import type { Said } from '../../transcript/entries.ts';
import { type Appended, appendToTranscript, newFileOf, readTranscriptFile } from '../../transcript/file.ts';
import { grouped } from '../../transcript/page.ts';
import { CommandError, fileProblem, type Terminal } from '../command.ts';

/** @throws CommandError */
export async function append(file: string, said: readonly Said[], terminal: Terminal): Promise<void> {
  await report(file, appendToTranscript(file, said, new Date()).catch(absent(file)), terminal);
}

/** Number and digest to stdout; to stderr the digest as one copies it. @throws CommandError */
export async function report(file: string, appending: Promise<Appended>, terminal: Terminal): Promise<void> {
  const appended = await appending.catch((error: unknown) => {
    throw fileProblem(error, file);
  });
  if (!appended.ok) throw new CommandError(refusal(file, appended));
  const head = headOf(appended);
  const { length } = appended.entries;
  terminal.stdout.write(`${length} ${head}\n`);
  note(terminal, `strongroom: line ${length} is in ${file}; its digest, to note:`, grouped(head));
}

/** The transcript so far. @throws CommandError */
export async function readRecord(file: string): Promise<Transcript> {
  const read = await readTranscriptFile(file).catch(absent(file));
  if (!read.ok) throw new CommandError(refusal(file, read));
  return read;
}

/** A member that an entry has only when it was said. */
export function optional<Member extends string>(member: Member, value: string | undefined) {
  return (value === undefined ? {} : { [member]: value }) as { [Name in Member]?: string };
}

function refusal(file: string, refused: Exclude<Appended, { ok: true }>): string {
  if ('problem' in refused) {
    return `${file}: line ${refused.line} ${refused.problem}; nothing was written`;
  }
  return refused.refusal === 'exists'
    ? `${file} exists already and is not overwritten: name another file`
    : `${newFileOf(file)} is there: somebody else is writing this transcript, or a writer was interrupted; ` +
        'when nobody is, delete that file: the transcript itself is whole';
}

function absent(file: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      throw new CommandError(`${file} is not there: begin a transcript with "strongroom ceremony record start"`);
    }
    throw fileProblem(error, file);
  };
}
