// Logs as the commands have them: in the folder that was named, or from the signer, in a folder that goes afterwards;
// and who attests them. Reference values say of which images. Without them an attested log is attested by nobody.

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
  isGap,
  type Question,
  type ShownBoot,
  type VerifiedReceipts,
  verifyReceipts,
  WHOLE_LOGS,
} from '../../common/receipts/verify.ts';
import { receiptsBootsSchema } from '../../signer/api/receipts.ts';
import type { AttestationPolicy } from '../attestation/peer-evidence.ts';
import { createSession } from '../client.ts';
import type { RemoteCall } from '../command.ts';
import { CommandFailure, type OperatorExitCode, UsageFailure } from '../exit.ts';
import { type FetchedBoot, fetchBoot, type TimeSpan } from './fetch.ts';
import { readBoots } from './folder.ts';

const BOOTS_ROUTE = '/api/v1/receipts/boots';
const NEEDS = 'receipts.storage';
const RFC3339 = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d))?$/i;
/** So long for a single file of a log. */
export const TIMEOUT_SECONDS = 60;

/** The argument, the flags and the note that the commands share. */
export const LOGS = {
  name: 'FOLDER',
  meaning: 'It holds one folder for each boot, with its name; without it, the signer is asked',
  count: 'optional',
} as const;
export const KEPT = {
  kept: { placeholder: 'FILE', meaning: 'A head that you kept earlier; repeat for others', repeatable: true },
} as const;
export const SPAN = {
  from: { placeholder: 'TIME', meaning: 'RFC 3339, or a day; from the begin when not given' },
  to: { placeholder: 'TIME', meaning: 'RFC 3339, or a day; up to now when not given' },
} as const;
export const RETENTION = {
  'retention-days': {
    placeholder: 'N',
    meaning: 'Entries may be gone after so many days, also where no attested log says so',
  },
} as const;
export const JUDGED =
  'A log of an enclave is attested by --pcrs and --pcr, of every image that kept one. With a FOLDER nothing is asked of a signer.';

const DAY_MS = 86_400_000;

interface QuestionFlags {
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly 'retention-days': string | undefined;
}

type LogsCall = Pick<RemoteCall<Record<string, never>>, 'argument' | 'client' | 'connection'>;

export interface VerifiedLogs {
  readonly boots: readonly ShownBoot[];
  readonly verified: VerifiedReceipts;
}

/** Of the FOLDER, or of what the signer shows now. @param kept files with heads */
export async function withLogs(
  call: LogsCall,
  { kept, question = WHOLE_LOGS }: { readonly kept: readonly string[] | undefined; readonly question?: Question },
  use: (logs: VerifiedLogs) => void,
): Promise<void> {
  if (call.argument !== '') return use(verifyFolder(call, call.argument, question, kept));
  const folder = await mkdtemp(join(tmpdir(), 'strongroom-receipts-'));
  try {
    await fetchLogs(call, folder, question);
    use(verifyFolder(call, folder, question, kept));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export function verifyFolder(
  { connection }: LogsCall,
  folder: string,
  question: Question,
  kept: readonly string[] = [],
): VerifiedLogs {
  const boots = readBoots(folder, kept);
  return { boots, verified: verifyReceipts(boots, judgeOf(connection.peer.attestation), question) };
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

/** What SPAN and RETENTION ask. @throws UsageFailure */
export function readQuestion({ from, to, 'retention-days': days }: QuestionFlags): Question {
  const question = {
    fromMs: from === undefined ? WHOLE_LOGS.fromMs : readTime('--from', from),
    toMs: to === undefined ? WHOLE_LOGS.toMs : readTime('--to', to),
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

/** Of the boots whose logs are verified: whether its document is accepted. */
export function isAttestedIn({ findings, boots }: VerifiedReceipts): (boot: string) => boolean {
  const refused = new Set(findings.filter(({ fault }) => fault === 'not_attested').map(({ boot }) => boot));
  const attested = new Set(boots.filter(({ identity }) => identity.document !== null).map(({ boot }) => boot));
  return (boot) => attested.has(boot) && !refused.has(boot);
}

/** Of broken logs those that make them so. */
function faultsOf({ findings, verdict }: VerifiedReceipts): string {
  const faults = findings.map(({ fault }) => fault).filter((fault) => verdict !== 'broken' || !isGap(fault));
  return [...new Set(faults)].join(', ');
}

/** @throws CommandFailure unless the logs are whole */
export function demandWhole(verified: VerifiedReceipts): void {
  const { verdict } = verified;
  if (verdict === 'broken') throw failure(EXIT.receiptsBroken, `the logs are broken: ${faultsOf(verified)}`);
  if (verdict === 'gaps') throw failure(EXIT.receiptsGaps, `the logs have gaps: ${faultsOf(verified)}`);
}

function failure(code: OperatorExitCode, message: string): CommandFailure {
  return new CommandFailure(code, message, 'what each finding means: docs/specification/receipts.md#checks');
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
