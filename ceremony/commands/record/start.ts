// `strongroom ceremony record start`: a new transcript, which begins with the whole ceremony and its digest. One that
// exists is never overwritten.

import type { Description } from '../../../command-line/command.ts';
import { ceremonyBlock, ceremonyDigest } from '../../definition.ts';
import { type Said, TRANSCRIPT_FORMAT } from '../../transcript/entries.ts';
import { startTranscript } from '../../transcript/file.ts';
import { readCeremonyFile } from '../ceremony-file.ts';
import { type Command, readArguments } from '../command.ts';
import { optional, report, TRANSCRIPT } from './append.ts';

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
    await report(file, startTranscript(file, said, new Date()), terminal);
  },
};
