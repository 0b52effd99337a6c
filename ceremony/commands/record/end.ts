// `strongroom ceremony record end`: from then on the record takes nothing more, and its page can be signed.

import { RECORD_END } from '../../descriptions/transcript.ts';
import type { Said } from '../../transcript/entries.ts';
import { type Command, readArguments } from '../command.ts';
import { append } from './append.ts';

export const recordEnd: Command = {
  description: RECORD_END,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, RECORD_END, terminal);
    const last: Said = { entry: 'statement', by: values.by, text: 'The record is complete.' };
    await append(file, [last, { entry: 'end' }], terminal);
  },
};
