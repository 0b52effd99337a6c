// `strongroom operator keys generate|deposit-data|backups`. What is made for good is written to files that only their
// owner can read; backups are age files.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Flags } from '../../common/command-line/command.ts';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { outputFile } from '../../common/command-line/output-file.ts';
import { plural } from '../../common/command-line/printable.ts';
import { renderTable } from '../../common/command-line/table.ts';
import { note } from '../../common/command-line/terminal.ts';
import { canonicalAddress } from '../../common/formats/address.ts';
import { errorCode } from '../../common/formats/error-code.ts';
import { decodeHex } from '../../common/formats/hex.ts';
import {
  type KeyGenerateAnswer,
  type KeyGenerateBlsAnswer,
  keyBackupsAnswerSchema,
  keyDepositDataAnswerSchema,
  keyGenerateAnswerSchema,
  keyGenerateBlsAnswerSchema,
} from '../../signer/api/key-answers.ts';
import type { ApiRequest } from '../client.ts';
import { remoteCommand, YES } from '../command.ts';
import { CommandFailure, UsageFailure } from '../exit.ts';
import {
  BATCH_SIZE,
  BATCH_TIMEOUT_SECONDS,
  inBatches,
  KEYS_PATH,
  MAX_KEYS_PER_COMMAND,
  pathFailure,
  readBatchSize,
  readCount,
  readPublicKeys,
  showValue,
  WHICH_KEYS,
} from '../key-batches.ts';
import { intoFile } from '../output-file.ts';
import { listAll } from './keys.ts';

const TERMS = {
  'withdrawal-address': { placeholder: 'HEX', meaning: 'Execution address that the stake returns to' },
  credentials: { placeholder: 'HEX', meaning: 'Withdrawal credentials, 32 bytes, instead of an address' },
  'amount-gwei': { placeholder: 'GWEI', meaning: 'Of the deposit; 32 ETH when not given' },
  compounding: { meaning: 'Withdrawal credentials of type 0x02' },
  ...outputFile('Where the deposit data goes'),
} as const satisfies Flags;

const GENERATE_KEYS = route('generate-keys', 'generate_keys');
const GENERATE = route('generate', 'generate');
const BACKUPS = route('backups', 'generate_keys');
const DEPOSIT_DATA = route('deposit-data', 'deposit_data');

function route(name: string, section: string): ApiRequest {
  return { method: 'POST', path: `${KEYS_PATH}/${name}`, needs: `chamber.keys.${section}.enabled` };
}

const CREDENTIALS_BYTES = 32;
const MAX_AMOUNT_GWEI = 2_048_000_000_000;

type GeneratedKey = KeyGenerateAnswer['keys'][number] | KeyGenerateBlsAnswer['keys'][number];

export const keysGenerate = remoteCommand(
  {
    summary: 'Generate keys in the key table',
    flags: {
      count: { placeholder: 'COUNT', meaning: 'How many', required: true },
      ...TERMS,
      backups: { placeholder: 'DIRECTORY', meaning: 'Where the encrypted mnemonics go, a file for each key' },
      ...BATCH_SIZE,
    },
    timeoutSeconds: BATCH_TIMEOUT_SECONDS,
    examples: [
      'keys generate --count 10 --backups backups',
      'keys generate --count 10 --withdrawal-address 0x5290… --output data.json',
    ],
  },

  async ({ values, client, output, terminal, progress }) => {
    const count = readCount('count', values.count, MAX_KEYS_PER_COMMAND) ?? 1;
    const size = readBatchSize(values['batch-size']);
    const terms = termsOf(values);
    if (values.output !== undefined && terms === undefined) throw new UsageFailure(`--output needs ${TARGETS}`);
    if (values.backups !== undefined) await makeDirectory(values.backups);
    const backup = values.backups === undefined ? {} : { require_backup: true };
    const made: GeneratedKey[] = [];
    const work = () =>
      inBatches(
        Array.from({ length: count }),
        { size, doing: 'generating', progress },
        async (batch): Promise<readonly GeneratedKey[]> => {
          const json = { count: batch.length, ...backup, ...terms };
          const keys =
            terms === undefined
              ? await client.request({ ...GENERATE_KEYS, json }, keyGenerateBlsAnswerSchema)
              : await client.request({ ...GENERATE, json }, keyGenerateAnswerSchema);
          made.push(...keys.value.keys);
          if (values.backups !== undefined) await writeBackups(values.backups, keys.value.keys);
          return keys.value.keys;
        },
      );
    const show = () => showValue(output, { keys: made }, () => made.map(({ pubkey }) => `${pubkey}\n`).join(''));
    try {
      if (values.output === undefined) await work();
      else await intoFile(values.output, values.force, () => work().then(() => depositFile(made)));
    } catch (error) {
      if (made.length > 0) {
        show();
        note(
          terminal,
          `${made.length} of ${plural(count, 'key')} ${made.length === 1 ? 'was' : 'were'} made before this failed; keys deposit-data gives their deposit data`,
        );
      }
      throw error;
    }
    show();
    if (values.output !== undefined) note(terminal, `the deposit data is in ${values.output}`);
    if (values.backups === undefined && made.some(({ backup }) => backup !== undefined))
      note(terminal, 'their backups are in the key table: strongroom operator keys backups --directory DIRECTORY');
  },
);

