// The key files of a service: the folders that the options name, and the folder of imported keystores. The look reads
// descriptors, keystores and passwords as the start does; only with `--decrypt` is a wrong password found. A signer
// starts without a key that cannot be loaded: it does not sign for it, and its /healthcheck is DOWN. Nothing of a file
// is quoted.

import { accessSync, constants, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Progress } from '../common/command-line/progress.ts';
import { errorCode } from '../common/formats/error-code.ts';
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
import { type CheckFinding, failureCode, onThisMachine, SILENT_LOGGER } from './look.ts';

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

interface Looking {
  readonly decrypt: boolean;
  readonly progress: Progress;
}

export interface KeyFilesFound {
  readonly hasKeyFiles: boolean;
  /** As the keystores say; of raw keys, which are not opened, nothing. */
  readonly publicKeys: readonly string[];
}

export async function lookAtKeyFiles(config: Config, found: CheckFinding, looking: Looking): Promise<KeyFilesFound> {
  const { filesystem, memory } = config.key_sources;
  const at = 'key_sources.filesystem';
  if (memory.persist_dir !== undefined) lookAtPersisted(memory.persist_dir, found);
  const { path, passwords_path, password_file } = filesystem.keystores;
  for (const [index, folder] of filesystem.paths.entries())
    lookAtDescriptors(folder, namesIn(`${at}.paths[${index}]`, folder, found), found);
  if (
    path !== undefined &&
    namesIn(`${at}.keystores.path`, path, found)?.some((name) => KEYSTORE_NAME.test(name)) === false
  ) {
    const says = `names a folder without a keystore (*.json), so no key is loaded from it: ${path}`;
    found.warnings.push({ at: `${at}.keystores.path`, says });
  }
  if (passwords_path !== undefined) namesIn(`${at}.keystores.passwords_path`, passwords_path, found);
  if (password_file !== undefined)
    readable(`${at}.keystores.password_file`, 'file', password_file, found, () =>
      accessSync(password_file, constants.R_OK),
    );
  return await lookAtKeys(filesystem, found, looking);
}

/** What is in a folder; undefined where a start could not list it. */
function namesIn(option: string, folder: string, found: CheckFinding): string[] | undefined {
  return readable(option, 'directory', folder, found, () => readdirSync(folder));
}

function readable<T>(option: string, what: string, path: string, found: CheckFinding, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    const problem = `names a ${what} that cannot be read: ${path} (${errorCode(error) ?? 'unreadable'})`;
    const remedy = 'create it, give the signer’s user the right to read it, or correct the path';
    found.violations.push(onThisMachine(option, problem, remedy));
    return undefined;
  }
}

/** A folder of bare keystores is a common slip: the start finds nothing in it, and says `ready keys=0`. */
function lookAtDescriptors(folder: string, names: readonly string[] | undefined, { warnings }: CheckFinding): void {
  if (names === undefined || names.some((name) => DESCRIPTOR_NAME.test(name))) return;
  const keystores = names.filter((name) => KEYSTORE_NAME.test(name)).length;
  const advice =
    keystores === 0
      ? 'Put one there for each key, beside its keystore (README.md)'
      : `It has ${keystores} .json files: bare keystores are for key_sources.filesystem.keystores.path`;
  const says = `names a folder without a descriptor (*.yaml), so no key is loaded from it: ${folder}. ${advice}`;
  warnings.push({ at: 'key_sources.filesystem.paths', says });
}

function lookAtPersisted(path: string, { violations }: CheckFinding): void {
  const code = failureCode(() => {
    readdirSync(path);
    accessSync(path, constants.W_OK);
  });
  if (code === undefined) return;
  const problem = `names a directory that cannot be written: ${path} (${code})`;
  const remedy = 'create it for the signer’s user alone (mode 0700), or correct the path';
  violations.push(onThisMachine('key_sources.memory.persist_dir', problem, remedy));
}

/** The first few of ten thousand files say what is wrong with all. */
const MAX_NAMED = 3;

