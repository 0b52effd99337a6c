// `strongroom operator slashing …`: EIP-3076 interchange through the signer, for where it has no shell. An export
// appears under its name only when it is whole and on disk; an import is merged by the signer, never weakening.

import { type FileHandle, open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { ACCEPT_FUTURE } from '../../common/command-line/accept-future.ts';
import { type Conflict, sayConflicts } from '../../common/command-line/conflicts.ts';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { shownErrorCode } from '../../common/command-line/file-faults.ts';
import { outputFile, writeOutput } from '../../common/command-line/output-file.ts';
import { printableJson } from '../../common/command-line/printable.ts';
import type { Progress } from '../../common/command-line/progress.ts';
import { renderFields } from '../../common/command-line/table.ts';
import { note, type Terminal } from '../../common/command-line/terminal.ts';
import { bounded, printable } from '../../common/command-line/text.ts';
import { canonicalPublicKey } from '../../common/formats/hex.ts';
import { type SlashingImportAnswer, slashingImportAnswerSchema } from '../../signer/api/slashing-protection.ts';
import { remoteCommand } from '../command.ts';
import { CommandFailure, UsageFailure } from '../exit.ts';
import { fileFailure } from '../file-failure.ts';
import { PUBLIC_KEY_ADVICE } from '../key-batches.ts';
import { checkFile, explained } from '../output-file.ts';

/** The signer answers an import when all of it is merged and durable. */
const TIMEOUT_SECONDS = 600;

/** So many keys in one URL, with their commas, stay below the 16 KiB that Node takes for a request's head. */
const MAX_PUBLIC_KEYS = 128;

const ROUTE = '/api/v1/chamber/slashing-protection';
const MAX_PATH_CHARACTERS = 200;
const CONFLICTS_ADVICE = 'find out which signer signed them: docs/runbooks/slashing-incident.md';

export const slashingExport = remoteCommand(
  {
    summary: 'Write the records as EIP-3076 to stdout or a file',
    flags: {
      ...outputFile('Where to; stdout when not given'),
      pubkeys: { placeholder: 'KEY,KEY', meaning: `Only these keys, at most ${MAX_PUBLIC_KEYS}` },
    },
    timeoutSeconds: TIMEOUT_SECONDS,
    examples: [
      'slashing export --output slashing_protection.json',
      'slashing export --pubkeys 0x8000…,0xa99a… > two-keys.json',
    ],
  },

  async ({ values: { output: file, force, pubkeys }, client, terminal, progress }) => {
    if (file !== undefined) await checkFile(file, force);
    const path = pubkeys === undefined ? ROUTE : `${ROUTE}?pubkeys=${readPublicKeys(pubkeys).join(',')}`;
    if (file === undefined) await client.download(path, (body) => toStdout(body, terminal));
    else
      await client.download(path, async (body) => {
        using shown = progress({ doing: 'exporting', unit: 'kB' });
        await toFile(counted(body, shown), file, force);
      });
    note(terminal, file === undefined ? 'exported, whole' : `exported to ${file}`);
  },
);

export const slashingImport = remoteCommand(
  {
    summary: 'Merge an EIP-3076 file into the records',
    flags: { 'accept-future': { meaning: ACCEPT_FUTURE } },
    argument: { name: 'FILE', meaning: 'An EIP-3076 file, or - for stdin' },
    timeoutSeconds: TIMEOUT_SECONDS,
    examples: [
      'slashing import slashing_protection.json',
      'slashing import - --token env:SLASHING_TOKEN < slashing_protection.json',
    ],
  },

  async ({ values, argument, client, output, terminal, progress }) => {
    const path = values['accept-future'] ? `${ROUTE}?accept_future=true` : ROUTE;
    const source = await openSource(argument, terminal);
    const ask = async () => {
      using shown = progress({ doing: 'sending', unit: 'kB' });
      const upload = counted(source, shown);
      return await client.request({ method: 'POST', path, upload }, slashingImportAnswerSchema);
    };
    const answer = await ask();
    output.answer(answer, (summary) =>
      renderFields([
        ['keys', String(summary.validators)],
        ['blocks', String(summary.blocks)],
        ['attestations', String(summary.attestations)],
        ['already present', String(summary.already_present)],
        ['conflicts', String(summary.conflicts)],
      ]),
    );
    const { conflicts, conflicting = [] } = answer.value;
    if (conflicts === 0) return;
    sayConflicts(terminal, 'the file', conflicts, conflicting.map(conflictOf));
    throw new CommandFailure(EXIT.conflicts, 'merged, and slashable messages were found', CONFLICTS_ADVICE);
  },
);

function conflictOf(listed: NonNullable<SlashingImportAnswer['conflicting']>[number]): Conflict {
  const publicKey = printable(listed.public_key);
  if ('slot' in listed) return { publicKey, slot: listed.slot };
  return { publicKey, sourceEpoch: listed.source_epoch, targetEpoch: listed.target_epoch };
}

function readPublicKeys(written: string): string[] {
  const keys = written.split(',').map((key) => canonicalPublicKey(key.trim()));
  if (keys.includes(undefined))
    throw new UsageFailure(`--pubkeys: key ${keys.indexOf(undefined) + 1} is no public key`, PUBLIC_KEY_ADVICE);
  if (keys.length > MAX_PUBLIC_KEYS)
    throw new UsageFailure(
      `--pubkeys names more than ${MAX_PUBLIC_KEYS} keys`,
      'leave it out to export all, or ask in parts',
    );
  return keys as string[];
}

async function* counted(chunks: AsyncIterable<Buffer>, shown: Progress): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    shown.reach(bytes / 1000);
    yield chunk;
  }
  shown.begin({ doing: 'waiting for the signer' });
}

async function toStdout(body: AsyncIterable<Buffer>, { stdout }: Terminal): Promise<void> {
  await pipeline(stdout.isTTY ? forTerminal(body) : body, stdout, { end: false });
}

async function* forTerminal(body: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const chunk of body) yield printableJson(decoder.decode(chunk, { stream: true }));
  yield printableJson(decoder.decode());
}

/** A broken export never looks like a whole one, nor replaces it. */
async function toFile(body: AsyncIterable<Buffer>, path: string, isForced: boolean): Promise<void> {
  await writeOutput(path, isForced, (file) => file.writeFile(body)).catch(explained(path));
}

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
  return fileFailure(bounded(file, MAX_PATH_CHARACTERS), 'read', shownErrorCode(error));
}
