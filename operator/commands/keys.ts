// `strongroom operator keys …`: the inventory, and the life of keys that are there. Making and importing them are files
// of their own.

import type { Flags } from '../../common/command-line/command.ts';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { outputFile } from '../../common/command-line/output-file.ts';
import { plural } from '../../common/command-line/printable.ts';
import { renderTable } from '../../common/command-line/table.ts';
import { note } from '../../common/command-line/terminal.ts';
import {
  type KeyRecord,
  keyDeleteAnswerSchema,
  keyListSchema,
  keyPatchAnswerSchema,
} from '../../signer/api/key-answers.ts';
import { MAX_LISTED_KEYS } from '../../signer/api/keys.ts';
import type { Client } from '../client.ts';
import { type RemoteCall, remoteCommand, YES } from '../command.ts';
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

/** 100,000 keys is the designed size of one signer. */
const MAX_PAGES = 1000;
const FIRST_CHARACTERS = 10;
const LAST_CHARACTERS = 6;
const DATE_CHARACTERS = 10;
const LIFECYCLE = 'chamber.keys.lifecycle.enabled';

export const keysList = remoteCommand(
  {
    summary: 'List the keys, whether they can sign or not',
    flags: {
      status: { placeholder: 'STATUS', meaning: 'Only keys of this status', choices: ['active', 'inactive'] },
      source: {
        placeholder: 'SOURCE',
        meaning: 'Only keys that filesystem, dynamodb or memory holds',
        choices: ['filesystem', 'dynamodb', 'memory'],
      },
      search: { placeholder: 'HEX', meaning: 'Only keys that begin so, with or without 0x' },
      limit: { placeholder: 'COUNT', meaning: 'Only so many, the first by their digits' },
      full: { meaning: 'Whole keys, one a line, on a terminal as in a pipe' },
    },
    examples: ['keys list --search 0x9757 --limit 20', `keys list --json | jq -r '.keys[].pubkey'`],
  },

  async ({ values, client, output, terminal, progress }) => {
    const selected = readSelection(values);
    const all = await listAll(values, client, progress);
    const keys = selected(all);
    const isTable = terminal.stdout.isTTY === true && !values.full;
    showValue(output, { keys }, (_, columns) => (isTable ? keyTable(keys, columns) : renderKeys(keys)));
    const count = plural(all.length, 'key');
    return note(terminal, keys.length === all.length ? count : `${keys.length} of ${count}`);
  },
);

interface Filter {
  readonly status: string | undefined;
  readonly source: string | undefined;
}

export async function listAll(
  { status, source }: Filter,
  client: Client,
  progress: RemoteCall<Flags>['progress'],
): Promise<readonly KeyRecord[]> {
  using shown = progress({ doing: 'listing', unit: 'keys' });
  // A key that came into the table between two pages is in both: the later one is right.
  const found = new Map<string, KeyRecord>();
  let cursor: string | null = null;
  for (let page = 0; page < MAX_PAGES; page++) {
    const query = new URLSearchParams({ limit: String(MAX_LISTED_KEYS) });
    if (status !== undefined) query.set('status', status);
    if (source !== undefined) query.set('source', source);
    if (cursor !== null) query.set('cursor', cursor);
    const { value } = await client.request({ method: 'GET', path: `${KEYS_PATH}?${query}` }, keyListSchema);
    for (const key of value.keys) found.set(key.pubkey, key);
    shown.reach(found.size);
    cursor = value.next_cursor;
    if (cursor === null) return [...found.values()].sort((one, other) => (one.pubkey < other.pubkey ? -1 : 1));
  }
  throw new CommandFailure(EXIT.refused, `the inventory does not end after ${MAX_PAGES} pages`);
}

/** @returns what chooses among keys in the order of their digits @throws UsageFailure */
function readSelection({ search, limit }: { readonly search: string | undefined; readonly limit: string | undefined }) {
  const prefix = search?.toLowerCase().replace(/^0x/, '') ?? '';
  if (!/^[0-9a-f]{0,96}$/.test(prefix)) throw new UsageFailure('--search is the beginning of a public key: hex digits');
  const most = limit === undefined || /^[1-9][0-9]{0,6}$/.test(limit) ? Number(limit ?? Number.POSITIVE_INFINITY) : 0;
  if (most === 0) throw new UsageFailure('--limit is a whole number, 1 to 9999999');
  return (keys: readonly KeyRecord[]): readonly KeyRecord[] =>
    keys.filter(({ pubkey }) => pubkey.startsWith(`0x${prefix}`)).slice(0, most);
}

export function shortKey(publicKey: string): string {
  return `${publicKey.slice(0, FIRST_CHARACTERS)}…${publicKey.slice(-LAST_CHARACTERS)}`;
}

