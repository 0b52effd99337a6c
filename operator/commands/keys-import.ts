// `strongroom operator keys import`: a directory of EIP-2335 keystores, each with its password beside it. Everything is
// read before anything is sent; the slashing protection records go with the first request, so that they are merged
// before any of the keys signs.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Flags } from '../../command-line/command.ts';
import { bounded, plural } from '../../command-line/text.ts';
import { keyImportAnswerSchema } from '../../enclave/api/keys.ts';
import type { RemoteCall } from '../command.ts';
import type { keysImport } from '../descriptions/keys.ts';
import { localFailure, UsageFailure } from '../exit.ts';
import {
  inBatches,
  KEYS_PATH,
  MAX_KEYS_PER_COMMAND,
  pathFailure,
  readBatchSize,
  readLocalFile,
  showResults,
} from '../key-batches.ts';

const PASSWORD_ENDINGS = ['.password', '.txt'];
const MAX_NAME_CHARACTERS = 200;

interface Keystore {
  /** Its name in the directory. */
  readonly file: string;
  readonly text: string;
  readonly password: string;
}

export async function importKeystores({
  values,
  argument,
  client,
  output,
  terminal,
  confirm,
}: RemoteCall<typeof keysImport.flags>): Promise<void> {
  const size = readBatchSize(values['batch-size']);
  const common = values['password-file'];
  const keystores = await readKeystores(argument, common === undefined ? undefined : await readPassword(common));
  const file = values['slashing-protection'];
  const records = file === undefined ? undefined : await readLocalFile(file);
  if (records === undefined && !values['without-slashing-protection']) await ask(keystores.length, confirm);
  const results = await inBatches(keystores, size, terminal, async (batch, first) => {
    const json = {
      keystores: batch.map(({ text }) => text),
      passwords: batch.map(({ password }) => password),
      ...(first && records !== undefined ? { slashing_protection: records } : {}),
      storage: { persist: values.storage === 'table' },
    };
    const request = { method: 'POST', path: KEYS_PATH, json, needs: 'chamber.keys.import.enabled' } as const;
    const { value } = await client.request(request, keyImportAnswerSchema);
    return value.data.map((result, at) => ({ ...result, file: batch[at]?.file ?? '' }));
  });
  showResults(output, results);
}

/** @throws CommandFailure unless it is confirmed */
async function ask(count: number, confirm: RemoteCall<Flags>['confirm']): Promise<void> {
  const keys = `${plural(count, 'key')} ${count === 1 ? 'comes' : 'come'}`;
  await confirm(
    `${keys} without slashing protection records: what was signed with ${count === 1 ? 'it' : 'them'} elsewhere is not known here, ` +
      'and a second vote for the same epoch would be slashed. Name the records with --slashing-protection FILE. Only ' +
      'keys that have never signed need none.',
    'without records',
    '--without-slashing-protection',
  );
}

/** Every keystore of the directory; JSON files of other kinds, such as deposit data, are left out. */
async function readKeystores(directory: string, common: string | undefined): Promise<Keystore[]> {
  const names = await readdir(directory).catch((error: unknown) => {
    throw pathFailure(directory, 'read', error);
  });
  const files = names.filter((name) => name.endsWith('.json')).sort();
  if (files.length > MAX_KEYS_PER_COMMAND)
    throw new UsageFailure(
      `${bounded(directory, MAX_NAME_CHARACTERS)} has more than ${MAX_KEYS_PER_COMMAND} keystores`,
      'import them in parts, from several directories',
    );
  const keystores: Keystore[] = [];
  for (const file of files) {
    const text = await readLocalFile(join(directory, file));
    if (!isKeystore(text)) continue;
    const beside = PASSWORD_ENDINGS.map((ending) => file.replace(/\.json$/, ending)).find((name) =>
      names.includes(name),
    );
    const password = beside === undefined ? common : await readPassword(join(directory, beside));
    if (password === undefined) {
      throw localFailure(
        `${bounded(file, MAX_NAME_CHARACTERS)} has no password file beside it`,
        'name one for all with --password-file',
      );
    }
    keystores.push({ file, text, password });
  }
  if (keystores.length === 0)
    throw localFailure(
      `${bounded(directory, MAX_NAME_CHARACTERS)} has no keystores: nothing was sent`,
      'name the directory of EIP-2335 files, NAME.json each',
    );
  return keystores;
}

/** Text that is not JSON counts as one: the signer then says what is wrong with it, instead of nobody. */
function isKeystore(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && 'crypto' in value;
  } catch {
    return true;
  }
}

/** The first line, as signers read it. */
async function readPassword(path: string): Promise<string> {
  return (await readLocalFile(path)).split(/\r?\n/)[0] ?? '';
}
