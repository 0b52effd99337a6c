// `strongroom ceremony record file`: the digests of a file, and nothing of its content.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { RECORD_FILE } from '../../descriptions/transcript.ts';
import { type Command, fileProblem, readArguments } from '../command.ts';
import { append } from './append.ts';

export const recordFile: Command = {
  description: RECORD_FILE,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, RECORD_FILE, terminal);
    const { path, about } = values;
    const digests = await digestsOf(path).catch((error: unknown) => {
      throw fileProblem(error, path);
    });
    await append(file, [{ entry: 'file', name: basename(path), about, ...digests }], terminal);
  },
};

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