/** Of described ones and of bare keystores. Folders that cannot be listed are violations. */
async function lookAtKeys(
  filesystem: Config['key_sources']['filesystem'],
  found: CheckFinding,
  { decrypt, progress }: Looking,
): Promise<KeyFilesFound> {
  const listing = await listKeyFiles(keyFolders(filesystem)).catch(() => undefined);
  if (listing === undefined) return { hasKeyFiles: false, publicKeys: [] };
  const total = listing.descriptors.length + listing.keystores.length;
  progress.begin({ doing: decrypt ? 'opening' : 'reading', unit: 'key files', total });
  const pool = decrypt ? openPool(filesystem.keystore_load_concurrency) : undefined;
  await using opened = new AsyncDisposableStack();
  opened.defer(() => pool?.close());
  const files = new Map<string, string[]>();
  const looked = { pool, files };
  let done = 0;
  /** In order, whichever ends first. */
  const unusableOf = async <Item>(items: readonly Item[], look: (item: Item) => Promise<string[]>) => {
    const unusable: string[][] = items.map(() => []);
    await inParallel([...items.entries()], (pool?.concurrency ?? 0) + 1, async ([at, item]) => {
      unusable[at] = await look(item);
      progress.reach(++done);
    });
    return unusable.flat();
  };
  const described = await unusableOf(listing.descriptors, (descriptor) => unusableDocuments(descriptor, looked));
  const bare = await unusableOf(listing.keystores, (place) => unusableKeystore(place, looked));
  warnOf('key_sources.filesystem.paths', described, found);
  warnOf('key_sources.filesystem.keystores', bare, found);
  const twice = [...files].filter(([, { length }]) => length > 1).map(([key, of]) => `${key} in ${of.join(' and ')}`);
  const says = `has keys that are there more than once, of which one counts (remove the others): ${firstOf(twice)}`;
  if (twice.length > 0) found.warnings.push({ at: 'key_sources.filesystem', says });
  if (decrypt) found.unusableKeys = described.length + bare.length;
  return { hasKeyFiles: total > 0, publicKeys: [...files.keys()] };
}

function firstOf(named: readonly string[]): string {
  const more = named.length > MAX_NAMED ? [`and ${named.length - MAX_NAMED} more`] : [];
  return [...named.slice(0, MAX_NAMED), ...more].join('; ');
}

function warnOf(at: ConfigWarning['at'], unusable: readonly string[], { warnings }: CheckFinding): void {
  if (unusable.length === 0) return;
  const count = unusable.length === 1 ? 'a key that cannot be loaded' : `${unusable.length} keys that cannot be loaded`;
  const says = `has ${count}: the signer starts without, and /healthcheck is DOWN (${firstOf(unusable)})`;
  warnings.push({ at, says });
}

/** As many keystores at once as a start opens. */
export function openPool(keystoreLoadConcurrency: number): KeystorePool {
  const options = { keystoreLoadConcurrency, memoryLimitBytes: memoryLimitBytes(), cores: availableParallelism() };
  return new KeystorePool(options, { log: SILENT_LOGGER.module('keys') });
}

interface Looked {
  /** Undefined: no keystore is opened. */
  readonly pool: KeystorePool | undefined;
  /** By the public key that they name. */
  readonly files: Map<string, string[]>;
}

async function unusableDocuments(file: string, looked: Looked): Promise<string[]> {
  const read = await readSmallFile(file, MAX_DESCRIPTOR_BYTES);
  if ('refused' in read) return [`${file}: ${read.refused}`];
  const described = parseDescriptors(file, read.content);
  read.content.fill(0);
  const unusable: string[] = [];
  for (const key of described) {
    if ('foreign' in key) continue;
    if ('refused' in key) unusable.push(`${file}, document ${key.document}: ${key.refused}`);
    else if (key.descriptor.type === 'file-raw') key.descriptor.secretKey.fill(0);
    else unusable.push(...(await unusableKeystore(key.descriptor, looked, true)).map((why) => `${file}: ${why}`));
  }
  return unusable;
}

async function unusableKeystore(
  place: Parameters<typeof readKeystoreFile>[0],
  { pool, files }: Looked,
  isNamed = false,
): Promise<string[]> {
  const read = await readKeystoreFile(place);
  const { publicKey } = 'keystore' in read ? read.keystore : read;
  if (publicKey !== undefined) files.set(publicKey, [...(files.get(publicKey) ?? []), place.keystoreFile]);
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
