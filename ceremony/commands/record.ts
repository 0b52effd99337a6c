// `strongroom ceremony record …`. Each command adds its lines durably and prints the last one's number and digest. No
// secret belongs into a transcript: every participant gets a copy.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { readShownEvidence } from '../../common/attestation/shown-evidence.ts';
import { command } from '../../common/command-line/program.ts';
import { note } from '../../common/command-line/terminal.ts';
import { parseStrictJson } from '../../common/formats/strict-json.ts';
import { ceremonyBlock, ceremonyDigest, isDeploymentId, isNetwork } from '../definition.ts';
import { type Transcript, transcriptHead } from '../transcript/chain.ts';
import { DEED_TERMS, lackingIn, peopleIn } from '../transcript/day.ts';
import {
  CONTENTS,
  DEEDS,
  type Deed,
  type EntryDraft,
  ROLES,
  SIGNERS,
  TRANSCRIPT_FORMAT,
} from '../transcript/entries.ts';
import {
  type Appended,
  appendToTranscript,
  newFileOf,
  readTranscriptFile,
  startTranscript,
} from '../transcript/file.ts';
import { judgeOrigin, type Stated } from '../transcript/origin.ts';
import { groupedDigits } from '../transcript/page.ts';
import { TRANSCRIPT } from './arguments.ts';
import { readCeremonyFile } from './ceremony-file.ts';
import { type CeremonyTerminal, CommandError, documentsOf, fileProblem } from './command.ts';
import { readCeremonyInput } from './input.ts';
import { recipientPosition } from './recipient.ts';
import { readRegisters } from './registers-file.ts';

export const recordStart = command(
  {
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
      signers: {
        placeholder: 'KIND',
        choices: SIGNERS,
        meaning: 'What runs with this ceremony: enclaves, or ordinary hosts, which prove less (default: enclaves)',
      },
    },
    examples: [
      'strongroom ceremony record start transcript.jsonl --ceremony ceremony.yaml --title "Custody ceremony, mainnet-eu"',
      'strongroom ceremony record start t.jsonl --ceremony ceremony.yaml --title Rehearsal --place "Zurich, room 4"',
    ],
  },

  async ({ argument: file, values }, terminal: CeremonyTerminal) => {
    const ceremony = await readCeremonyFile(values.ceremony);
    const said: EntryDraft = {
      entry: 'start',
      format: TRANSCRIPT_FORMAT,
      title: values.title,
      ...optional('place', values.place),
      signers: chosen(SIGNERS, values.signers ?? 'enclaves', '--signers'),
      ceremony: structuredClone(ceremonyBlock(ceremony)) as Extract<EntryDraft, { entry: 'start' }>['ceremony'],
      ceremony_digest_sha384: ceremonyDigest(ceremony).toString('hex'),
    };
    await report(file, startTranscript(file, said, new Date()), terminal);
  },
);

export const recordPerson = command(
  {
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
      'identified-by': {
        placeholder: 'TEXT',
        meaning: 'How the others know who it is: "passport seen by the witness"',
      },
      recipient: {
        placeholder: 'N|age1…',
        meaning: 'The recipient whose identity this person holds, by its number in the ceremony or in full',
      },
      'custody-key': {
        placeholder: 'N|arn:…',
        meaning:
          'The custody key that this custodian grants and revokes, by its number in the ceremony or an ARN of it',
      },
    },
    notes: [
      'The same person may be recorded again, in the same role, to add what was not said the first time: a custody key, ' +
        'a recipient, how they were identified.',
    ],
    examples: [
      'strongroom ceremony record person transcript.jsonl --name "Alice Example" --role participant --recipient 1',
      'strongroom ceremony record person transcript.jsonl --name "Carol Example" --role custodian --custody-key 2',
    ],
  },

  async ({ argument: file, values }, terminal: CeremonyTerminal) => {
    const { recipient, 'custody-key': key } = values;
    const said: EntryDraft = {
      entry: 'person',
      name: values.name,
      role: chosen(ROLES, values.role, '--role'),
      ...optional('organization', values.organization),
      ...optional('identified_by', values['identified-by']),
      ...(recipient === undefined ? {} : { recipient: await recipientOf(file, recipient) }),
      ...(key === undefined ? {} : { custody_key: await custodyKeyOf(file, key) }),
    };
    await append(file, [said], terminal);
  },
);

/** What is written by its number stands in the transcript in full. */
async function recipientOf(file: string, named: string): Promise<string> {
  const { entries } = await readRecord(file);
  const [start] = entries;
  const recipients = start?.entry === 'start' ? start.ceremony.root_token_recipients : [];
  return recipients[recipientPosition(recipients, named)] ?? '';
}

async function custodyKeyOf(file: string, named: string): Promise<number> {
  const { entries } = await readRecord(file);
  const [start] = entries;
  const keys = start?.entry === 'start' ? start.ceremony.kms_keys : [];
  const number = /^[1-9]\d*$/.test(named) ? Number(named) : keys.findIndex(({ arns }) => arns.includes(named)) + 1;
  if (number >= 1 && number <= keys.length) return number;
  throw new CommandError(
    `--custody-key is none of the ceremony’s kms_keys: give its number, 1 to ${keys.length}, or one of its ARNs`,
  );
}

