// `strongroom ceremony record …`: what happens at a ceremony, as it happens, into a transcript: one file, whose lines
// are chained by their digests. Every command adds its line durably and prints the line's number and digest, which the
// participants may note on paper. No secret belongs into it: everybody who was there gets a copy.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { note } from '../../command-line/terminal.ts';
import { ceremonyBlock, ceremonyDigest } from '../definition.ts';
import { headOf } from '../transcript/chain.ts';
import { ROLES, type Role, type Said, TRANSCRIPT_FORMAT } from '../transcript/entries.ts';
import {
  type Appended,
  appendToTranscript,
  newFileOf,
  readTranscriptFile,
  startTranscript,
} from '../transcript/file.ts';
import { grouped } from '../transcript/page.ts';
import { readCeremonyFile } from './ceremony-file.ts';
import { type Arguments, type Command, CommandError, fileProblem, readArguments, type Terminal } from './command.ts';
import { readInput } from './input.ts';
import { recipientPosition } from './recipient.ts';
import { readRegisters } from './registers-file.ts';

export const recordStart: Command = {
  help: `Begin the record of a ceremony: a new transcript

Usage: strongroom ceremony record start FILE --ceremony FILE --title TEXT [--place TEXT]

FILE is the transcript; one that exists is never overwritten. Its first line holds the whole ceremony and its digest.

Options:
  --ceremony FILE  The ceremony block by itself, or a configuration that has one
  --title TEXT     What is done, for the head of the page
  --place TEXT     Where

Examples:
  strongroom ceremony record start transcript.jsonl --ceremony ceremony.yaml --title "Custody ceremony, mainnet-eu"
  strongroom ceremony record start t.jsonl --ceremony ceremony.yaml --title Rehearsal --place "Zurich, room 4"
`,

  async run(argv, terminal) {
    const { file, flags } = transcriptAnd(argv, ['ceremony', 'title', 'place']);
    const ceremony = await readCeremonyFile(needed(flags, 'ceremony'));
    const said: Said = {
      entry: 'start',
      format: TRANSCRIPT_FORMAT,
      title: needed(flags, 'title'),
      ...optional(flags, 'place', 'place'),
      ceremony: structuredClone(ceremonyBlock(ceremony)) as Extract<Said, { entry: 'start' }>['ceremony'],
      ceremony_digest_sha384: ceremonyDigest(ceremony).toString('hex'),
    };
    report(file, await startTranscript(file, said, new Date()).catch(explained), terminal);
  },
};

export const recordPerson: Command = {
  help: `Record who is there, and in which role

Usage: strongroom ceremony record person FILE --name NAME --role ROLE [OPTIONS]

Options:
  --name NAME            As the person signs; statements name it
  --role ROLE            ${ROLES.join(', ')}
  --organization TEXT    Whom the person acts for
  --identified-by TEXT   How the others know who it is: "passport seen by the witness"
  --recipient N|age1…    The recipient whose identity this person holds, by its number in the ceremony or in full

Examples:
  strongroom ceremony record person transcript.jsonl --name "Alice Example" --role participant --recipient 1
  strongroom ceremony record person transcript.jsonl --name "Wanda Wit" --role witness --organization "Audit Ltd"
`,

  async run(argv, terminal) {
    const { file, flags } = transcriptAnd(argv, ['name', 'role', 'organization', 'identified-by', 'recipient']);
    const role = needed(flags, 'role');
    if (!isRole(role)) throw new CommandError(`--role is one of ${ROLES.join(', ')}`);
    const said: Said = {
      entry: 'person',
      name: needed(flags, 'name'),
      role,
      ...optional(flags, 'organization', 'organization'),
      ...optional(flags, 'identified-by', 'identified_by'),
      ...(flags['recipient'] === undefined ? {} : { recipient: await recipientOf(file, flags['recipient']) }),
    };
    await append(file, [said], terminal);
  },
};

export const recordStatement: Command = {
  help: `Record what somebody said or did, in free words

Usage: strongroom ceremony record statement FILE --by NAME --text TEXT|-

Options:
  --by NAME      Who says it; "record person" introduced them
  --text TEXT|-  What, at most 4000 characters; - is stdin

Examples:
  strongroom ceremony record statement transcript.jsonl --by "Wanda Wit" --text "By my own watch it is 10:02 UTC."
  strongroom ceremony record statement transcript.jsonl --by "Alice Example" --text - < statement.txt
`,

  async run(argv, terminal) {
    const { file, flags } = transcriptAnd(argv, ['by', 'text']);
    const text = needed(flags, 'text');
    const said = text === '-' ? (await readInput('-', terminal)).replaceAll('\r\n', '\n').trim() : text;
    await append(file, [{ entry: 'statement', by: needed(flags, 'by'), text: said }], terminal);
  },
};

