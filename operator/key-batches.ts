// What the key commands share: naming keys, asking in batches that say how far they are, and showing what came of each
// key.

import { readFile } from 'node:fs/promises';
import type { Flags } from '../common/command-line/command.ts';
import { EXIT } from '../common/command-line/exit-codes.ts';
import { shownErrorCode } from '../common/command-line/file-faults.ts';
import { plural } from '../common/command-line/printable.ts';
import type { Progress, Work } from '../common/command-line/progress.ts';
import { renderTable } from '../common/command-line/table.ts';
import { bounded, printable } from '../common/command-line/text.ts';
import { canonicalPublicKey } from '../common/formats/hex.ts';
import { CommandFailure, UsageFailure } from './exit.ts';
import { fileFailure } from './file-failure.ts';
import type { AnswerOutput } from './output.ts';

/** The signer answers a batch when all of it is done. */
export const BATCH_TIMEOUT_SECONDS = 600;

/** The signer's default limit of items in one request. */
const DEFAULT_BATCH_SIZE = 100;

export const BATCH_SIZE = {
  'batch-size': { placeholder: 'COUNT', meaning: `Keys of one request; ${DEFAULT_BATCH_SIZE} when not given` },
} as const satisfies Flags;

export const WHICH_KEYS = {
  pubkeys: { placeholder: 'KEY,KEY', meaning: 'The keys' },
  'pubkeys-file': { placeholder: 'FILE', meaning: 'The keys, one a line' },
} as const satisfies Flags;

export const KEYS_PATH = '/api/v1/chamber/keys';
const MAX_BATCH_SIZE = 10_000;
export const MAX_KEYS_PER_COMMAND = 100_000;
const MAX_MESSAGE_CHARACTERS = 200;
const MAX_PATH_CHARACTERS = 200;

/** What was written is not repeated: it may be a secret key in the wrong place. */
export const PUBLIC_KEY_ADVICE = 'a public key is 0x and 96 hex digits (48 bytes)';

export async function readPublicKeys(flags: {
  readonly pubkeys: string | undefined;
  readonly 'pubkeys-file': string | undefined;
}): Promise<string[]> {
  const { pubkeys, 'pubkeys-file': file } = flags;
  if ((pubkeys === undefined) === (file === undefined))
    throw new UsageFailure('give either --pubkeys or --pubkeys-file');
  const texts = file === undefined ? (pubkeys ?? '').split(',') : (await readLocalFile(file)).split('\n');
  const place = file === undefined ? '--pubkeys' : bounded(file, MAX_PATH_CHARACTERS);
  const keys = texts.flatMap((text, at) => (text.trim() === '' ? [] : [{ text: text.trim(), number: at + 1 }]));
  if (keys.length === 0) throw new UsageFailure(`${place} names no key`, PUBLIC_KEY_ADVICE);
  const canonical = keys.map(({ text, number }) => {
    const key = canonicalPublicKey(text);
    if (key !== undefined) return key;
    throw new UsageFailure(
      `${place}: ${file === undefined ? 'key' : 'line'} ${number} is no public key`,
      PUBLIC_KEY_ADVICE,
    );
  });
  if (canonical.length > MAX_KEYS_PER_COMMAND)
    throw new UsageFailure(`${place} names more than ${MAX_KEYS_PER_COMMAND} keys`, 'give them in several commands');
  return [...new Set(canonical)];
}

export function readCount(name: string, written: string | undefined, maximum: number): number | undefined {
  if (written === undefined) return undefined;
  const count = Number(written);
  if (!/^[0-9]{1,15}$/.test(written) || count < 1 || count > maximum) {
    throw new UsageFailure(`--${name} is a whole number from 1 to ${maximum}`);
  }
  return count;
}

export function readBatchSize(written: string | undefined): number {
  return readCount('batch-size', written, MAX_BATCH_SIZE) ?? DEFAULT_BATCH_SIZE;
}

export interface Batches {
  readonly size: number;
  readonly doing: string;
  readonly progress: (work: Work) => Progress;
}

export async function inBatches<Item, Result>(
  items: readonly Item[],
  { size, doing, progress }: Batches,
  request: (batch: readonly Item[], first: boolean) => Promise<readonly Result[]>,
): Promise<Result[]> {
  using shown = progress({ doing, unit: 'keys', total: items.length });
  const results: Result[] = [];
  for (let start = 0; start < items.length; start += size) {
    results.push(...(await request(items.slice(start, start + size), start === 0)));
    shown.reach(Math.min(start + size, items.length));
  }
  return results;
}

export interface KeyResult {
  readonly pubkey: string | null;
  readonly status: string;
  readonly message?: string;
  readonly file?: string;
}

/**
 * Prints the results and names each key that failed; then the command fails.
 * @throws CommandFailure when there are errors
 */
export function showResults<Result extends KeyResult>(output: AnswerOutput, results: readonly Result[]): void {
  showValue(output, { data: results }, ({ data }) => renderResults(data));
  const errors = results.filter(({ status }) => status === 'error').length;
  if (errors > 0) throw new CommandFailure(EXIT.refused, `${errors} of ${plural(results.length, 'key')} failed`);
}

export function showValue<Value>(
  output: AnswerOutput,
  value: Value,
  render: (value: Value, columns: number) => string,
): void {
  output.answer({ value, text: JSON.stringify(value) }, render);
}

export function renderResults(results: readonly KeyResult[]): string {
  const counts = new Map<string, number>();
  for (const { status } of results) counts.set(status, (counts.get(status) ?? 0) + 1);
  const table = renderTable(
    ['STATUS', 'KEYS'],
    [...counts].map(([status, count]) => [status, String(count)]),
  );
  const errors = results.filter(({ message }) => message !== undefined);
  return table + errors.map((result) => `${shown(result.pubkey)}\n  ${reason(result)}\n`).join('');
}

function shown(pubkey: string | null): string {
  return pubkey === null ? 'a keystore that does not name its key' : printable(pubkey);
}

function reason({ file, message }: KeyResult): string {
  return `${file === undefined ? '' : `${bounded(file, MAX_PATH_CHARACTERS)}: `}${text(message)}`;
}

function text(message: string | undefined): string {
  return bounded(message ?? '', MAX_MESSAGE_CHARACTERS);
}

export async function readLocalFile(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: unknown) => {
    throw pathFailure(path, 'read', error);
  });
}

export function pathFailure(path: string, verb: 'read' | 'written', error: unknown): CommandFailure {
  const code = shownErrorCode(error);
  return fileFailure(bounded(path, MAX_PATH_CHARACTERS), verb, code);
}
