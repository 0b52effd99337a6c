// Which key files a start could not use: part of `server --check` (check-start.ts). Descriptors, keystores and their
// passwords are read as the start reads them; nothing is decrypted, so a wrong password is found by the start only. A
// signer starts without such a key: it does not sign for it, and its /healthcheck is DOWN. Nothing of a file is quoted.

import type { Config } from '../config/options.ts';
import type { ConfigWarning } from '../config/warnings.ts';
import { MAX_DESCRIPTOR_BYTES, parseDescriptors } from '../keys/files/descriptor.ts';
import { readKeystoreFile } from '../keys/files/keystore-file.ts';
import { listKeyFiles } from '../keys/files/listing.ts';
import { readSmallFile } from '../keys/files/small-files.ts';

/** The first few of ten thousand files say what is wrong with all. */
const MAX_NAMED = 3;

/** Folders that cannot be listed are violations, which check-files.ts finds. */
export async function lookAtKeyFiles({ key_sources: { filesystem } }: Config): Promise<ConfigWarning[]> {
  const { path, passwords_path: folder, password_file: file } = filesystem.keystores;
  const passwords = file !== undefined ? { file } : { folder: folder ?? path ?? '' };
  const keystores = path === undefined ? {} : { keystores: { path, passwords } };
  const listing = await listKeyFiles({ paths: filesystem.paths, ...keystores }).catch(() => undefined);
  if (listing === undefined) return [];
  const described: string[] = [];
  for (const descriptor of listing.descriptors) described.push(...(await unusableDocuments(descriptor)));
  const bare: string[] = [];
  for (const place of listing.keystores) bare.push(...(await unusableKeystore(place)));
  return [
    ...warningOf('key_sources.filesystem.paths', described),
    ...warningOf('key_sources.filesystem.keystores', bare),
  ];
}

function warningOf(at: ConfigWarning['at'], unusable: readonly string[]): ConfigWarning[] {
  if (unusable.length === 0) return [];
  const count = unusable.length === 1 ? 'a key that cannot be loaded' : `${unusable.length} keys that cannot be loaded`;
  const more = unusable.length > MAX_NAMED ? [`and ${unusable.length - MAX_NAMED} more`] : [];
  const named = [...unusable.slice(0, MAX_NAMED), ...more].join('; ');
  return [{ at, says: `has ${count}: the signer starts without, and /healthcheck is DOWN (${named})` }];
}

async function unusableDocuments(file: string): Promise<string[]> {
  const read = await readSmallFile(file, MAX_DESCRIPTOR_BYTES);
  if ('refused' in read) return [`${file}: ${read.refused}`];
  const described = parseDescriptors(file, read.content);
  read.content.fill(0);
  const unusable: string[] = [];
  for (const key of described) {
    if ('refused' in key) unusable.push(`${file}, document ${key.document}: ${key.refused}`);
    else if (key.descriptor.type === 'file-raw') key.descriptor.secretKey.fill(0);
    else unusable.push(...(await unusableKeystore(key.descriptor)).map((why) => `${file}: ${why}`));
  }
  return unusable;
}

async function unusableKeystore(place: Parameters<typeof readKeystoreFile>[0]): Promise<string[]> {
  const read = await readKeystoreFile(place);
  if ('refused' in read) return [read.refused];
  read.password.fill(0);
  return [];
}
