// What a command writes where `--output FILE` says: synced, and never over a file that exists unless `--force` says so.

import { existsSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { CommandError, fileProblem } from './command.ts';

/** For a command that has much to do before it writes. @throws CommandError */
export function checkOutput(path: string, isForced: boolean): void {
  if (!isForced && existsSync(path)) throw existsAlready(path);
}

/** @throws CommandError */
export async function writeOutput(path: string, text: string, isForced: boolean): Promise<void> {
  try {
    const handle = await open(path, isForced ? 'w' : 'wx');
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') throw existsAlready(path);
    throw fileProblem(error);
  }
}

function existsAlready(path: string): CommandError {
  return new CommandError(`${path} exists already: name another file, or overwrite it with --force`);
}
