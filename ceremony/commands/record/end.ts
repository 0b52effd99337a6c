// `strongroom ceremony record end`: from then on the record takes nothing more, and its page can be signed.

import type { Description } from '../../../command-line/command.ts';
import type { Said } from '../../transcript/entries.ts';
import { type Command, readArguments } from '../command.ts';
import { append, TRANSCRIPT } from './append.ts';

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
