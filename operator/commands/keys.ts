// `strongroom operator keys …`: the inventory, and the life of keys that are there. Making and importing them are files
// of their own.

import { EXIT } from '../../command-line/exit-codes.ts';
import { outputFile } from '../../command-line/output-file.ts';
import { note } from '../../command-line/terminal.ts';
import { plural } from '../../command-line/text.ts';
import {
  type KeyRecord,
  keyDeleteAnswerSchema,
  keyListSchema,
  keyPatchAnswerSchema,
  MAX_LISTED_KEYS,
} from '../../enclave/api/keys.ts';
import { type Group, remoteCommand, YES } from '../command.ts';
import { CommandFailure, UsageFailure } from '../exit.ts';
import {
  BATCH_SIZE,
  BATCH_TIMEOUT_SECONDS,
  inBatches,
  KEYS_PATH,
  type KeyResult,
  readBatchSize,
  readPublicKeys,
  renderResults,
  showResults,
  showValue,
  WHICH_KEYS,
} from '../key-batches.ts';
import { intoFile } from '../output-file.ts';
import { depositData, generate } from './keys-generate.ts';
import { importKeystores } from './keys-import.ts';

/** 100,000 keys is the designed size of one signer. */
const MAX_PAGES = 1000;

const list = remoteCommand({
  summary: 'List the keys, whether they can sign or not',
  flags: {
    status: { placeholder: 'STATUS', meaning: 'Only keys of this status', choices: ['active', 'inactive'] },
    source: { placeholder: 'SOURCE', meaning: 'Only keys that filesystem, dynamodb or memory holds' },
  },
  examples: ['keys list --status inactive', `keys list --json | jq -r '.keys[].pubkey'`],
  async run({ values, client, output, terminal }) {
    // A key that came into the table between two pages is in both: the later one is right.
    const found = new Map<string, KeyRecord>();
    let cursor: string | null = null;
    for (let page = 0; page < MAX_PAGES; page++) {
      const query = new URLSearchParams({ limit: String(MAX_LISTED_KEYS) });
      if (values.status !== undefined) query.set('status', values.status);
      if (values.source !== undefined) query.set('source', values.source);
      if (cursor !== null) query.set('cursor', cursor);
      const { value } = await client.request({ method: 'GET', path: `${KEYS_PATH}?${query}` }, keyListSchema);
      for (const key of value.keys) found.set(key.pubkey, key);
      cursor = value.next_cursor;
      if (cursor === null) {
        const keys = [...found.values()].sort((one, other) => (one.pubkey < other.pubkey ? -1 : 1));
        return showValue(output, { keys }, () => renderKeys(keys));
      }
      note(terminal, `${plural(found.size, 'key')} so far`);
    }
    throw new CommandFailure(EXIT.refused, `the inventory does not end after ${MAX_PAGES} pages`);
  },
});

function renderKeys(keys: readonly KeyRecord[]): string {
  if (keys.length === 0) return 'no keys\n';
  return keys.map((key) => `${key.pubkey} ${detailsOf(key).join(', ')}\n`).join('');
}

function detailsOf(key: KeyRecord): string[] {
  return [
    key.sources.join(' and '),
    key.status,
    key.loaded ? 'loaded' : 'not loaded',
    ...(key.has_backup ? ['backup'] : []),
    ...(key.has_deposit_data ? ['deposit data'] : []),
    `since ${key.created_at}`,
  ];
}

const activate = remoteCommand({
  summary: 'Let keys of the key table sign',
  flags: { ...WHICH_KEYS, ...BATCH_SIZE },
  timeoutSeconds: BATCH_TIMEOUT_SECONDS,
  examples: ['keys activate --pubkeys 0x8000…,0xa99a…', 'keys activate --pubkeys-file keys.txt'],
  run: (call) => changeStatus(call, 'active'),
});

