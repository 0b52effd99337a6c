// `strongroom operator slashing …`: EIP-3076 interchange through the signer, for where it has no shell. An export
// appears under its name only when it is whole and on disk; an import is merged by the signer, all or nothing, never
// weakening.

import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { renderFields } from '../../command-line/table.ts';
import { note, type Terminal } from '../../command-line/terminal.ts';
import { bounded, printableJson } from '../../command-line/text.ts';
import { slashingImportAnswerSchema } from '../../enclave/api/slashing-protection.ts';
import { canonicalPublicKey } from '../../formats/hex.ts';
import { type Group, remoteCommand } from '../command.ts';
import { CommandFailure, localFailure, UsageFailure } from '../exit.ts';

const ROUTE = '/api/v1/chamber/slashing-protection';
/** The signer answers an import when all of it is merged and durable. */
const TIMEOUT_SECONDS = 600;
/** With their commas in one URL they stay below the 16 KiB that Node takes for a request's head. */
const MAX_PUBLIC_KEYS = 128;
const MAX_PATH_CHARACTERS = 200;

const exportRecords = remoteCommand({
  summary: 'Write the records as EIP-3076 to stdout or a file',
  flags: {
    file: { placeholder: 'FILE', meaning: 'Where to; stdout when not given' },
    pubkeys: { placeholder: 'KEY,KEY', meaning: `Only these keys, at most ${MAX_PUBLIC_KEYS}` },
  },
  timeoutSeconds: TIMEOUT_SECONDS,
  examples: [
    'slashing export --file slashing_protection.json',
    'slashing export --pubkeys 0x8000…,0xa99a… > two-keys.json',
  ],
  async run({ values: { file, pubkeys }, client, terminal }) {
    const path = pubkeys === undefined ? ROUTE : `${ROUTE}?pubkeys=${readPublicKeys(pubkeys).join(',')}`;
    await client.download(path, (body) => (file === undefined ? toStdout(body, terminal) : toFile(body, file)));
    note(terminal, file === undefined ? 'exported, whole' : `exported to ${file}`);
  },
});

const importRecords = remoteCommand({
  summary: 'Merge an EIP-3076 file into the records',
  flags: {},
  argument: { name: 'FILE', meaning: 'An EIP-3076 file, or - for stdin' },
  timeoutSeconds: TIMEOUT_SECONDS,
  examples: [
    'slashing import slashing_protection.json',
    'slashing import - --token env:SLASHING_TOKEN < slashing_protection.json',
  ],
  async run({ argument, client, output, terminal }) {
    const upload = await openSource(argument, terminal);
    const answer = await client.request({ method: 'POST', path: ROUTE, upload }, slashingImportAnswerSchema);
    output.answer(answer, (summary) =>
      renderFields([
        ['keys', String(summary.validators)],
        ['blocks', String(summary.blocks)],
        ['attestations', String(summary.attestations)],
        ['already present', String(summary.already_present)],
        ['conflicts', String(summary.conflicts)],
      ]),
    );
    if (answer.value.conflicts > 0) {
      note(terminal, 'the file and the records hold slashable messages; both are kept, so nothing is weakened');
    }
  },
});

export const slashing: Group = {
  kind: 'group',
  summary: 'Slashing protection records, as EIP-3076 files',
  commands: { export: exportRecords, import: importRecords },
};

function readPublicKeys(written: string): string[] {
  const keys = written.split(',').map((key) => canonicalPublicKey(key.trim()));
  if (keys.includes(undefined)) throw new UsageFailure('--pubkeys: a public key is 48 bytes of hex');
  if (keys.length > MAX_PUBLIC_KEYS)
    throw new UsageFailure(`--pubkeys names more than ${MAX_PUBLIC_KEYS} keys; export all`);
  return keys as string[];
}

async function toStdout(body: AsyncIterable<Buffer>, { stdout }: Terminal): Promise<void> {
  await pipeline(stdout.isTTY ? forTerminal(body) : body, stdout, { end: false });
}

async function* forTerminal(body: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const chunk of body) yield printableJson(decoder.decode(chunk, { stream: true }));
  yield printableJson(decoder.decode());
}

/** First beside it, then in its place: a broken export never looks like a whole one, nor replaces it. */
async function toFile(body: AsyncIterable<Buffer>, file: string): Promise<void> {
  const partial = `${file}.${randomBytes(6).toString('hex')}.partial`;
  try {
    await pipeline(body, createWriteStream(partial, { flags: 'wx', mode: 0o600, flush: true }));
    await rename(partial, file);
  } catch (error) {
    await rm(partial, { force: true });
    if (error instanceof CommandFailure) throw error;
    throw localFailure(`${bounded(file, MAX_PATH_CHARACTERS)} cannot be written (${codeOf(error)})`);
  }
}

/** Opened before anything is sent. */
async function openSource(file: string, { stdin }: Terminal): Promise<AsyncIterable<Buffer>> {
  if (file === '-') return stdin as AsyncIterable<Buffer>;
  const handle = await open(file).catch((error: unknown) => {
    throw unreadable(file, error);
  });
  return readChunks(file, handle);
}

async function* readChunks(file: string, handle: FileHandle): AsyncGenerator<Buffer> {
  try {
    yield* handle.createReadStream() as AsyncIterable<Buffer>;
  } catch (error) {
    throw unreadable(file, error);
  }
}

function unreadable(file: string, error: unknown): CommandFailure {
  return localFailure(`${bounded(file, MAX_PATH_CHARACTERS)} cannot be read (${codeOf(error)})`);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
}
