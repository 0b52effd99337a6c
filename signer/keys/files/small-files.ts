// Reads small files whole, in Buffers that the caller can wipe. Anything but a regular file (a pipe would block for
// ever) and anything larger than its limit is refused.

import { createHmac, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

type FileContent = { readonly content: Buffer } | { readonly refused: string };

export async function readSmallFile(path: string, maximumBytes: number): Promise<FileContent> {
  let file: FileHandle | undefined;
  try {
    // O_NONBLOCK: opening a pipe must not wait for its writer.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = await file.stat();
    if (!stat.isFile()) return { refused: 'not a regular file' };
    if (stat.size > maximumBytes) return { refused: `larger than ${maximumBytes} bytes` };
    return await readAll(file, stat.size);
  } catch (error) {
    return { refused: describe(error) };
  } finally {
    await file?.close();
  }
}

const CONTENTS_KEY = randomBytes(32);

/** Equal for equal contents, in this process; says nothing of them without its key. */
export function contentsOf(...files: readonly Uint8Array[]): string {
  const digest = createHmac('sha256', CONTENTS_KEY);
  for (const file of files) digest.update(`${file.length}:`).update(file);
  return digest.digest('base64');
}

async function readAll(file: FileHandle, sizeBytes: number): Promise<FileContent> {
  const content = Buffer.alloc(sizeBytes);
  let filled = 0;
  try {
    while (filled < sizeBytes) {
      const { bytesRead } = await file.read(content, filled, sizeBytes - filled);
      if (bytesRead === 0) return { refused: 'shortened while it was read' };
      filled += bytesRead;
    }
    return { content };
  } finally {
    if (filled < sizeBytes) content.fill(0);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'too many symbolic links',
};

function describe(error: unknown): string {
  if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) throw error;
  return REASONS[error.code] ?? `cannot be read (${error.code})`;
}
