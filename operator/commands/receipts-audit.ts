// `strongroom operator receipts audit`: what keys signed that is not in the logs, by a list that the auditor brings,
// and what the logs cover. A log that is broken is told first: what it lacks proves nothing then.

import { readFileSync, statSync } from 'node:fs';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { shownErrorCode } from '../../common/command-line/file-faults.ts';
import { renderTable } from '../../common/command-line/table.ts';
import { bounded } from '../../common/command-line/text.ts';
import { decodeEntry } from '../../common/receipts/read-entry.ts';
import type { VerifiedReceipts } from '../../common/receipts/verify.ts';
import { remoteCommand } from '../command.ts';
import { CommandFailure, localFailure, UsageFailure } from '../exit.ts';
import { fileFailure } from '../file-failure.ts';
import type { TimeSpan } from '../receipts/fetch.ts';
import { nameOf } from '../receipts/folder.ts';
import {
  demandWhole,
  isAttestedIn,
  JUDGED,
  KEPT,
  LOGS,
  RETENTION,
  readQuestion,
  SPAN,
  TIMEOUT_SECONDS,
  type VerifiedLogs,
  withLogs,
} from '../receipts/logs.ts';
import { type MissingItem, readSignedList, type SignedList, SignedSearch } from '../receipts/signed-list.ts';
import { type BootSummary, summariesOf, timesWithoutLog } from '../receipts/summary.ts';
import { renderVerdict } from './receipts.ts';

const MAX_FILE_BYTES = 256 * 1024 * 1024;
const MAX_SHOWN = 10_000;
const MAX_LINES = 50;

interface AuditedBoot extends BootSummary {
  /** In the time that was asked for. */
  readonly signed: number;
  readonly refused: number;
}

interface Audit {
  readonly verdict: string;
  readonly findings: VerifiedReceipts['findings'];
  readonly boots: readonly AuditedBoot[];
  readonly without_log: readonly { readonly from: string; readonly to: string }[];
  /** Null when no list was given. */
  readonly list: {
    readonly listed: number;
    readonly not_in_log: number;
    readonly first: readonly MissingItem[];
  } | null;
}

export const receiptsAudit = remoteCommand(
  {
    summary: 'Say what keys signed that is not in the logs, and when no log was kept',
    flags: {
      ...KEPT,
      ...SPAN,
      ...RETENTION,
      signed: {
        placeholder: 'FILE',
        meaning: 'What was signed: EIP-3076, or lines with a signing root, a key before it where it is known',
      },
    },
    argument: LOGS,
    notes: [
      JUDGED,
      'What is in --signed is looked for in all of the logs that are at hand. --from and --to bound when logs had to be kept, and gaps of other times are left out.',
    ],
    timeoutSeconds: TIMEOUT_SECONDS,
    examples: [
      'receipts audit receipts --signed chain.txt --from 2026-11-01 --to 2026-12-01',
      'receipts audit receipts --signed slashing_protection.json --pcrs pcrs.json --json',
    ],
  },

  async (call) => {
    const { values, output } = call;
    const question = readQuestion(values);
    const list = values.signed === undefined ? undefined : readList(values.signed);
    await withLogs(call, { kept: values.kept, question }, (logs) => {
      const audit = auditOf(logs, question, list);
      output.answer({ value: audit, text: JSON.stringify(audit) }, (value, columns) =>
        renderAudit(value, renderVerdict(logs.verified, question), columns),
      );
      if (logs.verified.verdict === 'broken') demandWhole(logs.verified);
      const missing = audit.list?.not_in_log ?? 0;
      if (missing > 0) {
        const message = `${missing} of ${audit.list?.listed} messages are in no log as signed`;
        throw new CommandFailure(
          EXIT.notInReceipts,
          message,
          'another signer has the key, or a log is withheld: docs/specification/receipts.md#limits',
        );
      }
      demandWhole(logs.verified);
    });
  },
);