export const keysBackups = remoteCommand(
  {
    summary: 'Fetch the encrypted mnemonics of generated keys',
    flags: {
      ...WHICH_KEYS,
      directory: { placeholder: 'DIRECTORY', meaning: 'Where they go, PUBLIC KEY.age each', required: true },
      ...BATCH_SIZE,
    },
    notes: [
      'Without --pubkeys and --pubkeys-file those of all keys that have one; that needs the scope chamber_keys_list. A ' +
        'file that is there stays as it is, and has to be the same.',
    ],
    timeoutSeconds: BATCH_TIMEOUT_SECONDS,
    examples: ['keys backups --directory backups', 'keys backups --pubkeys 0x8000… --directory backups'],
  },

  async ({ values, client, output, terminal, progress }) => {
    const { directory } = values;
    const isNamed = values.pubkeys !== undefined || values['pubkeys-file'] !== undefined;
    const size = readBatchSize(values['batch-size']);
    const inTable = { status: undefined, source: 'dynamodb' };
    const all = isNamed ? [] : await listAll(inTable, client, progress);
    const keys = isNamed
      ? await readPublicKeys(values)
      : all.flatMap(({ pubkey, has_backup }) => (has_backup ? [pubkey] : []));
    await makeDirectory(directory);
    const results = await inBatches(keys, { size, doing: 'fetching backups of', progress }, async (batch) => {
      const json = { pubkeys: batch };
      const { data } = (await client.request({ ...BACKUPS, json }, keyBackupsAnswerSchema)).value;
      await writeBackups(
        directory,
        data.filter(({ status }) => status === 'found'),
      );
      return data.map(({ pubkey, status }) => ({ pubkey, status }));
    });
    showValue(output, { data: results }, () => renderCounts(results));
    const missing = results.filter(({ status }) => status !== 'found').length;
    if (missing < results.length) note(terminal, `the backups are in ${directory}`);
    if (missing === 0) return;
    const have = results.length === 1 ? 'has' : 'have';
    throw new CommandFailure(EXIT.refused, `${missing} of ${plural(results.length, 'key')} ${have} no backup there`);
  },
);

export const keysDepositData = remoteCommand(
  {
    summary: 'Deposit data of keys of the key table',
    flags: {
      ...WHICH_KEYS,
      ...TERMS,
      'force-recompute': { meaning: 'Replace data on other terms, where the signer allows it' },
      ...BATCH_SIZE,
      ...YES,
    },
    timeoutSeconds: BATCH_TIMEOUT_SECONDS,
    examples: [
      'keys deposit-data --pubkeys-file keys.txt --credentials 0x01… --output data.json',
      'keys deposit-data --pubkeys 0x80… --withdrawal-address 0x52… --force-recompute',
    ],
  },

  async ({ values, client, output, progress, confirm }) => {
    const keys = await readPublicKeys(values);
    const size = readBatchSize(values['batch-size']);
    const terms = termsOf(values);
    const force = values['force-recompute'];
    if (terms === undefined) throw new UsageFailure(`give ${TARGETS}`);
    if (force) await confirm('Stored deposit data on other terms will be replaced.', 'recompute');
    const work = () =>
      inBatches(keys, { size, doing: 'asking for deposit data of', progress }, async (batch) => {
        const json = { pubkeys: batch, ...terms, force_recompute_on_conflict: force };
        return (await client.request({ ...DEPOSIT_DATA, json }, keyDepositDataAnswerSchema)).value.data;
      });
    let data: Awaited<ReturnType<typeof work>> = [];
    // Data on other terms than those asked for is not what the file is for.
    const file = async () => {
      data = await work();
      return depositFile(data.filter(({ status }) => status === 'created' || status === 'existing'));
    };
    if (values.output === undefined) data = await work();
    else await intoFile(values.output, values.force, file);
    showValue(output, { data }, () => renderCounts(data));
    const missing = data.filter(({ status }) => status === 'conflict' || status === 'not_found').length;
    if (missing === 0) return;
    const conflicts = data.some(({ status }) => status === 'conflict');
    throw new CommandFailure(
      EXIT.refused,
      `${missing} of ${plural(data.length, 'key')} ${data.length === 1 ? 'has' : 'have'} no such deposit data`,
      conflicts ? 'conflict: the data that is stored is on other terms; --force-recompute replaces it' : undefined,
    );
  },
);

