// `strongroom operator receipts fetch` and `verify`: the logs of a signer, in a folder or from the signer itself, what
// they cover, and what they have of messages that were signed. Of an entry only that is said which the verifier knows
// (common/receipts/verify.ts); of logs that are broken nothing but why.

import { EXIT } from '../../common/command-line/exit-codes.ts';
import { renderTable } from '../../common/command-line/table.ts';
import { decodeHex, encodeHex } from '../../common/formats/hex.ts';
import {
  isGap,
  type KnownEntry,
  type Question,
  ranIn,
  type VerifiedReceipts,
  WHOLE_LOGS,
} from '../../common/receipts/verify.ts';
import { remoteCommand } from '../command.ts';
import { CommandFailure, UsageFailure } from '../exit.ts';
import { demandWhole, fetchLogs, readQuestion, verifyFolder, withLogs } from '../receipts/logs.ts';
import { type MissingItem, readListFile, type SignedList, SignedSearch } from '../receipts/signed-list.ts';
import { restartLoops, summariesOf, timeOf, timesWithoutLog } from '../receipts/summary.ts';

/** A signing root is signed once by each key of a batch. */
const MAX_SHOWN = 10_000;
const MAX_LINES = 50;
/** So long for a single file of a log. */
const TIMEOUT_SECONDS = 60;

const QUESTION = {
  kept: { placeholder: 'FILE', meaning: 'A head that you kept earlier; repeat for others', repeatable: true },
  from: { placeholder: 'TIME', meaning: 'RFC 3339, or a day; from the begin when not given' },
  to: { placeholder: 'TIME', meaning: 'RFC 3339, or a day; up to now when not given' },
  'retention-days': {
    placeholder: 'N',
    meaning: 'Entries may be gone after so many days, also where no attested log says so',
  },
} as const;

export const receiptsFetch = remoteCommand(
  {
    summary: "Fetch the signer's logs into a folder, and verify them; once more, and it fetches what is new",
    flags: QUESTION,
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
    const { verdict, findings, boots } = verifyFolder(call, argument, question);
    output.answer({ value: fetched, text: JSON.stringify({ verdict, findings, fetched }) }, (all, columns) => {
      const rows = all.map(({ boot, heads, entries, files }) => {
        return [boot, String(heads), entries === undefined ? 'not asked for' : String(entries), String(files)];
      });
      const table = renderTable(['BOOT', 'HEADS', 'ENTRIES', 'NEW FILES'], rows, columns);
      return table + renderVerdict({ verdict, findings, boots }, question);
    });
    demandWhole({ verdict, findings, boots });
  },
);

export const receiptsVerify = remoteCommand(
  {
    summary: 'Verify the logs of a signer, and say what they cover, and what they have of what was signed',
    flags: {
      ...QUESTION,
      'signing-root': { placeholder: '0xROOT', meaning: 'Show what the logs have of it: 32 bytes of hex' },
      signed: {
        placeholder: 'FILE',
        meaning:
          'Say what of it no log has as signed: EIP-3076, or lines with a signing root, before it a key if known',
      },
      unattested: { meaning: 'What logs of plain services say counts, too: anybody can make such a log' },
    },
    argument: {
      name: 'FOLDER',
      meaning: 'It holds one folder for each boot, with its name; without it, the signer is asked',
      count: 'optional',
    },
    notes: [
      'A log of an enclave is attested by --pcrs and --pcr, of every image that kept one. With a FOLDER nothing is asked of a signer.',
      'What is in --signed is looked for in all accepted logs that are at hand. --from and --to bound when logs had to be kept; gaps of other times are left out, unless something was found there.',
    ],
    timeoutSeconds: TIMEOUT_SECONDS,
    examples: [
      'receipts verify receipts --signing-root 0x5f1c… --pcrs pcrs.json',
      'receipts verify receipts --signed chain.txt --from 2026-11-01 --to 2026-12-01 --unattested',
    ],
  },

  async (call) => {
    const { values, output } = call;
    const question = readQuestion(values);
    const root = readRoot(values['signing-root']);
    const list = values.signed === undefined ? undefined : readListFile(values.signed);
    const look: Lookup = { root, search: list && new SignedSearch(list), found: [], counts: new Map() };
    const verified = await withLogs(call, question, (known) => see(known, look, question));
    if (verified.verdict !== 'broken') refuseOtherNetwork(verified, list);
    const report = reportOf(verified, question, look);
    output.answer({ value: report, text: JSON.stringify(report) }, (value, columns) =>
      renderReport(value, renderVerdict(verified, question), columns),
    );
    if (verified.verdict !== 'broken') demandFound(report);
    demandWhole(verified);
  },
);

