// `strongroom operator keys import`: a directory of EIP-2335 keystores. Everything is read before anything is sent; the
// slashing protection records go with the first request, so that they are merged before any key signs.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Flags } from '../../common/command-line/command.ts';
import { plural } from '../../common/command-line/printable.ts';
import { bounded } from '../../common/command-line/text.ts';
import { keyImportAnswerSchema } from '../../signer/api/key-answers.ts';
import { type RemoteCall, remoteCommand } from '../command.ts';
import { localFailure, UsageFailure } from '../exit.ts';
import {
  BATCH_SIZE,
  BATCH_TIMEOUT_SECONDS,
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
  readonly file: string;
  readonly text: string;
  readonly password: string;
}

export const keysImport = remoteCommand(
  {
    summary: 'Import a directory of EIP-2335 keystores',
    flags: {
      storage: {
        placeholder: 'WHERE',
        meaning: 'table: on every replica; memory: until this one ends',
        required: true,
        choices: ['table', 'memory'],
      },
      'password-file': { placeholder: 'FILE', meaning: 'The password of keystores that have none beside them' },
      'slashing-protection': { placeholder: 'FILE', meaning: 'Their EIP-3076 records, merged before any key signs' },
      'without-slashing-protection': {
        meaning: 'Import without records, and do not ask: nobody knows what they signed',
      },
      ...BATCH_SIZE,
    },
    argument: { name: 'DIRECTORY', meaning: 'Of NAME.json, each with NAME.password or NAME.txt' },
    timeoutSeconds: BATCH_TIMEOUT_SECONDS,
    examples: [
      'keys import keystores --storage table --slashing-protection records.json',
      'keys import keystores --storage memory --password-file password.txt',
    ],
  },

  async ({ values, argument, client, output, progress, confirm }) => {
    const size = readBatchSize(values['batch-size']);
    const common = values['password-file'];
    const password = common === undefined ? undefined : await readPassword(common);
    const keystores = await readKeystores(argument, password, progress);
    const file = values['slashing-protection'];
    const records = file === undefined ? undefined : await readLocalFile(file);
    if (records === undefined && !values['without-slashing-protection']) await ask(keystores.length, confirm);
    const results = await inBatches(keystores, { size, doing: 'importing', progress }, async (batch, first) => {
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
  },
);

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
async function readKeystores(
  directory: string,
  common: string | undefined,
  progress: RemoteCall<Flags>['progress'],
): Promise<Keystore[]> {
  const names = await readdir(directory).catch((error: unknown) => {
    throw pathFailure(directory, 'read', error);
  });
  const files = names.filter((name) => name.endsWith('.json')).sort();
  if (files.length > MAX_KEYS_PER_COMMAND)
    throw new UsageFailure(
      `${bounded(directory, MAX_NAME_CHARACTERS)} has more than ${MAX_KEYS_PER_COMMAND} keystores`,
      'import them in parts, from several directories',
    );
  using shown = progress({ doing: 'reading', unit: 'keystores', total: files.length });
  const keystores: Keystore[] = [];
  for (const [at, file] of files.entries()) {
    shown.reach(at);
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

/** Text that is not JSON counts as a keystore, so that the signer is sent it and says what is wrong with it. */
function isKeystore(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && 'crypto' in value;
  } catch {
    return true;
  }
}

async function readPassword(path: string): Promise<string> {
  return (await readLocalFile(path)).split(/\r?\n/)[0] ?? '';
}
