// Which files of the key folders describe keys. A folder that cannot be listed stops the load: its keys would look
// removed.

import { access, constants, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../../common/formats/error-code.ts';

export interface KeystoreFolder {
  readonly path: string;
  readonly passwords: { readonly folder: string } | { readonly file: string };
}

export interface KeyFolders {
  readonly paths: readonly string[];
  readonly keystores?: KeystoreFolder;
  /** At a start: a folder that is not there is a fault of keys, and none of the start. */
  readonly mayBeMissing?: boolean;
}

export interface Listing {
  readonly descriptors: readonly string[];
  readonly keystores: readonly { readonly keystoreFile: string; readonly passwordFile: string }[];
  readonly missing: readonly string[];
}

/** Hidden files are not matched by `*.yaml`, as in a shell. */
export const DESCRIPTOR_NAME = /^[^.].*\.ya?ml$/i;
const KEYSTORES = 'key_sources.filesystem.keystores';
export const KEYSTORE_NAME = /^[^.].*\.json$/i;

/** @throws Error naming the option and the folder that cannot be read */
export async function listKeyFiles({ paths, keystores, mayBeMissing }: KeyFolders): Promise<Listing> {
  const descriptors: string[] = [];
  const missing: string[] = [];
  const list = async (folder: string, option: string): Promise<string[]> =>
    readdir(folder).catch((error: unknown) => {
      if (mayBeMissing !== true || errorCode(error) !== 'ENOENT')
        return refuse(error, option, `the directory ${folder}`);
      missing.push(folder);
      return [];
    });
  for (const path of paths) {
    const names = await list(path, 'key_sources.filesystem.paths');
    for (const name of names.filter((name) => DESCRIPTOR_NAME.test(name)).sort()) descriptors.push(join(path, name));
  }
  if (keystores === undefined) return { descriptors, keystores: [], missing };
  const { path, passwords } = keystores;
  const names = (await list(path, `${KEYSTORES}.path`)).filter((name) => KEYSTORE_NAME.test(name));
  // Its keystores would all be without a password, and ten thousand lines say less than one.
  if ('folder' in passwords) await list(passwords.folder, `${KEYSTORES}.passwords_path`);
  else await assertReadable(passwords.file);
  return {
    descriptors,
    missing,
    keystores: names.sort().map((name) => ({
      keystoreFile: join(path, name),
      passwordFile: 'file' in passwords ? passwords.file : join(passwords.folder, `${name.slice(0, -5)}.txt`),
    })),
  };
}

async function assertReadable(file: string): Promise<void> {
  await access(file, constants.R_OK).catch((error: unknown) =>
    refuse(error, `${KEYSTORES}.password_file`, `the file ${file}`),
  );
}

function refuse(cause: unknown, option: string, what: string): never {
  const code = errorCode(cause) ?? 'unreadable';
  throw new Error(`${option}: ${what} cannot be read (${code}); create it or correct the path`, { cause });
}
