// `strongroom operator keys …`: the inventory, and the life of keys that are there. Making and importing them are files
// of their own.

import { EXIT } from '../../command-line/exit-codes.ts';
import { note } from '../../command-line/terminal.ts';
import { plural } from '../../command-line/text.ts';
import {
  type KeyRecord,
  keyDeleteAnswerSchema,
  keyListSchema,
  keyPatchAnswerSchema,
  MAX_LISTED_KEYS,
} from '../../enclave/api/keys.ts';
import type { RemoteCall } from '../command.ts';
import type { keysActivate, keysDeactivate, keysDelete, keysList } from '../descriptions/keys.ts';
import { CommandFailure, UsageFailure } from '../exit.ts';
import {
  inBatches,
  KEYS_PATH,
  type KeyResult,
  readBatchSize,
  readPublicKeys,
  renderResults,
  showResults,
  showValue,
} from '../key-batches.ts';
import { intoFile } from '../output-file.ts';

/** 100,000 keys is the designed size of one signer. */
const MAX_PAGES = 1000;
const LIFECYCLE = 'chamber.keys.lifecycle.enabled';

export async function listKeys({ values, client, output, terminal }: RemoteCall<typeof keysList.flags>): Promise<void> {
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
    ...(key.has_backup ? ['backup'] : []),
    ...(key.has_deposit_data ? ['deposit data'] : []),
    `since ${key.created_at}`,
  ];
}

export async function activateKeys(call: RemoteCall<typeof keysActivate.flags>): Promise<void> {
  await changeStatus(call, 'active');
}

export async function deactivateKeys(call: RemoteCall<typeof keysDeactivate.flags>): Promise<void> {
  await changeStatus(call, 'inactive');
}

type StatusCall = RemoteCall<typeof keysActivate.flags>;

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
    const request = { method: 'PATCH', path: KEYS_PATH, json, needs: LIFECYCLE } as const;
    return (await client.request(request, keyPatchAnswerSchema)).value.data;
  });
  showResults(output, results);
}

export async function deleteKeys({
  values,
  client,
  output,
  terminal,
  confirm,
}: RemoteCall<typeof keysDelete.flags>): Promise<void> {
  const keys = await readPublicKeys(values);
  const size = readBatchSize(values['batch-size']);
  const file = values.output;
  if (file === undefined) throw new UsageFailure('say where the slashing protection records go: --output FILE');
  await confirm(`${plural(keys.length, 'key')} will be deleted, for good; only a backup brings them back.`, 'delete');
  const records: Record<string, unknown>[] = [];
  const results: KeyResult[] = [];
  const deleteBatches = () =>
    inBatches(keys, size, terminal, async (batch) => {
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
}

/** The files of several batches, which are of one signer and so of one network, as one. */
function joined(files: readonly Record<string, unknown>[]): Record<string, unknown> {
  return { ...files[0], data: files.flatMap((file) => file['data'] ?? []) };
}
