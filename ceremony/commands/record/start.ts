// `strongroom ceremony record start`: a new transcript, which begins with the whole ceremony and its digest. One that
// exists is never overwritten.

import { ceremonyBlock, ceremonyDigest } from '../../definition.ts';
import { RECORD_START } from '../../descriptions/transcript.ts';
import { type Said, TRANSCRIPT_FORMAT } from '../../transcript/entries.ts';
import { startTranscript } from '../../transcript/file.ts';
import { readCeremonyFile } from '../ceremony-file.ts';
import { type Command, readArguments } from '../command.ts';
import { optional, report } from './append.ts';

export const recordStart: Command = {
  description: RECORD_START,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, RECORD_START, terminal);
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
