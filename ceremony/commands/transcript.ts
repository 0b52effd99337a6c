// `strongroom ceremony transcript …`: verifies the record of a ceremony, and makes a page of it to print and sign. It
// trusts the record only after it is verified, and shows nothing of a refused one.

import { note } from '../../command-line/terminal.ts';
import { type Shown, wrapFor } from '../../command-line/wrap.ts';
import { canonicalBytes } from '../definition.ts';
import { TRANSCRIPT_PAGE, TRANSCRIPT_VERIFY } from '../descriptions/transcript.ts';
import { headOf, isEnded, type Transcript } from '../transcript/chain.ts';
import type { StartEntry } from '../transcript/entries.ts';
import { readTranscriptFile } from '../transcript/file.ts';
import { ceremonyOf } from '../transcript/meaning.ts';
import { grouped, transcriptPage } from '../transcript/page.ts';
import { readCeremonyFile } from './ceremony-file.ts';
import { type Command, CommandError, fileProblem, readArguments, type Terminal } from './command.ts';
import { writeOutput } from './output-file.ts';
import { readRegisters } from './registers-file.ts';

export const transcriptVerify: Command = {
  description: TRANSCRIPT_VERIFY,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, TRANSCRIPT_VERIFY, terminal);
    const { head, ceremony, pcrs, unfinished } = values;
    const transcript = await verified(file);
    if (!isEnded(transcript) && !unfinished) {
      throw new CommandError(
        `NOT VERIFIED: ${file} has no end: lines may have been cut off; --unfinished accepts a record that goes on`,
      );
    }
    const compared = [
      ...(await compareCeremony(transcript, ceremony)),
      ...(await compareRegisters(transcript, pcrs, terminal)),
      ...compareHead(transcript, head),
    ];
    const { stdout } = terminal;
    stdout.write(verdict(file, transcript, compared, { stdout, isHeadKnown: head !== undefined }));
  },
};

export const transcriptPageCommand: Command = {
  description: TRANSCRIPT_PAGE,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, TRANSCRIPT_PAGE, terminal);
    const { output, force } = values;
    const transcript = await verified(file);
    await writeOutput(output, transcriptPage(transcript), force);
    note(terminal, `strongroom: ${output} has head`, grouped(headOf(transcript)));
  },
};

async function verified(file: string): Promise<Transcript> {
  const read = await readTranscriptFile(file).catch((error: unknown) => {
    throw fileProblem(error, file);
  });
  if (read.ok) return read;
  const place = read.line === 0 ? file : `${file}: line ${read.line}`;
  throw new CommandError(`NOT VERIFIED: ${place} ${read.problem}`);
}

function startOf({ entries: [start] }: Transcript): StartEntry {
  if (start?.entry !== 'start') throw new Error('a transcript that was not verified');
  return start;
}

async function compareCeremony(transcript: Transcript, file: string | undefined): Promise<string[]> {
  if (file === undefined) return [];
  const theirs = canonicalBytes(ceremonyOf(startOf(transcript)));
  if (!canonicalBytes(await readCeremonyFile(file)).equals(theirs)) {
    throw new CommandError(`NOT VERIFIED: the record is of another ceremony than ${file}`);
  }
  return [`its ceremony is that of ${file}`];
}

async function compareRegisters(
  { entries }: Transcript,
  file: string | undefined,
  terminal: Terminal,
): Promise<string[]> {
  if (file === undefined) return [];
  const wanted = await readRegisters(file, terminal);
  const recorded = entries.findLast((entry) => entry.entry === 'pcrs');
  if (recorded === undefined) throw new CommandError('NOT VERIFIED: the record has no PCR values');
  const names = new Set([...Object.keys(wanted), ...Object.keys(recorded.registers)]);
  const differing = [...names].filter((name) => wanted[name] !== recorded.registers[name]);
  if (differing.length > 0) {
    throw new CommandError(`NOT VERIFIED: the record and ${file} differ in ${differing.sort().join(', ')}`);
  }
  return [`its last PCR values are those of ${file}`];
}

function compareHead(transcript: Transcript, noted: string | undefined): string[] {
  if (noted === undefined) return [];
  const head = noted.replace(/\s/g, '').toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(head)) throw new CommandError('--head is not 64 hex digits: compare it with your paper');
  if (head === headOf(transcript)) return ['its head is the one that you noted'];
  const at = transcript.digests.indexOf(head);
  throw new CommandError(
    at === -1
      ? 'NOT VERIFIED: the head that you noted is of no line of this record: it is another record, or it was written anew'
      : `NOT VERIFIED: the head that you noted is that of line ${at + 1}: the lines after it were added later`,
  );
}

function verdict(
  file: string,
  transcript: Transcript,
  compared: readonly string[],
  { stdout, isHeadKnown }: { readonly stdout: Shown; readonly isHeadKnown: boolean },
): string {
  const { ceremony_digest_sha384: digest, ceremony } = startOf(transcript);
  const missing = isHeadKnown
    ? []
    : ['NOT compared: the head that you noted on paper (--head); the file could have been written anew'];
  const lines = [
    ...wrapFor(
      stdout,
      `VERIFIED: ${file} has ${transcript.entries.length} lines in an unbroken chain${isEnded(transcript) ? ', and its end' : ', and has NOT ended'}`,
    ),
    `Head (SHA-256) ${grouped(headOf(transcript))}`,
    `Ceremony generation ${ceremony.generation}, digest (SHA-384) ${digest}`,
    ...[...compared.map((line) => `Compared: ${line}`), ...missing].flatMap((line) => wrapFor(stdout, line)),
  ];
  return `${lines.join('\n')}\n`;
}