export const recordFile: Command = {
  help: `Record the digests of a file: an image, a row, a photograph

Usage: strongroom ceremony record file FILE --path FILE --about TEXT

The transcript holds the file's name, size, SHA-256 and SHA-384, and nothing of its content.

Options:
  --path FILE   The file; never one that holds a secret
  --about TEXT  What it is

Examples:
  strongroom ceremony record file transcript.jsonl --path image.eif --about "the image that was built here"
  strongroom ceremony record file transcript.jsonl --path row.json --about "ROOT_TOKEN_BOOTSTRAP as read from the table"
`,

  async run(argv, terminal) {
    const { file, flags } = transcriptAnd(argv, ['path', 'about']);
    const path = needed(flags, 'path');
    const digests = await digestsOf(path).catch(explained);
    await append(file, [{ entry: 'file', name: basename(path), about: needed(flags, 'about'), ...digests }], terminal);
  },
};

export const recordPcrs: Command = {
  help: `Record the PCR values of the image

Usage: strongroom ceremony record pcrs FILE --pcrs FILE

A PCR17 that is not that of the transcript's ceremony is refused: such an image was built with another ceremony.

Options:
  --pcrs FILE  pcrs.json, as "strongroom eif build" or nitro-cli writes it

Examples:
  strongroom ceremony record pcrs transcript.jsonl --pcrs build/image/pcrs.json
  strongroom ceremony record pcrs transcript.jsonl --pcrs release-pcrs.json
`,

  async run(argv, terminal) {
    const { file, flags } = transcriptAnd(argv, ['pcrs']);
    const registers = await readRegisters(needed(flags, 'pcrs'), terminal);
    await append(file, [{ entry: 'pcrs', registers }], terminal);
  },
};

export const recordEnd: Command = {
  help: `End the record: nothing can be added afterwards, and the page can be signed

Usage: strongroom ceremony record end FILE --by NAME

Prints the head, the digest that everybody notes on paper: it stands for every character of the record.

Options:
  --by NAME  Who ends it; "record person" introduced them

Examples:
  strongroom ceremony record end transcript.jsonl --by "Lea Lead"
  strongroom ceremony record end /media/usb/transcript.jsonl --by "Lea Lead"
`,

  async run(argv, terminal) {
    const { file, flags } = transcriptAnd(argv, ['by']);
    const last: Said = { entry: 'statement', by: needed(flags, 'by'), text: 'The record is complete.' };
    await append(file, [last, { entry: 'end' }], terminal);
  },
};

function transcriptAnd(argv: readonly string[], names: readonly string[]): { file: string; flags: Arguments['flags'] } {
  const { positionals, flags } = readArguments(argv, names, 1);
  const [file] = positionals;
  if (file === undefined) throw new CommandError('name the FILE of the transcript');
  return { file, flags };
}

function needed(flags: Arguments['flags'], name: string): string {
  const value = flags[name];
  if (value === undefined) throw new CommandError(`--${name} is needed`);
  return value;
}

function optional<Member extends string>(flags: Arguments['flags'], flag: string, member: Member) {
  const value = flags[flag];
  return (value === undefined ? {} : { [member]: value }) as { [Name in Member]?: string };
}

/** What is written by its number stands in the transcript in full. */
async function recipientOf(file: string, named: string): Promise<string> {
  const read = await readTranscriptFile(file).catch(explained);
  if (!read.ok) throw new CommandError(refusal(file, read));
  const [start] = read.entries;
  const recipients = start?.entry === 'start' ? start.ceremony.root_token_recipients : [];
  return recipients[recipientPosition(recipients, named)] ?? '';
}

function isRole(text: string): text is Role {
  return (ROLES as readonly string[]).includes(text);
}

async function append(file: string, said: readonly Said[], terminal: Terminal): Promise<void> {
  report(file, await appendToTranscript(file, said, new Date()).catch(explained), terminal);
}

/** Number and digest to stdout; to stderr the digest as one copies it. */
function report(file: string, appended: Appended, terminal: Terminal): void {
  if (!appended.ok) throw new CommandError(refusal(file, appended));
  const head = headOf(appended);
  const { length } = appended.entries;
  terminal.stdout.write(`${length} ${head}\n`);
  note(terminal, `strongroom: line ${length} is in ${file}; its digest, to note: ${grouped(head)}`);
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

async function digestsOf(path: string): Promise<{ bytes: number; sha256: string; sha384: string }> {
  const sha256 = createHash('sha256');
  const sha384 = createHash('sha384');
  let bytes = 0;
  for await (const part of createReadStream(path)) {
    bytes += (part as Buffer).length;
    sha256.update(part as Buffer);
    sha384.update(part as Buffer);
  }
  return { bytes, sha256: sha256.digest('hex'), sha384: sha384.digest('hex') };
}

function explained(error: unknown): never {
  throw fileProblem(error);
}
