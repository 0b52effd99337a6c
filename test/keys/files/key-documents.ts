// Documents of key files, written into the folder of the test, and a load of them. All keys are TEST keys.

import { writeFileSync } from 'node:fs';
import type { KeyFilesParts } from '../../../signer/keys/files/folder-scan.ts';
import { KeyFiles } from '../../../signer/keys/files/key-files.ts';
import { at, clock, directory, log, pool, store } from './key-folder.ts';

export function load(parts: Partial<KeyFilesParts> = {}, paths: readonly string[] = [directory.path]) {
  return new KeyFiles({ paths, rawLoadConcurrency: 8 }, { store, pool, log, clock, ...parts }).load();
}

export const write = (name: string, text: string | Buffer) => writeFileSync(at(name), text);
export const hex = (secret: Uint8Array) => Buffer.from(secret).toString('hex');
export const rawText = (secret: Uint8Array) => `type: file-raw\nkeyType: BLS\nprivateKey: ${hex(secret)}\n`;
export const keystoreText = (keystore: string, password: string) =>
  `type: file-keystore\nkeyType: BLS\nkeystoreFile: ${keystore}\nkeystorePasswordFile: ${password}\n`;