function auditOf({ boots, verified }: VerifiedLogs, span: TimeSpan, list: SignedList | undefined): Audit {
  refuseOtherNetwork(verified, list);
  const search = list === undefined ? undefined : new SignedSearch(list);
  const counts = new Map<string, { signed: number; refused: number }>();
  for (const shown of boots) {
    const count = { signed: 0, refused: 0 };
    counts.set(nameOf(shown), count);
    for (const bytes of shown.entries ?? []) {
      const entry = bytes instanceof Uint8Array ? decodeEntry(bytes) : undefined;
      if (entry === undefined) continue;
      search?.see(entry);
      if (entry.timeMs < span.fromMs || entry.timeMs >= span.toMs) continue;
      count[entry.reason === null ? 'signed' : 'refused'] += 1;
    }
  }
  const missing = search?.missing ?? [];
  return {
    verdict: verified.verdict,
    findings: verified.findings,
    boots: summariesOf(verified.boots, isAttestedIn(verified)).map((boot) => ({
      ...boot,
      ...(counts.get(boot.boot) ?? { signed: 0, refused: 0 }),
    })),
    without_log: timesWithoutLog(verified.boots, span).map(({ fromMs, toMs }) => ({
      from: new Date(fromMs).toISOString(),
      to: new Date(toMs).toISOString(),
    })),
    list:
      list === undefined
        ? null
        : { listed: list.items.length, not_in_log: missing.length, first: missing.slice(0, MAX_SHOWN) },
  };
}

function refuseOtherNetwork({ boots }: VerifiedReceipts, list: SignedList | undefined): void {
  const root = list?.genesisValidatorsRoot;
  if (root === undefined || boots.some(({ identity }) => identity.genesisValidatorsRoot === root)) return;
  throw new UsageFailure('--signed is of another network than the logs');
}

function readList(path: string): SignedList {
  const place = `--signed: ${bounded(path, 200)}`;
  let text: string;
  try {
    if (statSync(path).size > MAX_FILE_BYTES) throw localFailure(`${place} is larger than ${MAX_FILE_BYTES} bytes`);
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw error instanceof CommandFailure ? error : fileFailure(place, 'read', shownErrorCode(error));
  }
  return readSignedList(text, place);
}

function renderAudit(audit: Audit, verdict: string, columns: number): string {
  const rows = audit.boots.map(({ boot, from, to, closed, signed, refused, names }) => [
    boot,
    from ?? 'no head',
    closed ? (to ?? '') : `${to ?? ''}, no end`,
    String(signed),
    String(refused),
    names === null ? 'not read' : String(names.length),
  ]);
  const gaps = audit.without_log.map(({ from, to }) => `no log from ${from} to ${to}\n`);
  return [
    renderTable(['BOOT', 'FROM', 'TO', 'SIGNED', 'REFUSED', 'NAMES'], rows, columns),
    ...gaps,
    verdict,
    renderList(audit),
  ].join('');
}

function renderList({ list }: Audit): string {
  if (list === null) return '';
  const { listed, not_in_log: missing, first } = list;
  if (missing === 0) return `all ${listed} messages of the list are in the logs as signed\n`;
  const lines = first.slice(0, MAX_LINES).map((item) => `  ${renderItem(item)}\n`);
  const more = missing > MAX_LINES ? [`  and ${missing - MAX_LINES} more: --json names up to ${MAX_SHOWN}\n`] : [];
  return [`${missing} of ${listed} messages are in no log as signed:\n`, ...lines, ...more].join('');
}

function renderItem({ public_key, signing_root, slot, source_epoch, target_epoch, refused }: MissingItem): string {
  const place = slot === undefined ? `vote ${source_epoch} to ${target_epoch}` : `block of slot ${slot}`;
  const what = [public_key, signing_root ?? place].filter((part) => part !== undefined).join(' ');
  return refused === undefined ? what : `${what}, which was refused: ${refused}`;
}
