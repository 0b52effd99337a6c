// `strongroom operator receipts verify` and `find`: the logs of a signer, in a folder or from the signer itself.
// Nothing is said of an entry before all logs are verified.

import type { Values } from '../../common/command-line/command.ts';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { renderTable } from '../../common/command-line/table.ts';
import { canonicalPublicKey, decodeHex, encodeHex } from '../../common/formats/hex.ts';
import type { ReceiptEntry } from '../../common/receipts/entry.ts';
import { decodeEntry } from '../../common/receipts/read-entry.ts';
import {
  isGap,
  type Question,
  ranIn,
  type ShownBoot,
  type VerifiedBoot,
  type VerifiedReceipts,
  WHOLE_LOGS,
} from '../../common/receipts/verify.ts';
import { remoteCommand } from '../command.ts';
import { CommandFailure, UsageFailure } from '../exit.ts';
import { nameOf } from '../receipts/folder.ts';
import {
  demandWhole,
  fetchLogs,
  isAttestedIn,
  JUDGED,
  KEPT,
  LOGS,
  RETENTION,
  readQuestion,
  SPAN,
  TIMEOUT_SECONDS,
  type VerifiedLogs,
  verifyFolder,
  withLogs,
} from '../receipts/logs.ts';
import { type BootSummary, summariesOf } from '../receipts/summary.ts';

/** A signing root is signed once by each key of a batch. */
const MAX_FOUND = 10_000;

const WANTED = {
  'signing-root': { placeholder: '0xROOT', meaning: '32 bytes of hex' },
  key: { placeholder: '0xKEY', meaning: 'A public key; with one of the two that follow' },
  slot: { placeholder: 'N', meaning: 'Of a block that the key signed' },
  'target-epoch': { placeholder: 'N', meaning: 'Of a vote that the key signed' },
} as const;

export const receiptsVerify = remoteCommand(
  {
    summary: 'Verify the logs of a signer: that nothing is forged, missing or reordered',
    flags: { ...KEPT, ...SPAN, ...RETENTION },
    argument: LOGS,
    notes: [JUDGED],
    timeoutSeconds: TIMEOUT_SECONDS,
    examples: [
      'receipts verify receipts --pcrs pcrs.json',
      'receipts verify /var/lib/strongroom/receipts --kept head-of-march.txt --json',
    ],
  },

  async (call) => {
    const question = readQuestion(call.values);
    await withLogs(call, { kept: call.values.kept, question }, ({ verified }) => {
      const { verdict, findings } = verified;
      const boots = summariesOf(verified.boots, isAttestedIn(verified));
      call.output.answer({ value: verified, text: JSON.stringify({ verdict, findings, boots }) }, (value) =>
        renderVerdict(value, question),
      );
      demandWhole(verified);
    });
  },
);

/** What is broken first. A span says how many boots ran then: logs are whole where there is none, too. */
export function renderVerdict({ verdict, findings, boots }: VerifiedReceipts, question: Question = WHOLE_LOGS): string {
  const ordered = findings.toSorted((one, other) => Number(isGap(one.fault)) - Number(isGap(other.fault)));
  const lines = ordered.map(({ boot, fault, detail }) => `  ${boot || 'a boot'}  ${fault}: ${detail}\n`);
  const running = boots.filter(({ heads }) => ranIn(heads, question)).length;
  const isSpan = question.fromMs !== WHOLE_LOGS.fromMs || question.toMs !== WHOLE_LOGS.toMs;
  const then = isSpan ? `, of which ${running} ran in that time` : '';
  return `${verdict}: ${boots.length} ${boots.length === 1 ? 'boot' : 'boots'}${then}\n${lines.join('')}`;
}

export const receiptsFind = remoteCommand(
  {
    summary: 'Find what the logs say of a signing root, or of a key and a place, once they are verified',
    flags: { ...KEPT, ...RETENTION, ...WANTED },
    argument: LOGS,
    notes: [JUDGED],
    timeoutSeconds: TIMEOUT_SECONDS,
    examples: [
      'receipts find receipts --signing-root 0x5f1c… --pcrs pcrs.json',
      'receipts find receipts --key 0x8000… --target-epoch 295401 --json',
    ],
  },

  async (call) => {
    const isWanted = wantedOf(call.values);
    const question = readQuestion({ ...call.values, from: undefined, to: undefined });
    await withLogs(call, { kept: call.values.kept, question }, (logs) => {
      const { verified } = logs;
      if (verified.verdict === 'broken') demandWhole(verified);
      const found = receiptsOf(logs, isWanted);
      if (found.length === 0) throw new CommandFailure(EXIT.notInReceipts, 'no log has such an entry');
      const { verdict, findings } = verified;
      const text = JSON.stringify({ verdict, findings, found });
      call.output.answer({ value: found, text }, (entries) => entries.map(renderReceipt).join(''));
    });
  },
);

interface FoundReceipt {
  readonly index: number;
  readonly time: string;
  readonly operation: string;
  readonly outcome: string;
  readonly public_key: string;
  readonly signing_root: string | null;
  readonly position: ReceiptEntry['position'];
  readonly caller: string;
  /** The sequence of the first head that covers it; null when none does. */
  readonly head: number | null;
  readonly boot: BootSummary;
}

