// Logs as the commands have them: in the folder that was named, or fetched from the signer into a folder that is
// removed afterwards; and which enclave attests them. Reference values say which images are good: without them no
// attestation of a log counts.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readCoseSign1, readPayload } from '../../common/attestation/document.ts';
import { EvidenceError } from '../../common/attestation/failure.ts';
import { verifyDocument } from '../../common/attestation/verify.ts';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { MAX_RETENTION_DAYS } from '../../common/receipts/head.ts';
import {
  type DocumentJudge,
  type EntryVisitor,
  isGap,
  type Question,
  type VerifiedReceipts,
  verifyReceipts,
  WHOLE_LOGS,
} from '../../common/receipts/verify.ts';
import { receiptsBootsSchema } from '../../signer/api/receipts.ts';
import type { AttestationPolicy } from '../attestation/peer-evidence.ts';
import { createSession } from '../client.ts';
import type { RemoteCall } from '../command.ts';
import { CommandFailure, UsageFailure } from '../exit.ts';
import { type FetchedBoot, fetchBoot } from './fetch.ts';
import { readBoots } from './folder.ts';
import type { TimeSpan } from './summary.ts';

const BOOTS_ROUTE = '/api/v1/receipts/boots';
const NEEDS = 'receipts.storage';
const RFC3339 = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d))?$/i;
const DAY_MS = 86_400_000;

interface QuestionFlags {
  readonly kept: readonly string[] | undefined;
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly 'retention-days': string | undefined;
  readonly unattested?: boolean | undefined;
}

interface LogsCall extends Pick<RemoteCall<Record<string, never>>, 'argument' | 'client' | 'connection'> {
  readonly values: Pick<QuestionFlags, 'kept'>;
}

/** Of the FOLDER, or of what the signer shows now. */
export async function withLogs(call: LogsCall, question: Question, look: EntryVisitor): Promise<VerifiedReceipts> {
  if (call.argument !== '') return verifyFolder(call, call.argument, question, look);
  const folder = await mkdtemp(join(tmpdir(), 'strongroom-receipts-'));
  try {
    await fetchLogs(call, folder, question);
    return verifyFolder(call, folder, question, look);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export function verifyFolder(
  { connection, values }: LogsCall,
  folder: string,
  question: Question,
  look?: EntryVisitor,
): VerifiedReceipts {
  return verifyReceipts(readBoots(folder, values.kept ?? []), judgeOf(connection.peer.attestation), question, look);
}

/** @throws CommandFailure: what came before it stays in the folder, verified */
export async function fetchLogs(call: LogsCall, folder: string, span: TimeSpan): Promise<FetchedBoot[]> {
  const { value } = await call.client.request({ method: 'GET', path: BOOTS_ROUTE, needs: NEEDS }, receiptsBootsSchema);
  const session = createSession(call.connection);
  const fetched: FetchedBoot[] = [];
  try {
    for (const boot of value.boots.toSorted()) fetched.push(await fetchBoot(session, boot, folder, span));
  } finally {
    session.close();
  }
  return fetched;
}

/** @throws UsageFailure */
export function readQuestion({ from, to, 'retention-days': days, unattested = false }: QuestionFlags): Question {
  const question = {
    fromMs: from === undefined ? WHOLE_LOGS.fromMs : readTime('--from', from),
    toMs: to === undefined ? WHOLE_LOGS.toMs : readTime('--to', to),
    takesUnattested: unattested,
    removableMs: days === undefined ? WHOLE_LOGS.removableMs : Date.now() - readDays(days) * DAY_MS,
  };
  if (question.fromMs >= question.toMs) throw new UsageFailure('--from is not before --to');
  return question;
}

function readDays(written: string): number {
  const days = Number(written);
  if (/^[1-9][0-9]{0,3}$/.test(written) && days <= MAX_RETENTION_DAYS) return days;
  throw new UsageFailure(`--retention-days is no number of days from 1 to ${MAX_RETENTION_DAYS}`);
}

/** Of broken logs it names what makes them so. @throws CommandFailure unless the logs are whole */
export function demandWhole({ findings, verdict }: VerifiedReceipts): void {
  if (verdict === 'whole') return;
  const faults = findings.map(({ fault }) => fault).filter((fault) => verdict !== 'broken' || !isGap(fault));
  const [code, words] =
    verdict === 'broken' ? ([EXIT.receiptsBroken, 'are broken'] as const) : ([EXIT.receiptsGaps, 'have gaps'] as const);
  const message = `the logs ${words}: ${[...new Set(faults)].join(', ')}`;
  throw new CommandFailure(code, message, 'what each finding means: docs/specification/receipts.md#checks');
}

function readTime(flag: string, written: string): number {
  const time = RFC3339.test(written) ? Date.parse(written) : Number.NaN;
  if (!Number.isNaN(time)) return time;
  throw new UsageFailure(`${flag} is no time`, 'for example 2026-11-01, or 2026-11-01T12:00:00Z');
}

/** Each document at its own time. */
function judgeOf(policy: AttestationPolicy | undefined): DocumentJudge {
  if (policy === undefined) return () => false;
  const { provider, referenceValues } = policy;
  return (document, expectedUserData) => {
    const at = timeOf(document);
    if (at === undefined) return false;
    return verifyDocument(document, { provider, at, maxAgeSeconds: 0, expectedUserData, referenceValues }).expected;
  };
}

function timeOf(document: Buffer): number | undefined {
  try {
    return readPayload(readCoseSign1(document).payload).timestamp;
  } catch (error) {
    if (error instanceof EvidenceError) return undefined;
    throw error;
  }
}
