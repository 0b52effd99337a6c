// `strongroom operator slashing …`: EIP-3076 interchange through the signer, for where it has no shell. An export
// appears under its name only when it is whole and on disk; an import is merged by the signer, all or nothing, never
// weakening.

import { type FileHandle, open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { type Conflict, sayConflicts } from '../../command-line/conflicts.ts';
import { EXIT } from '../../command-line/exit-codes.ts';
import { writeOutput } from '../../command-line/output-file.ts';
import { renderFields } from '../../command-line/table.ts';
import { note, type Terminal } from '../../command-line/terminal.ts';
import { bounded, printable, printableJson } from '../../command-line/text.ts';
import { type SlashingImportAnswer, slashingImportAnswerSchema } from '../../enclave/api/slashing-protection.ts';
import { shownErrorCode } from '../../formats/error-code.ts';
import { canonicalPublicKey } from '../../formats/hex.ts';
import type { RemoteCall } from '../command.ts';
import { MAX_PUBLIC_KEYS, type slashingExport, type slashingImport } from '../descriptions/slashing.ts';
import { CommandFailure, UsageFailure } from '../exit.ts';
import { fileFailure } from '../file-failure.ts';
import { PUBLIC_KEY_ADVICE } from '../key-batches.ts';
import { checkFile, explained } from '../output-file.ts';

const ROUTE = '/api/v1/chamber/slashing-protection';
const MAX_PATH_CHARACTERS = 200;
const CONFLICTS_ADVICE = 'find out which signer signed them: docs/runbooks/slashing-incident.md';

export async function exportRecords({
  values: { output: file, force, pubkeys },
  client,
  terminal,
}: RemoteCall<typeof slashingExport.flags>): Promise<void> {
  if (file !== undefined) await checkFile(file, force);
  const path = pubkeys === undefined ? ROUTE : `${ROUTE}?pubkeys=${readPublicKeys(pubkeys).join(',')}`;
  await client.download(path, (body) => (file === undefined ? toStdout(body, terminal) : toFile(body, file, force)));
  note(terminal, file === undefined ? 'exported, whole' : `exported to ${file}`);
}

export async function importRecords({
  argument,
  client,
  output,
  terminal,
}: RemoteCall<typeof slashingImport.flags>): Promise<void> {
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
  const { conflicts, conflicting = [] } = answer.value;
  if (conflicts === 0) return;
  sayConflicts(terminal, 'the file', conflicts, conflicting.map(conflictOf));
  throw new CommandFailure(EXIT.conflicts, 'merged, and slashable messages were found', CONFLICTS_ADVICE);
}

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
  return fileFailure(bounded(file, MAX_PATH_CHARACTERS), 'read', shownErrorCode(error));
}