/** For a terminal: a key is known by its first and last digits there. */
function keyTable(keys: readonly KeyRecord[], columns: number): string {
  if (keys.length === 0) return 'no keys\n';
  const rows = keys.map(({ pubkey, sources, status, loaded, has_backup, created_at, distributed }) => [
    shortKey(pubkey),
    status,
    loaded ? 'yes' : 'NO',
    has_backup ? 'yes' : '-',
    created_at.slice(0, DATE_CHARACTERS),
    [sources.join(' and '), ...shareSize(distributed)].join(', '),
  ]);
  return renderTable(['KEY', 'STATUS', 'LOADED', 'BACKUP', 'SINCE', 'SOURCE'], rows, columns);
}

/** Nothing of a whole key. */
function shareSize(distributed: KeyRecord['distributed']): string[] {
  return distributed === null ? [] : [`share ${distributed.signing_threshold} of ${distributed.participants}`];
}

function renderKeys(keys: readonly KeyRecord[]): string {
  if (keys.length === 0) return 'no keys\n';
  return keys.map((key) => `${key.pubkey} ${detailsOf(key).join(', ')}\n`).join('');
}

function detailsOf(key: KeyRecord): string[] {
  return [
    key.sources.join(' and '),
    key.status,
    key.loaded ? 'loaded' : 'not loaded',
    ...shareSize(key.distributed),
    ...(key.has_backup ? ['backup'] : []),
    ...(key.has_deposit_data ? ['deposit data'] : []),
    `since ${key.created_at}`,
  ];
}

export const keysActivate = remoteCommand(
  {
    summary: 'Let keys of the key table sign',
    flags: { ...WHICH_KEYS, ...BATCH_SIZE },
    timeoutSeconds: BATCH_TIMEOUT_SECONDS,
    examples: ['keys activate --pubkeys 0x8000…,0xa99a…', 'keys activate --pubkeys-file keys.txt'],
  },

  async (call) => {
    await changeStatus(call, 'active');
  },
);

export const keysDeactivate = remoteCommand(
  {
    summary: 'Stop keys of the key table from signing, on every replica',
    flags: { ...WHICH_KEYS, ...BATCH_SIZE, ...YES },
    timeoutSeconds: BATCH_TIMEOUT_SECONDS,
    examples: ['keys deactivate --pubkeys 0x8000…,0xa99a…', 'keys deactivate --pubkeys-file keys.txt --yes'],
  },

  async (call) => {
    await changeStatus(call, 'inactive');
  },
);

type StatusCall = RemoteCall<typeof WHICH_KEYS & typeof BATCH_SIZE>;

async function changeStatus(
  { values, client, output, progress, confirm }: StatusCall,
  status: 'active' | 'inactive',
): Promise<void> {
  const keys = await readPublicKeys(values);
  const size = readBatchSize(values['batch-size']);
  if (status === 'inactive')
    await confirm(`${plural(keys.length, 'key')} will stop signing on every replica.`, 'deactivate');
  const doing = status === 'active' ? 'activating' : 'deactivating';
  const results = await inBatches(keys, { size, doing, progress }, async (batch) => {
    const json = { keys: batch.map((pubkey) => ({ pubkey, status })) };
    const request = { method: 'PATCH', path: KEYS_PATH, json, needs: LIFECYCLE } as const;
    return (await client.request(request, keyPatchAnswerSchema)).value.data;
  });
  showResults(output, results);
}

export const keysDelete = remoteCommand(
  {
    summary: 'Delete keys, and keep their slashing protection records',
    flags: {
      ...WHICH_KEYS,
      ...outputFile('Where the EIP-3076 records of the keys go; needed'),
      ...BATCH_SIZE,
      ...YES,
    },
    timeoutSeconds: BATCH_TIMEOUT_SECONDS,
    examples: [
      'keys delete --pubkeys 0x8000…,0xa99a… --output records.json',
      'keys delete --pubkeys-file keys.txt --output records.json --yes',
    ],
  },

  async ({ values, client, output, terminal, progress, confirm }) => {
    const keys = await readPublicKeys(values);
    const size = readBatchSize(values['batch-size']);
    const file = values.output;
    if (file === undefined) throw new UsageFailure('say where the slashing protection records go: --output FILE');
    await confirm(`${plural(keys.length, 'key')} will be deleted, for good; only a backup brings them back.`, 'delete');
    const records: Record<string, unknown>[] = [];
    const results: KeyResult[] = [];
    const deleteBatches = () =>
      inBatches(keys, { size, doing: 'deleting', progress }, async (batch) => {
        const request = { method: 'DELETE', path: KEYS_PATH, json: { pubkeys: batch }, needs: LIFECYCLE } as const;
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
);

/** The files of several batches, which are of one signer and so of one network, as one. */
function joined(files: readonly Record<string, unknown>[]): Record<string, unknown> {
  return { ...files[0], data: files.flatMap((file) => file['data'] ?? []) };
}
