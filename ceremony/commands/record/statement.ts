// `strongroom ceremony record statement`: what somebody said or did, in free words.

import type { Description } from '../../../command-line/command.ts';
import { type Command, readArguments } from '../command.ts';
import { readInput } from '../input.ts';
import { append, TRANSCRIPT } from './append.ts';

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
