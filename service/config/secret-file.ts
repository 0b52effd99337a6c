// Reads a secret from a file (`file:/path`). A file that every user can read, or the group can write, is refused. The
// group may read it: that is how Kubernetes hands secrets to a service.

import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { errorCode } from '../../common/formats/error-code.ts';
import { BrokenReference } from '../../signer/config/values/secret.ts';

const MAX_SECRET_FILE_BYTES = 16 * 1024;
const TOO_OPEN = 0o027;

/** Its text without the one line break that an editor or echo leaves at its end, or why it cannot be had. */
export function readSecretFile(path: string): string | BrokenReference {
  if (!path.startsWith('/')) {
    return new BrokenReference('must be file:/PATH with an absolute path', 'write the path from the root directory');
  }
  let file: number | undefined;
  try {
    // O_NONBLOCK: opening a pipe must not wait for its writer.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    return refusalOf(path, fstatSync(file)) ?? textOf(path, readFileSync(file));
  } catch (error) {
    const code = errorCode(error) ?? 'unreadable';
    return broken(path, `cannot be read (${code})`, 'name a file that the user of the signer may read');
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function refusalOf(path: string, stat: Stats): BrokenReference | undefined {
  if (!stat.isFile()) return broken(path, 'is not a regular file', 'name a file that holds the secret alone');
  const mode = stat.mode & 0o777;
  if ((mode & TOO_OPEN) !== 0) {
    const problem = `may be read or changed by others (mode ${mode.toString(8).padStart(4, '0')})`;
    return broken(
      path,
      problem,
      `chmod 0600 ${shown(path)}, or 0640 with the group of the signer (in a mounted Secret: defaultMode: 0440)`,
    );
  }
  if (stat.size <= MAX_SECRET_FILE_BYTES) return undefined;
  return broken(path, `is larger than ${MAX_SECRET_FILE_BYTES} bytes`, 'name a file that holds the secret alone');
}

function textOf(path: string, content: Buffer): string | BrokenReference {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content).replace(/\r?\n$/, '');
  } catch {
    return broken(path, 'is not UTF-8 text', 'name a file that holds the secret as text');
  } finally {
    content.fill(0);
  }
}

function broken(path: string, problem: string, remedy: string): BrokenReference {
  return new BrokenReference(`refers to the file ${shown(path)}, which ${problem}`, remedy);
}

/** Without quotes, in which a report shows nothing. */
function shown(path: string): string {
  return path.replaceAll(/[^\x21-\x7e]|"/g, '?');
}
