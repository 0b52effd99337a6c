// `strongroom ceremony record pcrs`: the PCR values of the image, refused when they are of another ceremony.

import type { Description } from '../../../command-line/command.ts';
import { type Command, readArguments } from '../command.ts';
import { readRegisters } from '../registers-file.ts';
import { append, TRANSCRIPT } from './append.ts';

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
