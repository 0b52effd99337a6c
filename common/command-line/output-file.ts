// What a command writes where `--output FILE` says: whole or not at all, for its owner alone, and never over a file
// that exists unless `--force` says so.

import { randomBytes } from 'node:crypto';
import { type FileHandle, link, open, rename, rm, stat } from 'node:fs/promises';
import type { Flags } from './command.ts';
import { adviceOn, shownErrorCode } from './file-faults.ts';
import { bounded } from './text.ts';

const MAX_PATH_CHARACTERS = 200;
const OWNER_ONLY = 0o600;

export function outputFile(meaning: string) {
  return { output: { placeholder: 'FILE', isOutputFile: true, meaning } as const, ...FORCE };
}

const FORCE = { force: { meaning: 'Overwrite the file of --output' } } as const satisfies Flags;

export class OutputFileError extends Error {
  readonly advice: string | undefined;

  constructor(path: string, problem: string, advice?: string) {
    super(`${bounded(path, MAX_PATH_CHARACTERS)} ${problem}`);
    this.name = 'OutputFileError';
    this.advice = advice;
  }
}

export async function checkOutput(path: string, isForced: boolean): Promise<void> {
  const there = await stat(path).catch(() => undefined);
  if (there?.isDirectory()) throw new OutputFileError(path, 'cannot be written (EISDIR)', adviceOn('EISDIR'));
  if (there !== undefined && !isForced) throw existsAlready(path);
  // A rename would take /dev/null from the whole machine.
  if (there?.isFile() === false) throw new OutputFileError(path, 'is no regular file: name another one');
}

/**
 * Writes a partial file in the same folder, and renames it when it is whole: a broken file never looks whole.
 * @throws OutputFileError
 */
export async function writeOutput(path: string, isForced: boolean, write: (file: FileHandle) => Promise<void>) {
  await checkOutput(path, isForced);
  const partial = partialOf(path);
  const file = await open(partial, 'wx', OWNER_ONLY).catch(refused(path));
  try {
    try {
      await write(file);
      await file.sync().catch(refused(path));
    } finally {
      await file.close();
    }
    await place(partial, path, isForced);
  } finally {
    await rm(partial, { force: true });
  }
}

/** The place is made before anything else is done, so that a result is never without one. @throws OutputFileError */
export async function withOutput(path: string, isForced: boolean, run: () => Promise<string>): Promise<void> {
  if (isForced) await checkOutput(path, true);
  const written = isForced ? partialOf(path) : path;
  const file = await open(written, 'wx', OWNER_ONLY).catch(refused(path));
  try {
    const text = await run().catch(async (error: unknown) => {
      await rm(written, { force: true });
      throw error;
    });
    await file.writeFile(text).catch(refused(path));
    await file.sync();
  } finally {
    await file.close();
  }
  if (isForced) await rename(written, path).catch(keptIn(path, written));
}

function keptIn(path: string, written: string): (error: unknown) => never {
  return (error) => {
    throw new OutputFileError(
      path,
      `cannot be replaced (${shownErrorCode(error)}): what was to be in it is in ${written}`,
    );
  };
}

function partialOf(path: string): string {
  return `${path}.${randomBytes(6).toString('hex')}.partial`;
}

/** Another program may have made the file in the meantime: that file is not replaced, either. */
async function place(partial: string, path: string, isForced: boolean): Promise<void> {
  const linked = isForced ? false : await link(partial, path).then(() => true, withoutLinks(path));
  if (!linked) await rename(partial, path).catch(refused(path));
}

/** FAT has no links: there the file is only looked for before it is renamed. */
function withoutLinks(path: string): (error: unknown) => Promise<false> {
  return async (error) => {
    const code = shownErrorCode(error);
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(code)) refused(path)(error);
    await checkOutput(path, false);
    return false;
  };
}

function refused(path: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof OutputFileError) throw error;
    const code = shownErrorCode(error);
    throw code === 'EEXIST'
      ? existsAlready(path)
      : new OutputFileError(path, `cannot be written (${code})`, adviceOn(code));
  };
}

function existsAlready(path: string): OutputFileError {
  return new OutputFileError(path, 'exists already: name another file, or overwrite it with --force');
}