type FoundReceipt = ReturnType<typeof receiptOf>;

function receiptOf({ boot, index, head, entry }: KnownEntry) {
  const { timeMs, operation, reason, publicKey, signingRoot, position, caller } = entry;
  return {
    ...{ index, time: timeOf(timeMs), operation, outcome: reason ?? 'signed', public_key: encodeHex(publicKey) },
    ...{ signing_root: signingRoot && encodeHex(signingRoot), position, caller: Buffer.from(caller).toString('hex') },
    ...{ head, boot },
  };
}

/** What is known of entries that were asked for, and how many there are. */
interface Lookup {
  readonly root: Buffer | undefined;
  readonly search: SignedSearch | undefined;
  readonly found: FoundReceipt[];
  readonly counts: Map<string, { signed: number; refused: number }>;
}

/** @returns whether it was asked for */
function see(known: KnownEntry, { root, search, found, counts }: Lookup, span: Question): boolean {
  const { timeMs, reason, signingRoot } = known.entry;
  if (timeMs >= span.fromMs && timeMs < span.toMs) {
    const count = counts.get(known.boot) ?? { signed: 0, refused: 0 };
    counts.set(known.boot, count);
    count[reason === null ? 'signed' : 'refused'] += 1;
  }
  const isRoot = root !== undefined && signingRoot !== null && root.equals(signingRoot);
  if (isRoot && found.length < MAX_SHOWN) found.push(receiptOf(known));
  return search?.see(known.entry, known.accepted) === true || isRoot;
}

type Report = ReturnType<typeof reportOf>;

/** Of broken logs it says the verdict, and nothing of entries. */
function reportOf(
  { verdict, findings, boots }: VerifiedReceipts,
  span: Question,
  { search, root, found, counts }: Lookup,
) {
  const isBroken = verdict === 'broken';
  const missing = search?.missing ?? [];
  const none = { signed: 0, refused: 0 };
  const list = search && {
    ...{ listed: search.listed, not_in_log: missing.length, unattested: search.unattested },
    first: missing.slice(0, MAX_SHOWN),
  };
  return {
    ...{ verdict, findings },
    boots: summariesOf(boots).map((one) => ({ ...one, ...(isBroken ? {} : (counts.get(one.boot) ?? none)) })),
    ...(isBroken ? {} : { without_log: timesWithoutLog(boots, span), restarts: restartLoops(boots) }),
    ...(isBroken || root === undefined ? {} : { found }),
    ...(isBroken || list === undefined ? {} : { list }),
  };
}

/** @throws CommandFailure */
function demandFound({ boots, found, list }: Report): void {
  const isShut = boots.some(({ accepted }) => accepted === null);
  const advice = isShut
    ? 'logs that no document attests count with --unattested only'
    : 'another signer has the key, or a log is withheld: docs/specification/receipts.md#limits';
  if (found !== undefined && !found.some(({ outcome }) => outcome === 'signed')) {
    throw new CommandFailure(EXIT.notInReceipts, 'no accepted log has the signing root as signed', advice);
  }
  if (list === undefined || list.not_in_log === 0) return;
  const message = `${list.not_in_log} of ${list.listed} messages are in no accepted log as signed`;
  throw new CommandFailure(EXIT.notInReceipts, message, advice);
}

function refuseOtherNetwork({ boots }: VerifiedReceipts, list: SignedList | undefined): void {
  const root = list?.genesisValidatorsRoot;
  if (root === undefined || boots.some(({ identity }) => identity.genesisValidatorsRoot === root)) return;
  throw new UsageFailure('--signed is of another network than the logs');
}

