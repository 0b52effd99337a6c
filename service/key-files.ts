// The key files of a service: the folders that the options name, and the folder of imported keystores. The look reads
// descriptors, keystores and passwords as the start does; only with `--decrypt` is a wrong password found. A signer
// starts without a key that cannot be loaded: it does not sign for it, and its /healthcheck is DOWN. Nothing of a file
// is quoted.

import { accessSync, constants, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { NO_PROGRESS, type Progress } from '../common/command-line/progress.ts';
import type { Violation } from '../common/command-line/violations.ts';
import type { OpenKeyFiles } from '../signer/boot/keys.ts';
import type { Config } from '../signer/config/options.ts';
import type { ConfigWarning } from '../signer/config/warnings.ts';
import { MAX_DESCRIPTOR_BYTES, parseDescriptors } from '../signer/keys/files/descriptor.ts';
import { DECRYPTION_REFUSALS } from '../signer/keys/files/folder-scan.ts';
import { ImportedKeystores } from '../signer/keys/files/imported-keystores.ts';
import { KeyFiles } from '../signer/keys/files/key-files.ts';
import { readKeystoreFile } from '../signer/keys/files/keystore-file.ts';
import { DESCRIPTOR_NAME, KEYSTORE_NAME, type KeyFolders, listKeyFiles } from '../signer/keys/files/listing.ts';
import { readSmallFile } from '../signer/keys/files/small-files.ts';
import { KeystorePool, memoryLimitBytes } from '../signer/keys/keystores/pool.ts';
import { inParallel } from '../signer/parallel.ts';
import { type CheckFinding, failureCode, onThisMachine, SILENT_LOG } from './look.ts';

export const openKeyFiles: OpenKeyFiles = (config) => open(config, false);

/** As Web3Signer starts: without a folder of keys, DOWN until a reload finds it. */
export const openKeyFilesLater: OpenKeyFiles = (config) => open(config, true);

async function open({ filesystem, memory }: OpenedConfig, mayBeMissing: boolean): ReturnType<OpenKeyFiles> {
  const folders = { ...keyFolders(filesystem), mayBeMissing };
  await listKeyFiles(folders);
  return {
    keyFiles: (parts) =>
      new KeyFiles({ ...folders, rawLoadConcurrency: filesystem.raw_load_concurrency, cache: filesystem.cache }, parts),
    imported: importedKeystores(memory),
  };
}

type OpenedConfig = Parameters<OpenKeyFiles>[0];

/** The rules of the configuration see to it that there are both, or neither. */
function importedKeystores({
  persist_dir: folder,
  persist_secret: secret,
}: Config['key_sources']['memory']): ImportedKeystores | undefined {
  return folder === undefined || secret === undefined ? undefined : new ImportedKeystores(folder, secret.reveal());
}

function keyFolders({ keystores, paths }: Config['key_sources']['filesystem']): KeyFolders {
  const { path, passwords_path: folder, password_file: file } = keystores;
  if (path === undefined) return { paths };
  if (folder !== undefined) return { paths, keystores: { path, passwords: { folder } } };
  if (file !== undefined) return { paths, keystores: { path, passwords: { file } } };
  // a rule of the configuration refuses it before
  throw new Error('key_sources.filesystem.keystores.path: there are no passwords');
}

type Named = (publicKey: string, file: string) => void;

interface Looking {
  readonly decrypt: boolean;
  readonly progress: Progress;
}

export interface KeyFilesFound extends CheckFinding {
  readonly hasKeyFiles: boolean;
  /** As the keystores say; of raw keys, which are not opened, nothing. */
  readonly publicKeys: readonly string[];
}

export async function lookAtKeyFiles(
  config: Config,
  looking: Looking = { decrypt: false, progress: NO_PROGRESS },
): Promise<KeyFilesFound> {
  const files = new Map<string, string[]>();
  const named: Named = (key, file) => files.set(key, [...(files.get(key) ?? []), file]);
  const { total, described, bare } = await unusableKeys(config, { ...looking, named });
  const unusable = [
    ...warningOf('key_sources.filesystem.paths', described),
    ...warningOf('key_sources.filesystem.keystores', bare),
    ...repeated(files),
  ];
  return {
    violations: keyDirectories(config),
    warnings: [...emptyFolders(config), ...unusable],
    unusableKeys: looking.decrypt ? described.length + bare.length : 0,
    hasKeyFiles: total > 0,
    publicKeys: [...files.keys()],
  };
}

function repeated(files: ReadonlyMap<string, readonly string[]>): ConfigWarning[] {
  const some = [...files].filter(([, { length }]) => length > 1);
  if (some.length === 0) return [];
  const named = some.slice(0, MAX_NAMED).map(([key, of]) => `${key} in ${of.join(' and ')}`);
  const more = some.length > MAX_NAMED ? `; and ${some.length - MAX_NAMED} more` : '';
  const says = `has keys that are there more than once, of which one counts (remove the others): ${named.join('; ')}${more}`;
  return [{ at: 'key_sources.filesystem', says }];
}

function keyDirectories({ key_sources: { filesystem, memory } }: Config): Violation[] {
  const { path, passwords_path, password_file } = filesystem.keystores;
  return [
    ...(memory.persist_dir === undefined ? [] : unwritable(memory.persist_dir)),
    ...filesystem.paths.flatMap((folder, index) => unreadable(`paths[${index}]`, folder, readdirSync)),
    ...(path === undefined ? [] : unreadable('keystores.path', path, readdirSync)),
    ...(passwords_path === undefined ? [] : unreadable('keystores.passwords_path', passwords_path, readdirSync)),
    ...(password_file === undefined ? [] : unreadable('keystores.password_file', password_file, readableFile)),
  ];
}

/** A folder of bare keystores is a common slip: the start finds nothing in it, and says `ready keys=0`. */
function emptyFolders({ key_sources: { filesystem } }: Config): ConfigWarning[] {
  const { path } = filesystem.keystores;
  const isEmpty = path !== undefined && namesIn(path)?.some((name) => KEYSTORE_NAME.test(name)) === false;
  const says = `names a folder without a keystore (*.json), so no key is loaded from it: ${path}`;
  const ofKeystores: ConfigWarning[] = isEmpty ? [{ at: 'key_sources.filesystem.keystores.path', says }] : [];
  const ofDescriptors: ConfigWarning[] = filesystem.paths.flatMap((folder) => {
    const names = namesIn(folder);
    if (names === undefined || names.some((name) => DESCRIPTOR_NAME.test(name))) return [];
    const keystores = names.filter((name) => KEYSTORE_NAME.test(name)).length;
    const advice =
      keystores === 0
        ? 'Put one there for each key, beside its keystore (README.md)'
        : `It has ${keystores} .json files: bare keystores are for key_sources.filesystem.keystores.path`;
    const says = `names a folder without a descriptor (*.yaml), so no key is loaded from it: ${folder}. ${advice}`;
    return [{ at: 'key_sources.filesystem.paths', says }];
  });
  return [...ofKeystores, ...ofDescriptors];
}

function namesIn(folder: string): string[] | undefined {
  try {
    return readdirSync(folder);
  } catch {
    return undefined; // said as a violation
  }
}

function unreadable(option: string, path: string, read: (path: string) => unknown): Violation[] {
  const code = failureCode(() => read(path));
  if (code === undefined) return [];
  const what = read === readableFile ? 'file' : 'directory';
  const remedy = 'create it, give the signer’s user the right to read it, or correct the path';
  return [
    onThisMachine(`key_sources.filesystem.${option}`, `names a ${what} that cannot be read: ${path} (${code})`, remedy),
  ];
}

function unwritable(path: string): Violation[] {
  const code = failureCode(() => {
    readdirSync(path);
    accessSync(path, constants.W_OK);
  });
  if (code === undefined) return [];
  const problem = `names a directory that cannot be written: ${path} (${code})`;
  const remedy = 'create it for the signer’s user alone (mode 0700), or correct the path';
  return [onThisMachine('key_sources.memory.persist_dir', problem, remedy)];
}

function readableFile(path: string): void {
  accessSync(path, constants.R_OK);
}

/** The first few of ten thousand files say what is wrong with all. */
const MAX_NAMED = 3;

/** Of described ones and of bare keystores; `total` files. Folders that cannot be listed are violations. */
async function unusableKeys(
  { key_sources: { filesystem } }: Config,
  { decrypt, progress, named }: Looking & { readonly named: Named },
) {
  const listing = await listKeyFiles(keyFolders(filesystem)).catch(() => undefined);
  if (listing === undefined) return { total: 0, described: [], bare: [] };
  const total = listing.descriptors.length + listing.keystores.length;
  progress.begin({ doing: decrypt ? 'opening' : 'reading', unit: 'key files', total });
  const pool = decrypt ? openPool(filesystem.keystore_load_concurrency) : undefined;
  let done = 0;
  /** In order, whichever ends first. */
  const unusableOf = async <Item>(items: readonly Item[], look: (item: Item) => Promise<string[]>) => {
    const found: string[][] = items.map(() => []);
    await inParallel([...items.entries()], (pool?.concurrency ?? 0) + 1, async ([at, item]) => {
      found[at] = await look(item);
      progress.reach(++done);
    });
    return found.flat();
  };
  try {
    const described = await unusableOf(listing.descriptors, (descriptor) => unusableDocuments(descriptor, pool, named));
    const bare = await unusableOf(listing.keystores, (place) => unusableKeystore(place, pool, named));
    return { total, described, bare };
  } finally {
    await pool?.close();
  }
}

/** As many keystores at once as a start opens. */
export function openPool(keystoreLoadConcurrency: number): KeystorePool {
  const options = { keystoreLoadConcurrency, memoryLimitBytes: memoryLimitBytes(), cores: availableParallelism() };
  return new KeystorePool(options, { log: SILENT_LOG });
}

function warningOf(at: ConfigWarning['at'], unusable: readonly string[]): ConfigWarning[] {
  if (unusable.length === 0) return [];
  const count = unusable.length === 1 ? 'a key that cannot be loaded' : `${unusable.length} keys that cannot be loaded`;
  const more = unusable.length > MAX_NAMED ? [`and ${unusable.length - MAX_NAMED} more`] : [];
  const named = [...unusable.slice(0, MAX_NAMED), ...more].join('; ');
  return [{ at, says: `has ${count}: the signer starts without, and /healthcheck is DOWN (${named})` }];
}

async function unusableDocuments(file: string, pool: KeystorePool | undefined, named: Named): Promise<string[]> {
  const read = await readSmallFile(file, MAX_DESCRIPTOR_BYTES);
  if ('refused' in read) return [`${file}: ${read.refused}`];
  const described = parseDescriptors(file, read.content);
  read.content.fill(0);
  const unusable: string[] = [];
  for (const key of described) {
    if ('foreign' in key) continue;
    if ('refused' in key) unusable.push(`${file}, document ${key.document}: ${key.refused}`);
    else if (key.descriptor.type === 'file-raw') key.descriptor.secretKey.fill(0);
    else unusable.push(...(await unusableKeystore(key.descriptor, pool, named, true)).map((why) => `${file}: ${why}`));
  }
  return unusable;
}

async function unusableKeystore(
  place: Parameters<typeof readKeystoreFile>[0],
  pool: KeystorePool | undefined,
  named: Named,
  isNamed = false,
): Promise<string[]> {
  const read = await readKeystoreFile(place);
  const { publicKey } = 'keystore' in read ? read.keystore : read;
  if (publicKey !== undefined) named(publicKey, place.keystoreFile);
  if ('refused' in read) return read.foreign === undefined || isNamed ? [read.refused] : [];
  if (pool === undefined) {
    read.password.fill(0);
    return [];
  }
  const opened = await pool.decrypt(read.keystore, read.password, 'load');
  if ('refused' in opened) return [`keystoreFile ${place.keystoreFile}: ${DECRYPTION_REFUSALS[opened.refused]}`];
  opened.secretKey.fill(0);
  return [];
}
