// What `ceremony record …` and `ceremony transcript …` say of themselves.

import type { Description } from '../../command-line/command.ts';
import { ROLES, TRANSCRIPT } from './arguments.ts';

export const RECORD_START = {
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

export const RECORD_PERSON = {
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

export const RECORD_STATEMENT = {
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

export const RECORD_FILE = {
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

export const RECORD_PCRS = {
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

export const RECORD_END = {
  summary: 'End the record: nothing can be added afterwards, and the page can be signed',
  notes: ['Prints the head, the digest that everybody notes on paper: it stands for every character of the record.'],
  argument: TRANSCRIPT,
  flags: { by: { placeholder: 'NAME', required: true, meaning: 'Who ends it; "record person" introduced them' } },
  examples: [
    'strongroom ceremony record end transcript.jsonl --by "Lea Lead"',
    'strongroom ceremony record end /media/usb/transcript.jsonl --by "Lea Lead"',
  ],
} as const satisfies Description;

export const TRANSCRIPT_VERIFY = {
  summary: 'Verify the record of a ceremony: whole, in order, of this ceremony, as noted on paper',
  notes: [
    'Every line holds the SHA-256 of the line before, so what was changed, removed, inserted or moved inside is found, ' +
      'and a record without its end is refused. Whoever has the file could write all of it anew: only --head shows that.',
  ],
  argument: TRANSCRIPT,
  flags: {
    head: { placeholder: 'HEX', meaning: 'The head that you noted on paper; blanks between its digits are ignored' },
    ceremony: { placeholder: 'FILE', meaning: 'The ceremony that the record must be of' },
    pcrs: { placeholder: 'FILE', meaning: 'The PCR values that the record must have (pcrs.json)' },
    unfinished: { meaning: 'Accept a record that has not ended' },
  },
  examples: [
    'strongroom ceremony transcript verify transcript.jsonl --head "9f86d081 884c7d65 …" --ceremony ceremony.yaml',
    'strongroom ceremony transcript verify transcript.jsonl --unfinished',
  ],
} as const satisfies Description;

export const TRANSCRIPT_PAGE = {
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
} as const satisfies Description;
