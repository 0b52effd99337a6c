// Names that are on the disk before anything else happens: a name is durable when its folder is. For threads and starts
// that wait; what must not wait has signer/keys/files/durable-files.ts.

import { closeSync, fsyncSync, openSync } from 'node:fs';

export function syncFolderNow(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