function receiptsOf({ boots, verified }: VerifiedLogs, isWanted: (entry: ReceiptEntry) => boolean): FoundReceipt[] {
  const summaries = summariesOf(verified.boots, isAttestedIn(verified));
  return boots
    .flatMap((shown) => {
      const boot = summaries.find((one) => one.boot === nameOf(shown));
      const heads = verified.boots.find((one) => one.boot === boot?.boot)?.heads ?? [];
      return boot === undefined ? [] : [...receiptsIn(shown, { boot, heads }, isWanted)];
    })
    .slice(0, MAX_FOUND);
}

function* receiptsIn(
  shown: ShownBoot,
  { boot, heads }: { readonly boot: BootSummary; readonly heads: VerifiedBoot['heads'] },
  isWanted: (entry: ReceiptEntry) => boolean,
): Generator<FoundReceipt, void, undefined> {
  let index = -1;
  for (const bytes of shown.entries ?? []) {
    index += 1;
    const entry = bytes instanceof Uint8Array ? decodeEntry(bytes) : undefined;
    if (entry === undefined || !isWanted(entry)) continue;
    const at = index;
    yield {
      index,
      time: new Date(entry.timeMs).toISOString(),
      operation: entry.operation,
      outcome: entry.reason ?? 'signed',
      public_key: encodeHex(entry.publicKey),
      signing_root: entry.signingRoot === null ? null : encodeHex(entry.signingRoot),
      position: entry.position,
      caller: Buffer.from(entry.caller).toString('hex'),
      head: heads.find(({ size }) => size > at)?.statement.sequence ?? null,
      boot,
    };
  }
}

function renderReceipt({
  time,
  operation,
  outcome,
  public_key,
  signing_root,
  boot,
  index,
  head,
}: FoundReceipt): string {
  const { measurements } = boot;
  return [
    `${time}  ${operation}  ${outcome}`,
    `  key   ${public_key}`,
    `  root  ${signing_root ?? 'none'}`,
    `  entry ${index} of boot ${boot.boot}, ${head === null ? 'in no head' : `in head ${head}`}`,
    measurements === null ? '  by a signer that nobody attests' : '  by the image with',
    ...Object.entries(measurements ?? {}).map(([name, value]) => `    ${name} ${value}`),
    '',
  ].join('\n');
}

function wantedOf(values: Values<typeof WANTED>): (entry: ReceiptEntry) => boolean {
  const { key, slot, 'signing-root': written, 'target-epoch': epoch } = values;
  if (written !== undefined) {
    const root = decodeHex(written, 32);
    if (root === undefined || key !== undefined || slot !== undefined || epoch !== undefined) {
      throw new UsageFailure('--signing-root is 32 bytes of hex, and alone');
    }
    return ({ signingRoot }) => signingRoot !== null && Buffer.compare(signingRoot, root) === 0;
  }
  const publicKey = canonicalPublicKey(key ?? '');
  if (publicKey === undefined || (slot === undefined) === (epoch === undefined)) {
    throw new UsageFailure('say --signing-root, or --key with one of --slot and --target-epoch');
  }
  const place = numberOf(slot ?? epoch ?? '', slot === undefined ? '--target-epoch' : '--slot');
  return ({ position, operation, publicKey: own }) => {
    const isThere = slot === undefined ? position.targetEpoch === place : position.slot === place;
    return isThere && (slot === undefined || operation === 'BLOCK_V2') && encodeHex(own) === publicKey;
  };
}

function numberOf(written: string, flag: string): number {
  if (/^(0|[1-9][0-9]{0,15})$/.test(written) && Number.isSafeInteger(Number(written))) return Number(written);
  throw new UsageFailure(`${flag} is a whole number`);
}

// `strongroom operator receipts fetch`: the signer's logs into a folder, which is verified as a whole afterwards. What
// is in the folder stays, and is read again in the next call.

export const receiptsFetch = remoteCommand(
  {
    summary: "Fetch the signer's logs into a folder, and verify them; once more, and it fetches what is new",
    flags: { ...SPAN, ...RETENTION },
    argument: { name: 'FOLDER', meaning: 'Where to; it is made when it is not there' },
    notes: [
      'Every head and entry is verified before it stays. With --from or --to, the heads of all boots come, and the entries of those boots that ran then; gaps of other times are left out.',
    ],
    timeoutSeconds: TIMEOUT_SECONDS,
    examples: ['receipts fetch receipts --pcrs pcrs.json', 'receipts fetch receipts --from 2026-11-01 --to 2026-12-01'],
  },

  async (call) => {
    const { argument, values, output } = call;
    const question = readQuestion(values);
    const fetched = await fetchLogs(call, argument, question);
    const { verified } = verifyFolder(call, argument, question);
    const { verdict, findings } = verified;
    output.answer({ value: fetched, text: JSON.stringify({ verdict, findings, fetched }) }, (boots, columns) => {
      const rows = boots.map(({ boot, heads, entries, files }) => {
        return [boot, String(heads), entries === undefined ? 'not asked for' : String(entries), String(files)];
      });
      return renderTable(['BOOT', 'HEADS', 'ENTRIES', 'NEW FILES'], rows, columns) + renderVerdict(verified, question);
    });
    demandWhole(verified);
  },
);
