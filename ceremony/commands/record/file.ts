// `strongroom ceremony record file`: the digests of a file, and nothing of its content.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import type { Description } from '../../../command-line/command.ts';
import { type Command, fileProblem, readArguments } from '../command.ts';
import { append, TRANSCRIPT } from './append.ts';

const FILE = {
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

export const recordFile: Command = {
  description: FILE,

  async run(argv, terminal) {
    const { argument: file, values } = readArguments(argv, FILE, terminal);
    const { path, about } = values;
    const digests = await digestsOf(path).catch((error: unknown) => {
      throw fileProblem(error);
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