function readRoot(written: string | undefined): Buffer | undefined {
  if (written === undefined) return undefined;
  const root = decodeHex(written, 32);
  if (root === undefined) throw new UsageFailure('--signing-root is 32 bytes of hex');
  return Buffer.from(root);
}

/**
 * What is broken comes first. A span says how many boots ran then, also when that is none: the logs are whole there,
 * too.
 */
function renderVerdict({ verdict, findings, boots }: VerifiedReceipts, question: Question): string {
  const ordered = findings.toSorted((one, other) => Number(isGap(one.fault)) - Number(isGap(other.fault)));
  const lines = ordered.map(({ boot, fault, detail }) => `  ${boot || 'a boot'}  ${fault}: ${detail}\n`);
  const running = boots.filter(({ heads }) => ranIn(heads, question)).length;
  const isSpan = question.fromMs !== WHOLE_LOGS.fromMs || question.toMs !== WHOLE_LOGS.toMs;
  const then = isSpan ? `, of which ${running} ran in that time` : '';
  return `${verdict}: ${boots.length} ${boots.length === 1 ? 'boot' : 'boots'}${then}\n${lines.join('')}`;
}

function renderReport(report: Report, verdict: string, columns: number): string {
  const { boots, without_log: gaps = [], restarts = [], found = [] } = report;
  const rows = boots.flatMap(({ boot, from, to, closed, signed, refused, names, accepted }) => {
    if (signed === undefined) return [];
    const counts = accepted === null ? ['not accepted', ''] : [String(signed), String(refused)];
    const times = [from ?? 'no head', closed ? (to ?? '') : `${to ?? ''}, no end`];
    return [[boot, ...times, ...counts, names === null ? 'not read' : String(names.length)]];
  });
  return [
    rows.length === 0 ? '' : renderTable(['BOOT', 'FROM', 'TO', 'SIGNED', 'REFUSED', 'NAMES'], rows, columns),
    ...gaps.map(({ from, to }) => `no accepted log from ${from} to ${to}\n`),
    ...restarts.map(
      ({ from, to, starts }) => `${starts} starts from ${from} to ${to}: the signer is restarted in a loop\n`,
    ),
    verdict,
    ...found.map((one) => renderReceipt(one, boots)),
    renderList(report),
  ].join('');
}

function renderReceipt(receipt: FoundReceipt, boots: Report['boots']): string {
  const { time, operation, outcome, public_key, signing_root, boot, index, head } = receipt;
  const measurements = boots.find((one) => one.boot === boot)?.measurements ?? null;
  return [
    `${time}  ${operation}  ${outcome}`,
    `  key   ${public_key}`,
    `  root  ${signing_root}`,
    `  entry ${index} of boot ${boot}, in head ${head}`,
    measurements === null ? '  by a signer that no document attests' : '  by the image with',
    ...Object.entries(measurements ?? {}).map(([name, value]) => `    ${name} ${value}`),
    '',
  ].join('\n');
}

function renderList({ list }: Report): string {
  if (list === undefined) return '';
  const { listed, not_in_log: missing, first, unattested } = list;
  const byWord = unattested > 0 ? `, ${unattested} of them in logs that no document attests` : '';
  if (missing === 0) return `all ${listed} messages of the list are in the logs as signed${byWord}\n`;
  const lines = first.slice(0, MAX_LINES).map((item) => `  ${renderItem(item)}\n`);
  const more = missing > MAX_LINES ? [`  and ${missing - MAX_LINES} more: --json names up to ${MAX_SHOWN}\n`] : [];
  return [`${missing} of ${listed} messages are in no accepted log as signed:\n`, ...lines, ...more].join('');
}

function renderItem({ public_key, signing_root, slot, source_epoch, target_epoch, refused }: MissingItem): string {
  const place = slot === undefined ? `vote ${source_epoch} to ${target_epoch}` : `block of slot ${slot}`;
  const what = [public_key, signing_root ?? place].filter((part) => part !== undefined).join(' ');
  return refused === undefined ? what : `${what}, which was refused: ${refused}`;
}
