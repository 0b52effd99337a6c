// The thread that writes the files of a log of receipts, apart because a worker is a file: a write that it makes in one
// call costs the signer's own thread nothing, where four calls of its pool wake it four times. What it is sent is what
// it writes, whole and on the disk before it answers.

import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { syncFolderNow } from '../common/command-line/sync-folder.ts';

export const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

export interface WriteRequest {
  readonly id: number;
  /** Of one boot. */
  readonly folder: string;
  readonly files: readonly { readonly path: string; readonly content: Uint8Array }[];
}

export interface WriteReply {
  readonly id: number;
  readonly error?: { readonly message: string; readonly code: string | undefined };
}

parentPort?.on('message', (request: WriteRequest) => parentPort?.postMessage(answer(request)));

function answer({ id, folder, files }: WriteRequest): WriteReply {
  try {
    for (const { path, content } of files) writeNew(join(folder, `${path}.new`), content);
    for (const { path } of files) renameSync(join(folder, `${path}.new`), join(folder, path));
    for (const path of new Set(files.flatMap(({ path }) => foldersOf(path)))) syncFolderNow(join(folder, path));
    return { id };
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    return { id, error: { message, code } };
  }
}

function writeNew(target: string, content: Uint8Array): void {
  const write = (): void => writeFileSync(target, content, { mode: FILE_MODE, flush: true });
  try {
    write();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    mkdirSync(dirname(target), { recursive: true, mode: FOLDER_MODE });
    write();
  }
}

/**
 * The file's folder and its parents, up to the folder of all boots: a new folder is durable when its parent is synced.
 */
function foldersOf(path: string): string[] {
  const folders = ['..'];
  for (let above = dirname(path); above !== '.'; above = dirname(above)) folders.push(above);
  return ['.', ...folders];
}
