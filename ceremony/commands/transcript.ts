// `strongroom ceremony transcript …`: verifies the record of a ceremony, and makes a page of it to print and sign. It
// trusts the record only after it is verified, and shows nothing of a refused one.

import type { AttestedKey } from '../../common/attestation/key-evidence.ts';
import { command } from '../../common/command-line/program.ts';
import { note } from '../../common/command-line/terminal.ts';
import { type Shown, wrapFor } from '../../common/command-line/wrap.ts';
import { canonicalBytes } from '../definition.ts';
import { isFinished, type Transcript, transcriptHead } from '../transcript/chain.ts';
import { lackingIn } from '../transcript/day.ts';
import type { StartEntry } from '../transcript/entries.ts';
import { readTranscriptFile } from '../transcript/file.ts';
import { ceremonyOf } from '../transcript/meaning.ts';
import { originsIn, type RecordedOrigin } from '../transcript/origin.ts';
import { groupedDigits, transcriptPage } from '../transcript/page.ts';
import { TRANSCRIPT } from './arguments.ts';
import { readCeremonyFile } from './ceremony-file.ts';
import { type CeremonyTerminal, CommandError, documentsOf, fileProblem } from './command.ts';
import { writeCeremonyOutput } from './output-file.ts';
import { readRegisters } from './registers-file.ts';

export const transcriptVerify = command(
  {
    summary: 'Verify the record of a ceremony: whole, in order, of this ceremony, as noted on paper',
    notes: [
      'Every line holds the SHA-256 of the line before, so what was changed, removed, inserted or moved inside is found, ' +
        'and a record without its end is refused. Whoever has the file could write all of it anew: only --head shows that.',
      'The evidence of a master key is judged again: its documents, the ceremony, and the PCR values recorded before it.',
    ],
    argument: TRANSCRIPT,
    flags: {
      head: { placeholder: 'HEX', meaning: 'The head that you noted on paper; blanks between its digits are ignored' },
      ceremony: { placeholder: 'FILE', meaning: 'The ceremony that the record must be of' },
      pcrs: { placeholder: 'FILE', meaning: 'The PCR values that the record must have (pcrs.json)' },
      unfinished: { meaning: 'Accept a record that has not ended, and say what it lacks so far' },
      incomplete: { meaning: 'Accept a record that ended without what the day asks for' },
    },
    examples: [
      'strongroom ceremony transcript verify transcript.jsonl --head "9f86d081 884c7d65 …" --ceremony ceremony.yaml',
      'strongroom ceremony transcript verify transcript.jsonl --unfinished',
    ],
  },

  async ({ argument: file, values }, terminal: CeremonyTerminal) => {
    const { head, ceremony, pcrs, unfinished, incomplete } = values;
    const { transcript, origins } = await verified(file, terminal);
    if (!isFinished(transcript) && !unfinished) {
      throw new CommandError(
        `NOT VERIFIED: ${file} has no end: lines may have been cut off; --unfinished accepts a record that goes on`,
      );
    }
    const lacking = lackingIn(transcript.entries);
    if (isFinished(transcript) && lacking.length > 0 && !incomplete) {
      throw new CommandError(
        `NOT COMPLETE: ${file} ended without what the day asks for; --incomplete accepts such a record:\n` +
          lacking.map((sentence) => `  - ${sentence}`).join('\n'),
      );
    }
    const compared = [
      ...(await compareCeremony(transcript, ceremony)),
      ...(await compareRegisters(transcript, pcrs, terminal)),
      ...compareHead(transcript, head),
    ];
    const { stdout } = terminal;
    stdout.write(verdict(file, { transcript, origins }, compared, { stdout, isHeadKnown: head !== undefined }));
  },
);

