// Where each client that signs keeps its keys, their passwords and its record, by its own documents and sources of
// autumn 2026. Only keys that the client signs with are taken: a keystore that it was told to leave alone may sign
// elsewhere. A record in a database of the client's own is not read: its schema is the client's to change, and a table
// that is half understood would be a record that says too little. The client's own export is asked for, by its command.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { shellWord } from '../../common/command-line/printable.ts';
import { canonicalPublicKey } from '../../common/formats/hex.ts';
import { parseStrictYaml } from '../../common/formats/yaml.ts';
import { parseDescriptors } from '../../signer/keys/files/descriptor.ts';
import { DESCRIPTOR_NAME, KEYSTORE_NAME } from '../../signer/keys/files/listing.ts';
import { FirstStepFailure, unusablePath } from './failure.ts';

export const MIGRATED = ['lighthouse', 'teku', 'prysm', 'nimbus', 'lodestar', 'web3signer'] as const;

export type MigratedClient = (typeof MIGRATED)[number];

export interface FoundKey {
  /** A keystore, or the descriptor of a key that is not encrypted. */
  readonly file: string;
  readonly password?: { readonly file: string } | { readonly text: string };
  readonly secretKey?: Uint8Array;
}

export interface FoundKeys {
  readonly keys: readonly FoundKey[];
  /** What is there and is not taken, each with the reason. */
  readonly left: readonly string[];
}

interface ClientFolder {
  readonly name: string;
  /** Below its folder: where its keys are, for a person. */
  readonly keys: string;
  /** Below its folder: the beginning of the names of the files that it writes when it signs; a database has none. */
  readonly record?: string;
  readonly find: (folder: string) => FoundKeys;
  /** Of the record, into RECORD_FILE; undefined for a database that is read. */
  readonly exportCommand?: (folder: string, network: string) => string;
  /** By its command line: a process that signs. */
  readonly process: RegExp;
}

export const RECORD_FILE = 'slashing_protection.json';
const DEFINITIONS = 'validators/validator_definitions.yml';

export const CLIENT_FOLDERS: Readonly<Record<MigratedClient, ClientFolder>> = {
  lighthouse: {
    name: 'Lighthouse',
    keys: 'validators',
    record: 'validators/slashing_protection.sqlite',
    find: lighthouseKeys,
    exportCommand: (folder, network) =>
      `lighthouse account validator slashing-protection export ${RECORD_FILE} --network ${network} --datadir ${folder}`,
    process: /^\S*\blighthouse (?:.* )?(?:vc|validator_client|validator)(?: |$)/,
  },
  teku: {
    name: 'Teku',
    keys: 'validator/key-manager/local',
    record: 'validator/slashprotection/',
    find: (folder) => {
      const local = join(folder, 'validator/key-manager/local');
      return keystoresIn(local, `${local}-passwords`);
    },
    exportCommand: (folder) => `teku slashing-protection export --data-path=${folder} --to=${RECORD_FILE}`,
    process: /^\S*\bteku(?: |$)|^\S*java .*\btech\.pegasys\.teku\./,
  },
  prysm: {
    name: 'Prysm',
    keys: 'none: --keys DIR names a backup',
    record: 'validator.db',
    find: () => ({ keys: [], left: [] }),
    exportCommand: (folder, network) =>
      `validator slashing-protection-history export --${network} --datadir=${folder} --slashing-protection-export-dir=.`,
    process: /^\S*\bvalidator(?:-\S*)?(?: |$)|^\S*sh \S*prysm\.sh validator(?: |$)/,
  },
  nimbus: {
    name: 'Nimbus',
    keys: 'validators',
    record: 'validators/slashing_protection.sqlite3',
    find: (folder) => keyFolders(folder, 'validators', 'keystore.json'),
    exportCommand: (folder) => `nimbus_beacon_node slashingdb export ${RECORD_FILE} --data-dir=${folder}`,
    process: /^\S*\bnimbus_(?:beacon_node|validator_client)/,
  },
  lodestar: {
    name: 'Lodestar',
    keys: 'keystores',
    record: 'validator-db/',
    find: (folder) => keyFolders(folder, 'keystores', 'voting-keystore.json'),
    exportCommand: (folder, network) =>
      `lodestar validator slashing-protection export --network ${network} --dataDir ${folder} --file ${RECORD_FILE}`,
    process: /^(?:\S*node (?:-\S+ )*)?\S*\blodestar(?:\.m?js)? (?:.* )?validator(?: |$)/,
  },
  web3signer: {
    name: 'Web3Signer',
    keys: '.',
    find: describedKeys,
    process: /^\S*\bweb3signer(?: |$)|^\S*java .*\btech\.pegasys\.web3signer\./,
  },
};