/** @throws CommandError */
function chosen<Choice extends string>(choices: readonly Choice[], text: string, flag: string): Choice {
  const choice = choices.find((one) => asWritten(one) === text);
  if (choice !== undefined) return choice;
  throw new CommandError(`${flag} is one of ${choices.map(asWritten).join(', ')}`);
}

/** In a transcript with a low line, on a command line with a hyphen. */
function asWritten(choice: string): string {
  return choice.replaceAll('_', '-');
}

export const recordStatement = command(
  {
    summary: 'Record what somebody said or did, in free words or in those that the day asks for',
    notes: [
      'Deeds that the day asks for: ' +
        DEEDS.map((deed) => `${asWritten(deed)} (${DEED_TERMS[deed].role})`).join(', ') +
        '. A custodian is introduced with --custody-key, a participant who opens the root token with --recipient. Each ' +
        'deed but said-time has words of its own, which --text replaces.',
    ],
    argument: TRANSCRIPT,
    flags: {
      by: { placeholder: 'NAME', required: true, meaning: 'Who says it; "record person" introduced them' },
      did: { placeholder: 'DEED', choices: DEEDS.map(asWritten), meaning: 'What they did, for "record end" to find' },
      text: { placeholder: 'TEXT', meaning: 'What they say, at most 4000 characters; - is stdin' },
    },
    examples: [
      'strongroom ceremony record statement transcript.jsonl --by "Wanda Wit" --did said-time --text "By my watch it is 10:02 UTC."',
      'strongroom ceremony record statement transcript.jsonl --by "Carol Example" --did revoked-encrypt',
    ],
  },

  async ({ argument: file, values }, terminal: CeremonyTerminal) => {
    const { by, text } = values;
    const did = values.did === undefined ? undefined : chosen(DEEDS, values.did, '--did');
    const given = text === '-' ? (await readCeremonyInput('-', terminal)).replaceAll('\r\n', '\n').trim() : text;
    const words = given ?? (await wordsOf(file, by, did));
    await append(file, [{ entry: 'statement', by, ...(did === undefined ? {} : { did }), text: words }], terminal);
  },
);

async function wordsOf(file: string, by: string, did: Deed | undefined): Promise<string> {
  const words = did === undefined ? undefined : DEED_TERMS[did].words;
  if (words === undefined) throw new CommandError('--text TEXT is needed: nobody else can say it');
  const speaker = peopleIn((await readRecord(file)).entries).find(({ name }) => name === by);
  return words(speaker ?? { name: by, role: 'custodian', custodyKeys: [] });
}

export const recordFile = command(
  {
    summary: 'Record the digests of a file: an image, a row, a photograph',
    notes: ["The transcript holds the file's name, size, SHA-256 and SHA-384, and nothing of its content."],
    argument: TRANSCRIPT,
    flags: {
      path: { placeholder: 'FILE', required: true, meaning: 'The file; never one that holds a secret' },
      about: { placeholder: 'TEXT', required: true, meaning: 'What it is' },
      holds: {
        placeholder: 'CONTENT',
        choices: CONTENTS.map(asWritten),
        meaning: `What the day asks for is in it: ${CONTENTS.map(asWritten).join(', ')}`,
      },
    },
    examples: [
      'strongroom ceremony record file transcript.jsonl --path image.eif --about "the image that was built here"',
      'strongroom ceremony record file transcript.jsonl --path row.json --holds root-token-row --about "as read from the table"',
    ],
  },

  async ({ argument: file, values }, terminal: CeremonyTerminal) => {
    const { path, about, holds } = values;
    const content = holds === undefined ? {} : { holds: chosen(CONTENTS, holds, '--holds') };
    const digests = await digestsOf(path).catch((error: unknown) => {
      throw fileProblem(error, path);
    });
    await append(file, [{ entry: 'file', name: basename(path), about, ...content, ...digests }], terminal);
  },
);

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