export const transcriptPageCommand = command(
  {
    summary: 'Write the record of a ceremony as one page to print and sign',
    notes: [
      'The page is HTML without scripts that needs nothing else. It has the head, the ceremony, PCR values, files, every ' +
        "line, and a line for each person's signature. A record that has not ended makes a page that says DRAFT.",
    ],
    argument: TRANSCRIPT,
    flags: {
      output: {
        placeholder: 'FILE',
        required: true,
        isOutputFile: true,
        meaning: 'Where to; one that exists is not overwritten',
      },
      force: { meaning: 'Overwrite it' },
    },
    examples: [
      'strongroom ceremony transcript page transcript.jsonl --output transcript.html',
      'chromium --headless --no-pdf-header-footer --print-to-pdf=transcript.pdf transcript.html',
    ],
  },

  async ({ argument: file, values }, terminal: CeremonyTerminal) => {
    const { output, force } = values;
    const { transcript, origins } = await verified(file, terminal);
    await writeCeremonyOutput(output, transcriptPage(transcript, origins), force);
    note(terminal, `strongroom: ${output} has head`, groupedDigits(transcriptHead(transcript)));
  },
);

interface Verified {
  readonly transcript: Transcript;
  readonly origins: readonly RecordedOrigin[];
}

async function verified(file: string, terminal: CeremonyTerminal): Promise<Verified> {
  const read = await readTranscriptFile(file).catch((error: unknown) => {
    throw fileProblem(error, file);
  });
  if (read.ok) return { transcript: read, origins: originsOf(file, read, terminal) };
  const place = read.line === 0 ? file : `${file}: line ${read.line}`;
  throw new CommandError(`NOT VERIFIED: ${place} ${read.problem}`);
}

function originsOf(file: string, { entries }: Transcript, terminal: CeremonyTerminal): readonly RecordedOrigin[] {
  const origins = originsIn(entries, documentsOf(terminal));
  if (!('fault' in origins)) return origins;
  const { line, fault, detail } = origins;
  throw new CommandError(`NOT VERIFIED: ${file}: line ${line} has evidence that is refused (${fault}): ${detail}`);
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
  terminal: CeremonyTerminal,
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
  if (head === transcriptHead(transcript)) return ['its head is the one that you noted'];
  const at = transcript.digests.indexOf(head);
  throw new CommandError(
    at === -1
      ? 'NOT VERIFIED: the head that you noted is of no line of this record: it is another record, or it was written anew'
      : `NOT VERIFIED: the head that you noted is that of line ${at + 1}: the lines after it were added later`,
  );
}

function verdict(
  file: string,
  { transcript, origins }: Verified,
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
      `VERIFIED: ${file} has ${transcript.entries.length} lines in an unbroken chain${isFinished(transcript) ? ', and its end' : ', and has NOT ended'}`,
    ),
    `Head (SHA-256) ${groupedDigits(transcriptHead(transcript))}`,
    `Ceremony generation ${ceremony.generation}, digest (SHA-384) ${digest}`,
    ...origins.flatMap((origin) => originLines(origin).flatMap((line) => wrapFor(stdout, line))),
    ...[
      ...compared.map((line) => `Compared: ${line}`),
      ...missing,
      ...lackingIn(transcript.entries).map((sentence) => `LACKS: ${sentence}`),
    ].flatMap((line) => wrapFor(stdout, line)),
  ];
  return `${lines.join('\n')}\n`;
}

function originLines({ line, entry, links, rootToken }: RecordedOrigin): readonly string[] {
  const by = ({ madeAt, pcrs }: AttestedKey): string =>
    `at ${new Date(madeAt).toISOString()} by an enclave with PCR0 ${pcrs.get(0)?.toString('hex')}`;
  return [
    `Master key (line ${line}) of the deployment ${entry.deployment.id}, record ${entry.record}:`,
    ...links.map(
      (link) =>
        `  ${link.counter}. ${link.purpose === 'made' ? 'made' : 'wrapped again'} in generation ${link.generation} ${by(link)}`,
    ),
    ...(rootToken === undefined ? [] : [`  root token encrypted ${by(rootToken)}, SHA-384 ${rootToken.content}`]),
  ];
}