/** What a person does about a record that is not given. */
export function recordAdvice(client: MigratedClient, folder: string, network: string): readonly string[] {
  const command = CLIENT_FOLDERS[client].exportCommand?.(shellWord(folder), network);
  if (command === undefined)
    return [
      'name its database: --record env:WEB3SIGNER_DB, with WEB3SIGNER_DB=postgresql://USER:PASSWORD@HOST/DATABASE',
      `or its export: --record ${RECORD_FILE}`,
    ];
  return [
    `have ${CLIENT_FOLDERS[client].name}, which is stopped, write it (its --help has the last word):`,
    `  ${command}`,
    `and add --record ${RECORD_FILE} to this command`,
  ];
}

/** Lighthouse's list of its validators, which alone says with which it signs. */
function lighthouseKeys(folder: string): FoundKeys {
  const left = { disabled: 0, remote: 0 };
  const keys: FoundKey[] = [];
  for (const definition of definitionsIn(folder, 'text')) {
    if (definition['type'] !== 'local_keystore') left.remote += 1;
    else if (definition['enabled'] !== 'true') left.disabled += 1;
    else keys.push(localKeystore(folder, definition));
  }
  const said = [
    [left.disabled, 'disabled in it'],
    [left.remote, 'not keystores of its own'],
  ] as const;
  return { keys, left: said.flatMap(([count, why]) => (count === 0 ? [] : [`${DEFINITIONS}: ${count} ${why}`])) };
}

function localKeystore(folder: string, definition: Definition): FoundKey {
  const { voting_public_key: publicKey = '', voting_keystore_path: path = '' } = definition;
  // In a container, or on another machine, the folder was elsewhere: the end of the path is the same.
  const near = (from: string, below: string, names: number): string =>
    existsSync(from) ? from : join(folder, below, ...from.split('/').slice(-names));
  const { voting_keystore_password: text, voting_keystore_password_path: named } = definition;
  const password = near(named ?? join(folder, 'secrets', publicKey), 'secrets', 1);
  return {
    file: near(path, 'validators', 2),
    ...(text !== undefined ? { password: { text } } : passwordIn(password)),
  };
}

export type Definition = Readonly<Record<string, string | undefined>>;

/** @throws FirstStepFailure */
function definitionsIn<Scalars extends 'text' | 'typed'>(
  folder: string,
  scalars: Scalars,
): readonly (Scalars extends 'text' ? Definition : Readonly<Record<string, unknown>>)[] {
  const file = join(folder, DEFINITIONS);
  if (!existsSync(file)) return [];
  const read = parseStrictYaml(readText(file), scalars);
  if (!('problems' in read) && Array.isArray(read.value)) return read.value;
  throw new FirstStepFailure(`${file} is not a list of validators`, ['is this the file that Lighthouse wrote?']);
}

