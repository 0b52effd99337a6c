// `strongroom ceremony record pcrs`: the PCR values of the image, refused when they are of another ceremony.

import { RECORD_PCRS } from '../../descriptions/transcript.ts';
import { type Command, readArguments } from '../command.ts';
import { readRegisters } from '../registers-file.ts';
import { append } from './append.ts';

export const recordPcrs: Command = {
  description: RECORD_PCRS,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, RECORD_PCRS, terminal);
    const registers = await readRegisters(values.pcrs, terminal);
    await append(file, [{ entry: 'pcrs', registers }], terminal);
  },
};