export const recordPcrs = command(
  {
    summary: 'Record the PCR values of the image',
    notes: [
      "A PCR17 that is not that of the transcript's ceremony, or of the one before it that it names, is refused: such an " +
        'image was built with another ceremony.',
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
  },

  async ({ argument: file, values }, terminal: CeremonyTerminal) => {
    const registers = await readRegisters(values.pcrs, terminal);
    await append(file, [{ entry: 'pcrs', registers }], terminal);
  },
);

export const recordMasterKey = command(
  {
    summary: 'Record who made the master key, as its evidence proves',
    notes: [
      'Takes the answer of "operator status --json", asked over an attested connection before the first key exists. The ' +
        "transcript keeps the attestation documents themselves. They are refused unless enclaves of this transcript's " +
        'ceremony made them, of images whose PCR values are recorded already ("record pcrs").',
    ],
    argument: TRANSCRIPT,
    flags: {
      status: { placeholder: 'FILE', required: true, meaning: 'What "operator status --json" printed; - is stdin' },
      deployment: {
        placeholder: 'ID',
        required: true,
        meaning: 'signer_state.deployment_id, or the name of the state table',
      },
      network: { placeholder: '0xROOT', required: true, meaning: 'The genesis validators root of the network' },
    },
    examples: [
      'strongroom ceremony record master-key transcript.jsonl --status status.json --deployment strongroom-state --network 0x4b36…',
      'strongroom operator status --json | strongroom ceremony record master-key t.jsonl --status - --deployment d --network 0x4b36…',
    ],
  },

  async ({ argument: file, values }, terminal: CeremonyTerminal) => {
    const { status, deployment: id, network } = values;
    if (!isNetwork(network)) throw new CommandError('--network is 0x and 64 characters of hex in lower case');
    if (!isDeploymentId(id)) throw new CommandError('--deployment has characters that no deployment has');
    const stated = { deployment: { network, id }, ...(await readOrigin(status, terminal)) };
    const { entries } = await readRecord(file);
    const judged = judgeOrigin(entries, stated, documentsOf(terminal));
    if (!judged.ok) throw new CommandError(`${status}: its evidence is refused (${judged.fault}): ${judged.detail}`);
    await append(file, [{ entry: 'master_key', ...stated }], terminal);
  },
);

async function readOrigin(file: string, terminal: CeremonyTerminal): Promise<Omit<Stated, 'deployment'>> {
  const parsed = parseStrictJson(Buffer.from(await readCeremonyInput(file, terminal)));
  const shown = parsed.kind === 'refused' ? undefined : readShownEvidence(parsed.value);
  if (shown?.key === undefined)
    throw new CommandError(`${file} is no status of a signer that shows where its master key comes from`);
  const token = shown.rows.find(({ purpose }) => purpose === 'root_token')?.evidence;
  return { record: shown.record, evidence: shown.key, ...optional('root_token', token) };
}

export const recordEnd = command(
  {
    summary: 'End the record: nothing can be added afterwards, and the page can be signed',
    notes: [
      'A record that lacks what the day asks for is not ended: every thing is named, and nothing is written. With ' +
        '--incomplete it ends, and its page and every verification say what it lacks.',
      'Prints the head, the digest that everybody notes on paper: it stands for every character of the record.',
    ],
    argument: TRANSCRIPT,
    flags: {
      by: { placeholder: 'NAME', required: true, meaning: 'Who ends it; "record person" introduced them' },
      incomplete: { meaning: 'End a record that lacks something' },
    },
    examples: [
      'strongroom ceremony record end transcript.jsonl --by "Lea Lead"',
      'strongroom ceremony record end /media/usb/transcript.jsonl --by "Lea Lead"',
    ],
  },

  async ({ argument: file, values }, terminal: CeremonyTerminal) => {
    const { by, incomplete } = values;
    const lacking = lackingIn((await readRecord(file)).entries);
    const complete = lacking.length === 0;
    if (!complete && !incomplete) {
      throw new CommandError(
        `${file} lacks what the day asks for; nothing was written:\n${listed(lacking)}\n` +
          'Record it, or end the record without it: --incomplete. The page will say so.',
      );
    }
    const words = complete ? 'The record is complete.' : 'The record ends, and it is not complete.';
    await append(
      file,
      [
        { entry: 'statement', by, text: words },
        { entry: 'end', complete },
      ],
      terminal,
    );
    if (!complete) note(terminal, `strongroom: the record ended without this:\n${listed(lacking)}`);
  },
);

function listed(lacking: readonly string[]): string {
  return lacking.map((sentence) => `  - ${sentence}`).join('\n');
}

async function append(file: string, said: readonly EntryDraft[], terminal: CeremonyTerminal): Promise<void> {
  await report(file, appendToTranscript(file, said, new Date()).catch(absent(file)), terminal);
}

/** Number and digest to stdout, for programs; to stderr the digest as one copies it. @throws CommandError */
async function report(file: string, appending: Promise<Appended>, terminal: CeremonyTerminal): Promise<void> {
  const appended = await appending.catch((error: unknown) => {
    throw fileProblem(error, file);
  });
  if (!appended.ok) throw new CommandError(refusal(file, appended));
  const head = transcriptHead(appended);
  const { length } = appended.entries;
  // A terminal that shows both would show the digest twice.
  if (terminal.stdout.isTTY !== true || terminal.stderr.isTTY !== true) terminal.stdout.write(`${length} ${head}\n`);
  note(terminal, `strongroom: line ${length} is in ${file}; its digest, to note:`, groupedDigits(head));
}

async function readRecord(file: string): Promise<Transcript> {
  const read = await readTranscriptFile(file).catch(absent(file));
  if (!read.ok) throw new CommandError(refusal(file, read));
  return read;
}

function optional<Member extends string>(member: Member, value: string | undefined) {
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
