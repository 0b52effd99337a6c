// A file that only its owner can read, for what the signer answers once. It is made before anything is sent, so that a
// result is never without a place; it never replaces another file, and is gone again when nothing was written to it.

import { open, rm } from 'node:fs/promises';
import { fileFailure } from './key-batches.ts';

/** Make the file, run, write what it gives. @throws CommandFailure when the file cannot be made or written */
export async function withPrivateFile(path: string, run: () => Promise<string>): Promise<void> {
  const file = await open(path, 'wx', 0o600).catch((error: unknown) => {
    throw fileFailure(path, 'written', error);
  });
  try {
    const text = await run().catch(async (error: unknown) => {
      await rm(path, { force: true });
      throw error;
    });
    await file.writeFile(text).catch((error: unknown) => {
      throw fileFailure(path, 'written', error);
    });
    await file.sync();
  } finally {
    await file.close();
  }
}
