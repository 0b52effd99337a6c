// A participant's file of identities, and which program opens with it. No output ever repeats anything of the file.

import { stat } from 'node:fs/promises';
import { note } from '../../common/command-line/terminal.ts';
import { type Decrypted, decryptWithIdentities, isAgeIdentity } from '../age-identity.ts';
import { type AgeIdentityFile, openWithAge } from './age-program.ts';
import { type CeremonyTerminal, CommandError } from './command.ts';
import { readCeremonyInput } from './input.ts';

const MAX_IDENTITIES = 64;
/** age knows such a file by its first bytes (C2SP age v1, "age-encryption.org/v1", and its armor). */
const ENCRYPTED_FILE = /^(?:age-encryption\.org\/|-----BEGIN AGE ENCRYPTED FILE-----)/;
/** C2SP age-plugin: the name in capitals, then bech32 data. */
const PLUGIN_IDENTITY = /^AGE-PLUGIN-([A-Z0-9+._-]+)-1[02-9AC-HJ-NP-Z]{6,}$/;
const OTHERS_MAY_READ = 0o077;

export interface IdentityFile extends AgeIdentityFile {
  readonly opener: 'strongroom' | 'age';
  readonly kind: 'X25519 identity' | 'passphrase-protected identity' | 'plugin identity';
  readonly identities: readonly string[];
  /** What the file's comments call its recipients: a claim. */
  readonly claimedRecipients: readonly string[];
}

/** @throws CommandError; warns when others than its owner can read the file */
export async function readIdentityFile(path: string, terminal: CeremonyTerminal): Promise<IdentityFile> {
  const text = await readCeremonyInput(path, terminal);
  const read = identitiesOf(path, text.replace(/^\uFEFF/, '')); // of an editor of Windows
  if (path === '-') {
    if (read.opener === 'age') throw new CommandError(`age reads a ${read.kind} from a file: name it in place of -`);
    return read;
  }
  if (((await stat(path)).mode & OTHERS_MAY_READ) !== 0) {
    note(terminal, `strongroom: warning: others than its owner may read or change ${path}: chmod 600 ${path}`);
  }
  return read;
}

/** @returns the plaintext, which is the caller's to wipe @throws CommandError */
export async function openWith(file: IdentityFile, armored: string, terminal: CeremonyTerminal): Promise<Decrypted> {
  return file.opener === 'strongroom'
    ? decryptWithIdentities(armored, file.identities)
    : openWithAge(file, armored, terminal);
}

function identitiesOf(path: string, text: string): IdentityFile {
  const none = { path, identities: [], plugins: [], claimedRecipients: [] };
  if (ENCRYPTED_FILE.test(text)) return { ...none, opener: 'age', kind: 'passphrase-protected identity' };
  const lines = text.split(/\r?\n/);
  const secrets = lines.filter((line) => line !== '' && !line.startsWith('#'));
  if (secrets.length === 0)
    throw new CommandError(
      `${path} holds no identity: it has to hold a line AGE-SECRET-KEY-1…, or be a file of age -p`,
    );
  if (secrets.length > MAX_IDENTITIES)
    throw new CommandError(
      `${path} holds more than ${MAX_IDENTITIES} identities: keep those of this ceremony in a file of their own`,
    );
  const plugins = secrets.flatMap((line) => PLUGIN_IDENTITY.exec(line)?.[1]?.toLowerCase() ?? []);
  if (!secrets.every((line) => isAgeIdentity(line) || PLUGIN_IDENTITY.test(line))) {
    throw new CommandError(
      `${path} has a line that is neither an age X25519 identity (AGE-SECRET-KEY-1…) nor a plugin’s (AGE-PLUGIN-NAME-1…)`,
    );
  }
  const claimedRecipients = lines.flatMap((line) => /^#.*?\b(age1[0-9a-z]{58})\s*$/.exec(line)?.[1] ?? []);
  return plugins.length === 0
    ? { path, opener: 'strongroom', kind: 'X25519 identity', identities: secrets, plugins, claimedRecipients }
    : {
        path,
        opener: 'age',
        kind: 'plugin identity',
        identities: [],
        plugins: [...new Set(plugins)],
        claimedRecipients,
      };
}
