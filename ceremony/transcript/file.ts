// The file of a transcript. A line is either completely there or not at all, and two writers cannot fork the chain
// (specification/custody.md#transcript).

import { createReadStream } from 'node:fs';
import { lstat, open, realpath, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncFolder } from '../../common/command-line/sync-folder.ts';
import { errorCode } from '../../common/formats/error-code.ts';
import {
  EMPTY_TRANSCRIPT,
  following,
  MAX_TRANSCRIPT_BYTES,
  type ReadTranscript,
  readTranscript,
  type Transcript,
} from './chain.ts';
import type { EntryDraft } from './entries.ts';

export type Appended =
  | ({ readonly ok: true } & Transcript)
  | { readonly ok: false; readonly refusal: 'exists' | 'busy' }
  | Extract<ReadTranscript, { ok: false }>;

export async function readTranscriptFile(path: string): Promise<ReadTranscript & { readonly bytes: Buffer }> {
  const parts: Buffer[] = [];
  // `end` is inclusive: one byte more than a transcript may have, which is enough to refuse it.
  for await (const part of createReadStream(path, { end: MAX_TRANSCRIPT_BYTES })) parts.push(part as Buffer);
  const bytes = Buffer.concat(parts);
  return { ...readTranscript(bytes), bytes };
}

export async function startTranscript(path: string, said: EntryDraft, at: Date): Promise<Appended> {
  return alone(path, async ({ write, putInPlace }) => {
    // A hard link would never replace, but the sticks that people carry transcripts on have none (FAT, exFAT).
    if (await isThere(path)) return { ok: false, refusal: 'exists' };
    const first = following(EMPTY_TRANSCRIPT, said, at);
    if (!first.ok) return first;
    await write(first.bytes);
    await putInPlace();
    return first;
  });
}

export async function appendToTranscript(path: string, said: readonly EntryDraft[], at: Date): Promise<Appended> {
  const file = await realpath(path);
  return alone(file, async ({ write, putInPlace }) => {
    const read = await readTranscriptFile(file);
    if (!read.ok) return read;
    let transcript: ReadTranscript = read;
    const parts = [read.bytes];
    for (const one of said) {
      const next = following(transcript, one, at);
      if (!next.ok) return next;
      parts.push(next.bytes);
      transcript = next;
    }
    const bytes = Buffer.concat(parts);
    if (bytes.length > MAX_TRANSCRIPT_BYTES) return { ok: false, line: 0, problem: 'is full' };
    await write(bytes);
    await putInPlace();
    return transcript;
  });
}

export function newFileOf(path: string): string {
  return `${path}.new`;
}

interface NewFile {
  write(bytes: Buffer): Promise<void>;
  /** Renames the new file over the transcript. From then on the new file's name may belong to another writer. */
  putInPlace(): Promise<void>;
}

async function alone(path: string, work: (file: NewFile) => Promise<Appended>): Promise<Appended> {
  const newFile = newFileOf(path);
  const handle = await open(newFile, 'wx').catch((error: unknown) => {
    if (errorCode(error) === 'EEXIST') return undefined;
    throw error;
  });
  if (handle === undefined) return { ok: false, refusal: 'busy' };
  let isOurs = true;
  try {
    return await work({
      write: async (bytes) => {
        await handle.writeFile(bytes);
        await handle.sync();
      },
      putInPlace: async () => {
        await rename(newFile, path);
        isOurs = false;
        await syncFolder(dirname(path));
      },
    });
  } finally {
    await handle.close();
    if (isOurs) await rm(newFile);
  }
}

/** Also a link that leads nowhere. */
async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false;
    throw error;
  }
}
