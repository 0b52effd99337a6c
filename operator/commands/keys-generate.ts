// `strongroom operator keys generate|deposit-data`: keys that the signer makes, and the deposit data of keys that it
// has. What is made for good is written to files that only their owner can read; backups are age files, which the
// recipients open.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EXIT } from '../../command-line/exit-codes.ts';
import { renderTable } from '../../command-line/table.ts';
import { note } from '../../command-line/terminal.ts';
import { plural } from '../../command-line/text.ts';
import {
  type KeyGenerateAnswer,
  type KeyGenerateBlsAnswer,
  keyDepositDataAnswerSchema,
  keyGenerateAnswerSchema,
  keyGenerateBlsAnswerSchema,
} from '../../enclave/api/keys.ts';
import { canonicalAddress } from '../../formats/address.ts';
import { decodeHex } from '../../formats/hex.ts';
import type { ApiRequest } from '../client.ts';
import type { RemoteCall } from '../command.ts';
import type { keysDepositData, keysGenerate } from '../descriptions/keys.ts';
import { CommandFailure, UsageFailure } from '../exit.ts';
import {
  inBatches,
  KEYS_PATH,
  MAX_KEYS_PER_COMMAND,
  pathFailure,
  readBatchSize,
  readCount,
  readPublicKeys,
  showValue,
} from '../key-batches.ts';
import { intoFile } from '../output-file.ts';

const GENERATE_KEYS = route('generate-keys', 'generate_keys');
const GENERATE = route('generate', 'generate');
const DEPOSIT_DATA = route('deposit-data', 'deposit_data');

function route(name: string, section: string): ApiRequest {
  return { method: 'POST', path: `${KEYS_PATH}/${name}`, needs: `chamber.keys.${section}.enabled` };
}

const CREDENTIALS_BYTES = 32;
const MAX_AMOUNT_GWEI = 2_048_000_000_000;

type GeneratedKey = KeyGenerateAnswer['keys'][number] | KeyGenerateBlsAnswer['keys'][number];

export async function generateKeys({
  values,
  client,
  output,
  terminal,
}: RemoteCall<typeof keysGenerate.flags>): Promise<void> {
  const count = readCount('count', values.count, MAX_KEYS_PER_COMMAND) ?? 1;
  const size = readBatchSize(values['batch-size']);
  const terms = termsOf(values);
  if (values.output !== undefined && terms === undefined) throw new UsageFailure(`--output needs ${TARGETS}`);
  if (values.backups !== undefined) await makeDirectory(values.backups);
  const backup = values.backups === undefined ? {} : { require_backup: true };
  const made: GeneratedKey[] = [];
  const work = () =>
    inBatches(Array.from({ length: count }), size, terminal, async (batch): Promise<readonly GeneratedKey[]> => {
      const json = { count: batch.length, ...backup, ...terms };
      const keys =
        terms === undefined
          ? await client.request({ ...GENERATE_KEYS, json }, keyGenerateBlsAnswerSchema)
          : await client.request({ ...GENERATE, json }, keyGenerateAnswerSchema);
      made.push(...keys.value.keys);
      if (values.backups !== undefined) await writeBackups(values.backups, keys.value.keys);
      return keys.value.keys;
    });
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
}

export async function makeDepositData({
  values,
  client,
  output,
  terminal,
  confirm,
}: RemoteCall<typeof keysDepositData.flags>): Promise<void> {
  const keys = await readPublicKeys(values);
  const size = readBatchSize(values['batch-size']);
  const terms = termsOf(values);
  const force = values['force-recompute'];
  if (terms === undefined) throw new UsageFailure(`give ${TARGETS}`);
  if (force) await confirm('Stored deposit data on other terms will be replaced.', 'recompute');
  const work = () =>
    inBatches(keys, size, terminal, async (batch) => {
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
}

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

async function writeBackups(directory: string, keys: readonly GeneratedKey[]): Promise<void> {
  for (const { pubkey, backup } of keys) {
    if (backup === undefined) throw new CommandFailure(EXIT.failed, `the signer gave no backup of ${pubkey}`);
    const path = join(directory, `${pubkey}.age`);
    await writeFile(path, backup, { flag: 'wx', mode: 0o600, flush: true }).catch((error: unknown) => {
      throw pathFailure(path, 'written', error);
    });
  }
}
