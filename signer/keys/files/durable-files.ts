// Files that are on disk before a caller is told of them: written under another name, flushed and renamed; then the
// folder is flushed, because a name is durable when its folder is.

import { open, unlink } from 'node:fs/promises';

/** Write a new file for its owner alone; it is on disk when this resolves, its name when the folder is flushed. */
export async function writeDurably(path: string, text: string): Promise<void> {
  await unlink(path).catch(() => undefined); // what a process left that was stopped here
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}
