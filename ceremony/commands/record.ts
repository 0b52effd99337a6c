// `strongroom ceremony record …`: what happens at a ceremony, as it happens, into a transcript: one file, whose lines
// are chained by their digests. Every command adds its line durably and prints the line's number and digest, which the
// participants may note on paper. No secret belongs into it: everybody who was there gets a copy.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import type { Description } from '../../command-line/command.ts';
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
import { type Command, CommandError, fileProblem, readArguments, type Terminal } from './command.ts';
import { readInput } from './input.ts';
import { recipientPosition } from './recipient.ts';
import { readRegisters } from './registers-file.ts';

const TRANSCRIPT = { name: 'FILE', meaning: 'The transcript' } as const;

const START = {
  summary: 'Begin the record of a ceremony: a new transcript',
  notes: ['A transcript that exists is never overwritten. Its first line holds the whole ceremony and its digest.'],
  argument: TRANSCRIPT,
  flags: {
    ceremony: {
      placeholder: 'FILE',
      required: true,
      meaning: 'The ceremony block by itself, or a configuration that has one',
    },
    title: { placeholder: 'TEXT', required: true, meaning: 'What is done, for the head of the page' },
    place: { placeholder: 'TEXT', meaning: 'Where' },
  },
  examples: [
    'strongroom ceremony record start transcript.jsonl --ceremony ceremony.yaml --title "Custody ceremony, mainnet-eu"',
    'strongroom ceremony record start t.jsonl --ceremony ceremony.yaml --title Rehearsal --place "Zurich, room 4"',
  ],
} as const satisfies Description;

export const recordStart: Command = {
  description: START,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, START, terminal);
    const ceremony = await readCeremonyFile(values.ceremony);
    const said: Said = {
      entry: 'start',
      format: TRANSCRIPT_FORMAT,
      title: values.title,
      ...optional('place', values.place),
      ceremony: structuredClone(ceremonyBlock(ceremony)) as Extract<Said, { entry: 'start' }>['ceremony'],
      ceremony_digest_sha384: ceremonyDigest(ceremony).toString('hex'),
    };
    report(file, await startTranscript(file, said, new Date()).catch(explained), terminal);
  },
};

const PERSON = {
  summary: 'Record who is there, and in which role',
  argument: TRANSCRIPT,
  flags: {
    name: { placeholder: 'NAME', required: true, meaning: 'As the person signs; statements name it' },
    role: {
      placeholder: 'ROLE',
      required: true,
      choices: ROLES,
      meaning: `What the person is there for: ${ROLES.join(', ')}`,
    },
    organization: { placeholder: 'TEXT', meaning: 'Whom the person acts for' },
    'identified-by': { placeholder: 'TEXT', meaning: 'How the others know who it is: "passport seen by the witness"' },
    recipient: {
      placeholder: 'N|age1…',
      meaning: 'The recipient whose identity this person holds, by its number in the ceremony or in full',
    },
  },
  examples: [
    'strongroom ceremony record person transcript.jsonl --name "Alice Example" --role participant --recipient 1',
    'strongroom ceremony record person transcript.jsonl --name "Wanda Wit" --role witness --organization "Audit Ltd"',
  ],
} as const satisfies Description;

export const recordPerson: Command = {
  description: PERSON,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, PERSON, terminal);
    const { role, recipient } = values;
    if (!isRole(role)) throw new CommandError(`--role is one of ${ROLES.join(', ')}`);
    const said: Said = {
      entry: 'person',
      name: values.name,
      role,
      ...optional('organization', values.organization),
      ...optional('identified_by', values['identified-by']),
      ...(recipient === undefined ? {} : { recipient: await recipientOf(file, recipient) }),
    };
    await append(file, [said], terminal);
  },
};

const STATEMENT = {
  summary: 'Record what somebody said or did, in free words',
  argument: TRANSCRIPT,
  flags: {
    by: { placeholder: 'NAME', required: true, meaning: 'Who says it; "record person" introduced them' },
    text: { placeholder: 'TEXT', required: true, meaning: 'What, at most 4000 characters; - is stdin' },
  },
  examples: [
    'strongroom ceremony record statement transcript.jsonl --by "Wanda Wit" --text "By my own watch it is 10:02 UTC."',
    'strongroom ceremony record statement transcript.jsonl --by "Alice Example" --text - < statement.txt',
  ],
} as const satisfies Description;

export const recordStatement: Command = {
  description: STATEMENT,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, STATEMENT, terminal);
    const { by, text } = values;
    const said = text === '-' ? (await readInput('-', terminal)).replaceAll('\r\n', '\n').trim() : text;
    await append(file, [{ entry: 'statement', by, text: said }], terminal);
  },
};

const FILE = {
  summary: 'Record the digests of a file: an image, a row, a photograph',
  notes: ["The transcript holds the file's name, size, SHA-256 and SHA-384, and nothing of its content."],
  argument: TRANSCRIPT,
  flags: {
    path: { placeholder: 'FILE', required: true, meaning: 'The file; never one that holds a secret' },
    about: { placeholder: 'TEXT', required: true, meaning: 'What it is' },
  },
  examples: [
    'strongroom ceremony record file transcript.jsonl --path image.eif --about "the image that was built here"',
    'strongroom ceremony record file transcript.jsonl --path row.json --about "ROOT_TOKEN_BOOTSTRAP as read from the table"',
  ],
} as const satisfies Description;

export const recordFile: Command = {
  description: FILE,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, FILE, terminal);
    const { path, about } = values;
    const digests = await digestsOf(path).catch(explained);
    await append(file, [{ entry: 'file', name: basename(path), about, ...digests }], terminal);
  },
};

const PCRS = {
  summary: 'Record the PCR values of the image',
  notes: [
    "A PCR17 that is not that of the transcript's ceremony is refused: such an image was built with another ceremony.",
  ],
  argument: TRANSCRIPT,
  flags: {
    pcrs: {
      placeholder: 'FILE',
      required: true,
      meaning: 'pcrs.json, as "strongroom eif build" or nitro-cli writes it',
    },
  },
  examples: [
    'strongroom ceremony record pcrs transcript.jsonl --pcrs build/image/pcrs.json',
    'strongroom ceremony record pcrs transcript.jsonl --pcrs release-pcrs.json',
  ],
} as const satisfies Description;

export const recordPcrs: Command = {
  description: PCRS,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, PCRS, terminal);
    const registers = await readRegisters(values.pcrs, terminal);
    await append(file, [{ entry: 'pcrs', registers }], terminal);
  },
};

const END = {
  summary: 'End the record: nothing can be added afterwards, and the page can be signed',
  notes: ['Prints the head, the digest that everybody notes on paper: it stands for every character of the record.'],
  argument: TRANSCRIPT,
  flags: { by: { placeholder: 'NAME', required: true, meaning: 'Who ends it; "record person" introduced them' } },
  examples: [
    'strongroom ceremony record end transcript.jsonl --by "Lea Lead"',
    'strongroom ceremony record end /media/usb/transcript.jsonl --by "Lea Lead"',
  ],
} as const satisfies Description;

export const recordEnd: Command = {
  description: END,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, END, terminal);
    const last: Said = { entry: 'statement', by: values.by, text: 'The record is complete.' };
    await append(file, [last, { entry: 'end' }], terminal);
  },
};

function optional<Member extends string>(member: Member, value: string | undefined) {
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