const deactivate = remoteCommand({
  summary: 'Stop keys of the key table from signing, on every replica',
  flags: { ...WHICH_KEYS, ...BATCH_SIZE, ...YES },
  timeoutSeconds: BATCH_TIMEOUT_SECONDS,
  examples: ['keys deactivate --pubkeys 0x8000…,0xa99a…', 'keys deactivate --pubkeys-file keys.txt --yes'],
  run: (call) => changeStatus(call, 'inactive'),
});

type StatusCall = Parameters<Parameters<typeof remoteCommand<typeof WHICH_KEYS & typeof BATCH_SIZE>>[0]['run']>[0];

async function changeStatus(
  { values, client, output, terminal, confirm }: StatusCall,
  status: 'active' | 'inactive',
): Promise<void> {
  const keys = await readPublicKeys(values);
  const size = readBatchSize(values['batch-size']);
  if (status === 'inactive')
    await confirm(`${plural(keys.length, 'key')} will stop signing on every replica.`, 'deactivate');
  const results = await inBatches(keys, size, terminal, async (batch) => {
    const json = { keys: batch.map((pubkey) => ({ pubkey, status })) };
    return (await client.request({ method: 'PATCH', path: KEYS_PATH, json }, keyPatchAnswerSchema)).value.data;
  });
  showResults(output, results);
}

const remove = remoteCommand({
  summary: 'Delete keys, and keep their slashing protection records',
  flags: {
    ...WHICH_KEYS,
    ...outputFile('Where the EIP-3076 records of the keys go; needed'),
    'slashing-protection': { placeholder: 'FILE', formerly: 'output', meaning: 'The same' },
    ...BATCH_SIZE,
    ...YES,
  },
  timeoutSeconds: BATCH_TIMEOUT_SECONDS,
  examples: [
    'keys delete --pubkeys 0x8000…,0xa99a… --output records.json',
    'keys delete --pubkeys-file keys.txt --output records.json --yes',
  ],
  async run({ values, client, output, terminal, confirm }) {
    const keys = await readPublicKeys(values);
    const size = readBatchSize(values['batch-size']);
    await confirm(`${plural(keys.length, 'key')} will be deleted, for good; only a backup brings them back.`, 'delete');
    const records: Record<string, unknown>[] = [];
    const file = values.output;
    if (file === undefined) throw new UsageFailure('say where the slashing protection records go: --output FILE');
    const results: KeyResult[] = [];
    const deleteBatches = () =>
      inBatches(keys, size, terminal, async (batch) => {
        const request = { method: 'DELETE', path: KEYS_PATH, json: { pubkeys: batch } } as const;
        const { value } = await client.request(request, keyDeleteAnswerSchema);
        records.push(value.slashing_protection);
        results.push(...value.data);
        return value.data;
      });
    let failure: unknown;
    await intoFile(file, values.force, async () => {
      await deleteBatches().catch((error: unknown) => {
        if (records.length === 0) throw error;
        failure = error; // what batches before it answered is told once
      });
      return `${JSON.stringify(joined(records))}\n`;
    });
    note(terminal, `the slashing protection records are in ${file}`);
    if (failure === undefined) return showResults(output, results);
    const verb = results.length === 1 ? 'was' : 'were';
    note(terminal, `${results.length} of ${plural(keys.length, 'key')} ${verb} answered before this failed`);
    showValue(output, { data: results }, ({ data }) => renderResults(data));
    throw failure;
  },
});

/** The files of several batches, which are of one signer and so of one network, as one. */
function joined(files: readonly Record<string, unknown>[]): Record<string, unknown> {
  return { ...files[0], data: files.flatMap((file) => file['data'] ?? []) };
}

export const keys: Group = {
  kind: 'group',
  summary: 'Validator keys',
  commands: {
    list,
    import: importKeystores,
    generate,
    'deposit-data': depositData,
    activate,
    deactivate,
    delete: remove,
  },
};
