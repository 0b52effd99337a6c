// `strongroom ceremony transcript …`: whether a ceremony's record is whole and says what it should, and the record as a
// page to print and sign. The record is somebody else's until it is verified: nothing is shown of one that is refused.

import { canonicalBytes } from '../definition.ts';
import { headOf, isEnded, type Transcript } from '../transcript/chain.ts';
import type { StartEntry } from '../transcript/entries.ts';
import { readTranscriptFile } from '../transcript/file.ts';
import { ceremonyOf } from '../transcript/meaning.ts';
import { grouped, transcriptPage } from '../transcript/page.ts';
import { readCeremonyFile } from './ceremony-file.ts';
import { type Arguments, type Command, CommandError, fileProblem, readArguments, type Terminal } from './command.ts';
import { writeOutput } from './output-file.ts';
import { readRegisters } from './registers-file.ts';

export const transcriptVerify: Command = {
  help: `Verify the record of a ceremony: whole, in order, of this ceremony, as noted on paper

Usage: strongroom ceremony transcript verify FILE [OPTIONS]

Every line holds the SHA-256 of the line before, so what was changed, removed, inserted or moved inside is found, and a
record without its end is refused. Whoever has the file could write all of it anew: only --head shows that.

Options:
  --head HEX       The head that you noted on paper; blanks between its digits are ignored
  --ceremony FILE  The ceremony that the record must be of
  --pcrs FILE      The PCR values that the record must have (pcrs.json)
  --unfinished     Accept a record that has not ended

Examples:
  strongroom ceremony transcript verify transcript.jsonl --head "9f86d081 884c7d65 …" --ceremony ceremony.yaml
  strongroom ceremony transcript verify transcript.jsonl --unfinished
`,

  async run(argv, terminal) {
    const { file, flags, switches } = fileAnd(argv, ['head', 'ceremony', 'pcrs'], ['unfinished']);
    const transcript = await verified(file);
    if (!isEnded(transcript) && !switches.has('unfinished')) {
      throw new CommandError(
        `NOT VERIFIED: ${file} has no end: lines may have been cut off; --unfinished accepts a record that goes on`,
      );
    }
    const compared = [
      ...(await compareCeremony(transcript, flags['ceremony'])),
      ...(await compareRegisters(transcript, flags['pcrs'], terminal)),
      ...compareHead(transcript, flags['head']),
    ];
    terminal.stdout.write(verdict(file, transcript, compared, flags['head'] !== undefined));
  },
};

export const transcriptPageCommand: Command = {
  help: `Write the record of a ceremony as one page to print and sign

Usage: strongroom ceremony transcript page FILE --output FILE [--force]

The page is HTML without scripts that needs nothing else. It has the head, the ceremony, PCR values, files, every line,
and a line for each person's signature. A record that has not ended makes a page that says DRAFT.

Options:
  --output FILE  Where to; one that exists is not overwritten
  --force        Overwrite it

Examples:
  strongroom ceremony transcript page transcript.jsonl --output transcript.html
  chromium --headless --no-pdf-header-footer --print-to-pdf=transcript.pdf transcript.html
`,

  async run(argv, { stderr }) {
    const { file, flags, switches } = fileAnd(argv, ['output'], ['force']);
    const { output } = flags;
    if (output === undefined) throw new CommandError('name the file to write with --output FILE');
    const transcript = await verified(file);
    await writeOutput(output, transcriptPage(transcript), switches.has('force'));
    stderr.write(`strongroom: ${output} has head ${grouped(headOf(transcript))}\n`);
  },
};

interface TranscriptArguments {
  readonly file: string;
  readonly flags: Arguments['flags'];
  readonly switches: ReadonlySet<string>;
}

function fileAnd(argv: readonly string[], names: readonly string[], switches: readonly string[]): TranscriptArguments {
  const { positionals, flags, switches: given } = readArguments(argv, names, 1, { switches });
  const [file] = positionals;
  if (file === undefined) throw new CommandError('name the FILE of the transcript');
  return { file, flags, switches: given };
}

async function verified(file: string): Promise<Transcript> {
  const read = await readTranscriptFile(file).catch((error: unknown) => {
    throw fileProblem(error);
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

function verdict(file: string, transcript: Transcript, compared: readonly string[], isHeadKnown: boolean): string {
  const { ceremony_digest_sha384: digest, ceremony } = startOf(transcript);
  const missing = isHeadKnown
    ? []
    : ['NOT compared: the head that you noted on paper (--head); the file could have been written anew'];
  const lines = [
    `VERIFIED: ${file} has ${transcript.entries.length} lines in an unbroken chain${isEnded(transcript) ? ', and its end' : ', and has NOT ended'}`,
    `Head (SHA-256) ${grouped(headOf(transcript))}`,
    `Ceremony generation ${ceremony.generation}, digest (SHA-384) ${digest}`,
    ...compared.map((line) => `Compared: ${line}`),
    ...missing,
  ];
  return `${lines.join('\n')}\n`;
}