/** Lighthouse's list for the signer: everything that it says of its validators stays, but where they sign. */
export function remoteDefinitions(folder: string, migrated: ReadonlySet<string>, url: string): string {
  const texts = definitionsIn(folder, 'text');
  const list = definitionsIn(folder, 'typed').flatMap((typed, at) => {
    const text = texts[at] ?? {};
    // Hex that is not quoted is a number, of which digits are lost.
    const definition = Object.entries(typed).map(([name, value]) => [
      name,
      typeof value === 'number' && /^0x/i.test(text[name] ?? '') ? text[name] : value,
    ]);
    if (text['type'] !== 'local_keystore') return [Object.fromEntries(definition)];
    if (!migrated.has(canonicalPublicKey(text['voting_public_key'] ?? '') ?? '')) return [];
    const kept = definition.filter(([name]) => !String(name).startsWith('voting_keystore_'));
    return [{ ...Object.fromEntries(kept), type: 'web3signer', url }];
  });
  return `${JSON.stringify(list, null, 2)}\n`;
}

/** A folder for each key, named by it, and its password in secrets. */
function keyFolders(folder: string, below: string, name: string): FoundKeys {
  const all = namesIn(join(folder, below))
    .filter((one) => canonicalPublicKey(one) !== undefined)
    .filter((one) => existsSync(join(folder, below, one, name)));
  // Early versions of Nimbus keep a key from signing by such a file.
  const isDisabled = (one: string): boolean => existsSync(join(folder, below, one, '.disable'));
  const keys = all
    .filter((one) => !isDisabled(one))
    .map((one) => ({ file: join(folder, below, one, name), ...passwordIn(join(folder, 'secrets', one)) }));
  return { keys, left: all.filter(isDisabled).map((one) => `${join(folder, below, one)}: disabled`) };
}

/** NAME.json, with the password in NAME.txt, when it is there. */
export function keystoresIn(folder: string, passwords: string): FoundKeys {
  const keys = namesIn(folder)
    .filter((name) => KEYSTORE_NAME.test(name))
    .map((name) => ({ file: join(folder, name), ...passwordIn(join(passwords, `${name.slice(0, -5)}.txt`)) }));
  return { keys, left: [] };
}

/** Web3Signer's descriptors. */
function describedKeys(folder: string): FoundKeys {
  const keys: FoundKey[] = [];
  const left: string[] = [];
  for (const name of namesIn(folder).filter((one) => DESCRIPTOR_NAME.test(one))) {
    const file = join(folder, name);
    for (const described of parseDescriptors(file, readBytes(file))) {
      if ('refused' in described) left.push(`${file}: ${described.refused}`);
      else if (described.descriptor.type === 'file-raw') keys.push({ file, ...described.descriptor });
      else {
        const { keystoreFile, passwordFile } = described.descriptor;
        keys.push({ file: keystoreFile, ...passwordIn(passwordFile) });
      }
    }
  }
  return { keys, left };
}

function passwordIn(file: string): Pick<FoundKey, 'password'> {
  return existsSync(file) ? { password: { file } } : {};
}

/** The beginning of the paths of the files of its record, in a folder or in many files. */
export function recordsOf(client: MigratedClient, folder: string): string | undefined {
  const { record } = CLIENT_FOLDERS[client];
  return record === undefined ? undefined : join(folder, record);
}

/** When the client wrote its record last, as its files say; undefined where it has none there. Milliseconds. */
export function lastWriteOf(client: MigratedClient, folder: string): number | undefined {
  const beginning = recordsOf(client, folder);
  if (beginning === undefined) return undefined;
  const parent = beginning.endsWith('/') ? beginning : dirname(beginning);
  const files = namesIn(parent)
    .map((name) => join(parent, name))
    .filter((file) => file.startsWith(beginning));
  return files.length === 0 ? undefined : Math.max(...files.map((file) => statSync(file).mtimeMs));
}

/** None when there is no such folder. @throws FirstStepFailure */
export function namesIn(folder: string): readonly string[] {
  try {
    return existsSync(folder) ? readdirSync(folder).sort() : [];
  } catch (error) {
    throw unusablePath(folder, 'be read', error);
  }
}

export function readText(file: string): string {
  return readBytes(file).toString('utf8');
}

/** @throws FirstStepFailure */
function readBytes(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw unusablePath(file, 'be read', error);
  }
}
