// `strongroom ceremony record statement`: what somebody said or did, in free words.

import { RECORD_STATEMENT } from '../../descriptions/transcript.ts';
import { type Command, readArguments } from '../command.ts';
import { readInput } from '../input.ts';
import { append } from './append.ts';

export const recordStatement: Command = {
  description: RECORD_STATEMENT,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, RECORD_STATEMENT, terminal);
    const { by, text } = values;
    const said = text === '-' ? (await readInput('-', terminal)).replaceAll('\r\n', '\n').trim() : text;
    await append(file, [{ entry: 'statement', by, text: said }], terminal);
  },
};