const TARGETS = '--withdrawal-address or --credentials';

function termsOf(values: {
  readonly 'withdrawal-address': string | undefined;
  readonly credentials: string | undefined;
  readonly 'amount-gwei': string | undefined;
  readonly compounding: boolean;
}): Record<string, unknown> | undefined {
  const { 'withdrawal-address': address, credentials, compounding } = values;
  const amount = readCount('amount-gwei', values['amount-gwei'], MAX_AMOUNT_GWEI);
  if (address === undefined && credentials === undefined) {
    if (amount !== undefined || compounding) throw new UsageFailure(`a deposit needs ${TARGETS}`);
    return undefined;
  }
  if (address !== undefined && credentials !== undefined) throw new UsageFailure(`give either ${TARGETS}, not both`);
  assertTarget(address, credentials);
  return {
    ...(address === undefined ? {} : { withdrawal_address: address }),
    ...(credentials === undefined ? {} : { withdrawal_credentials: credentials }),
    ...(amount === undefined ? {} : { amount_gwei: amount }),
    ...(compounding ? { compounding } : {}),
  };
}

/** What the signer would refuse, before anything is sent. @throws UsageFailure */
function assertTarget(address: string | undefined, credentials: string | undefined): void {
  if (credentials !== undefined && decodeHex(credentials, CREDENTIALS_BYTES) === undefined)
    throw new UsageFailure('--credentials is not 32 bytes of hex', 'give 0x and 64 hex digits');
  if (address === undefined) return;
  const read = canonicalAddress(address);
  if (typeof read === 'string' && address.startsWith('0x')) return;
  if (typeof read === 'string' || read.refused === 'not_an_address')
    throw new UsageFailure('--withdrawal-address is no address', 'give 0x and 40 hex digits (20 bytes)');
  throw new UsageFailure(
    '--withdrawal-address has a wrong checksum (EIP-55: its cases are mixed), so a digit is wrong',
    'copy the address again',
  );
}

function depositFile(keys: readonly object[]): string {
  return `${JSON.stringify(keys.flatMap((key) => ('deposit_data' in key ? [key.deposit_data] : [])))}\n`;
}

function renderCounts(data: readonly { readonly status: string }[]): string {
  const statuses = [...new Set(data.map(({ status }) => status))];
  const countOf = (wanted: string) => String(data.filter(({ status }) => status === wanted).length);
  return renderTable(
    ['STATUS', 'KEYS'],
    statuses.map((status) => [status, countOf(status)]),
  );
}

async function makeDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    throw pathFailure(path, 'written', error);
  });
}

/** A file that is there stays: it is the same backup, or it is in the way. */
async function writeBackups(
  directory: string,
  keys: readonly { readonly pubkey: string; readonly backup?: string }[],
): Promise<void> {
  for (const { pubkey, backup } of keys) {
    if (backup === undefined) throw new CommandFailure(EXIT.failed, `the signer gave no backup of ${pubkey}`);
    const path = join(directory, `${pubkey}.age`);
    await writeFile(path, backup, { flag: 'wx', mode: 0o600, flush: true }).catch(async (error: unknown) => {
      const before = errorCode(error) === 'EEXIST' ? await readFile(path, 'utf8').catch(() => undefined) : undefined;
      if (before !== backup) throw pathFailure(path, 'written', error);
    });
  }
}
