// Whether logs of a signer are whole: the checks of specification/receipts.md#checks. It trusts nothing that it is
// given but what the caller says of attestation documents, and states every finding, not only the first. Of each head
// it keeps what later checks compare, some 500 bytes; entries go through one by one, once: what is said of an entry is
// said of the bytes that were judged.

import type { ReceiptEntry } from './entry.ts';
import { type LogHead, MAX_NAMED_HEADS, type ReadHead, readHead, removableBefore } from './head.ts';
import { type BootIdentity, bootOf, identityBinding, type LogKind } from './identity.ts';
import { decodeEntry } from './read-entry.ts';
import { isSignedBy, readIdentity } from './read-identity.ts';
import { leafHash, TreeEdge } from './tree.ts';

/** A replica that runs on may have made a head that another one had not read at its start. */
const SETTLED_MS = 30_000;

const GAPS = [
  'unattested',
  'no_entries',
  'removed_by_retention',
  'uncovered_entries',
  'open_end',
  'lost',
  'unlinked',
  'unlisted',
] as const;

type ReceiptFault =
  | (typeof GAPS)[number]
  | 'malformed_identity'
  | 'two_logs'
  | 'not_attested'
  | 'malformed_head'
  | 'other_boot'
  | 'bad_signature'
  | 'missing_head'
  | 'broken_chain'
  | 'went_back'
  | 'after_end'
  | 'missing_entries'
  | 'other_root'
  | 'malformed_entry'
  | 'unknown_head'
  | 'rolled_back'
  | 'not_named';

interface ReceiptFinding {
  readonly fault: ReceiptFault;
  /** Empty when the identity of the boot cannot be read. */
  readonly boot: string;
  /** For people. */
  readonly detail: string;
}

/** An entry that is not at hand, by its leaf's hash. */
export interface RemovedEntry {
  readonly hash: Buffer;
}

export type ShownEntry = Uint8Array | RemovedEntry;

export interface ShownBoot {
  readonly identity: string;
  /** In any order, those that an auditor kept among them. */
  readonly heads: Iterable<string>;
  /** From the first on; undefined: they are not at hand, which is a gap. */
  readonly entries?: Iterable<ShownEntry> | undefined;
}

/** What an auditor asks of the logs. */
export interface Question {
  /** The span: gaps of other times are left out. */
  readonly fromMs: number;
  readonly toMs: number;
  /** By the auditor's own word, entries under heads that are no later may be removed. */
  readonly removableMs: number;
  /** By the auditor's own word, what a log of a plain service says counts: anybody can make one. */
  readonly takesUnattested: boolean;
}

export const WHOLE_LOGS: Question = {
  fromMs: 0,
  toMs: Number.POSITIVE_INFINITY,
  removableMs: Number.NEGATIVE_INFINITY,
  takesUnattested: false,
};

/** Whether a document is authentic and expected, and carries this user_data. */
export type DocumentJudge = (document: Buffer, userData: Buffer) => boolean;

/** That a head of an accepted boot covers it: nothing less is ever said of an entry. */
export interface KnownEntry {
  readonly boot: string;
  readonly index: number;
  /** The sequence of the first head that covers it. */
  readonly head: number;
  /** Unattested: by the auditor's word alone. */
  readonly accepted: LogKind;
  readonly entry: ReceiptEntry;
}

/** Gets what is known, which is worth nothing when the logs are broken. @returns whether that was looked for */
export type EntryVisitor = (known: KnownEntry) => boolean;

export interface VerifiedReceipts {
  readonly verdict: 'whole' | 'gaps' | 'broken';
  readonly findings: readonly ReceiptFinding[];
  readonly boots: readonly VerifiedBoot[];
}

interface KeptHead extends Pick<LogHead, 'boot' | 'size' | 'root' | 'statement'> {
  readonly digest: string;
}

/** Of a boot whose identity has its form; its heads in the order of their sequences. */
export interface VerifiedBoot {
  readonly boot: string;
  readonly identity: BootIdentity;
  readonly heads: readonly KeptHead[];
  /** By whom its entries count: its document, or the word of the auditor; null: they do not count. */
  readonly accepted: LogKind | null;
}

type JudgedBoot = VerifiedBoot & Pick<ShownBoot, 'entries'>;

export type Find = (fault: ReceiptFault, detail: string) => void;

export function verifyReceipts(
  shown: readonly ShownBoot[],
  isAttested: DocumentJudge,
  question: Question = WHOLE_LOGS,
  look: EntryVisitor = () => false,
): VerifiedReceipts {
  const { fromMs, takesUnattested } = question;
  const findings: ReceiptFinding[] = [];
  const boots = new Map<string, JudgedBoot>();
  const finder =
    (boot: string): Find =>
    (fault, detail) =>
      findings.push({ fault, boot, detail });
  for (const one of shown) {
    const identity = readIdentity(one.identity);
    const boot = identity === undefined ? '' : bootOf(identity.publicKey);
    const find = finder(boot);
    if (identity === undefined) {
      find('malformed_identity', 'an identity has another form');
    } else if (boots.has(boot)) {
      find('two_logs', 'the boot is shown twice');
    } else {
      const isAccepted = judgeIdentity(identity, isAttested, find) || (identity.document === null && takesUnattested);
      const heads = headsOf(one.heads, identity, find);
      judgeOrder(heads, find);
      boots.set(boot, { boot, identity, heads, accepted: isAccepted ? identity.kind : null, entries: one.entries });
    }
  }
  const all = [...boots.values()];
  const history = historyOf(all);
  const inUse = new Map<string, number>();
  for (const one of all) {
    const { boot, heads, accepted } = one;
    const find = finder(boot);
    const limits = { removable: removableOf(one, all, question), from: sizeAt(heads, fromMs - 1) };
    judgeEntries(one, limits, find, (index, head, entry) => {
      const isFound = accepted !== null && look({ boot, index, head, accepted, entry });
      if (isFound) inUse.set(boot, Math.max(entry.timeMs, inUse.get(boot) ?? 0));
      return isFound;
    });
    if (heads[0] !== undefined) judgeFirst(heads[0], one, history, find);
  }
  const asked = findings.filter((one) =>
    concerns(one, boots.get(one.boot)?.heads ?? [], inUse.get(one.boot), question),
  );
  const verdict = asked.length === 0 ? 'whole' : asked.every(({ fault }) => isGap(fault)) ? 'gaps' : 'broken';
  return { verdict, findings: asked, boots: all };
}

export function isGap(fault: ReceiptFault): boolean {
  return (GAPS as readonly string[]).includes(fault);
}

/**
 * Whether a finding is of the span. What is broken is always; it is not known when a log without an end ended, nor when
 * boots ran that are not there. @param foundMs the time of the latest entry that was found in the boot
 */
function concerns(
  { fault }: ReceiptFinding,
  heads: readonly KeptHead[],
  foundMs: number | undefined,
  question: Question,
): boolean {
  const last = heads.at(-1)?.statement.time;
  if (!isGap(fault) || fault === 'unlinked' || fault === 'unlisted' || last === undefined) return true;
  if (fault === 'open_end' || fault === 'uncovered_entries')
    return last < question.toMs || (foundMs ?? 0) >= question.toMs;
  return foundMs !== undefined || ranIn(heads, question);
}

/** Whether a boot with these heads ran in the span, as far as they say. */
export function ranIn(heads: readonly KeptHead[], { fromMs, toMs }: Pick<Question, 'fromMs' | 'toMs'>): boolean {
  const none = Number.POSITIVE_INFINITY;
  return (heads[0]?.statement.time ?? none) < toMs && (heads.at(-1)?.statement.time ?? -none) >= fromMs;
}

/** How many of its first entries may be removed: by its own heads, those of attested boots, the auditor's word. */
function removableOf({ boot, heads }: JudgedBoot, all: readonly JudgedBoot[], { removableMs }: Question): number {
  const saying = all.filter((one) => one.boot === boot || one.accepted === 'attested');
  const times = saying.flatMap((one) => one.heads.map(({ statement }) => removableBefore(statement) ?? removableMs));
  return sizeAt(
    heads,
    times.reduce((one, other) => Math.max(one, other), removableMs),
  );
}

/** Of the last head that is no later. */
function sizeAt(heads: readonly KeptHead[], timeMs: number): number {
  return heads.findLast(({ statement }) => statement.time <= timeMs)?.size ?? 0;
}

/** Whether an accepted image has its key. */
function judgeIdentity(identity: BootIdentity, isAttested: DocumentJudge, find: Find): boolean {
  if (identity.document === null) {
    find('unattested', 'a plain service kept this log');
    return false;
  }
  const isAccepted = isAttested(identity.document, identityBinding(identity));
  if (!isAccepted) find('not_attested', 'its document does not show that an accepted image has this key');
  return isAccepted;
}

/** A head that the boot's key signed; nothing is said of its place. */
export function takeHead(note: string, identity: BootIdentity, find: Find): ReadHead | undefined {
  const head = readHead(note);
  if (head === undefined) {
    find('malformed_head', 'a head has another form');
  } else if (head.boot !== bootOf(identity.publicKey) || head.kind !== identity.kind) {
    find('other_boot', `head ${head.statement.sequence} is of another log`);
  } else if (isSignedBy(head, identity)) {
    return head;
  } else {
    find('bad_signature', `the boot's key did not sign head ${head.statement.sequence}`);
  }
  return undefined;
}

/** @param before the one before it that is there */
export function judgeNext(before: KeptHead | undefined, head: KeptHead, find: Find): void {
  const { sequence, time, lost, previous } = head.statement;
  if (sequence !== (before === undefined ? 0 : before.statement.sequence + 1)) {
    find('missing_head', `there is no head before head ${sequence}`);
  } else if (before !== undefined && previous !== before.digest) {
    find('broken_chain', `head ${sequence} names another one before it`);
  }
  if (before === undefined) return;
  if (head.size < before.size || time < before.statement.time || lost < before.statement.lost) {
    find('went_back', `size, time or lost of head ${sequence} is less than before`);
  }
  if (before.statement.closed) find('after_end', `head ${sequence} follows the last one`);
}

function headsOf(notes: Iterable<string>, identity: BootIdentity, find: Find): KeptHead[] {
  const heads = new Map<number, KeptHead>();
  for (const note of notes) {
    const head = takeHead(note, identity, find);
    if (head === undefined) continue;
    const { boot, size, root, statement, digest } = head;
    const known = heads.get(statement.sequence);
    if (known === undefined) heads.set(statement.sequence, { boot, size, root, statement, digest });
    else if (known.digest !== digest) find('two_logs', `there are two heads ${statement.sequence}`);
  }
  return [...heads.values()].sort((one, other) => one.statement.sequence - other.statement.sequence);
}

function judgeOrder(heads: readonly KeptHead[], find: Find): void {
  if (heads.length === 0) find('missing_head', 'there is no head');
  for (const [index, head] of heads.entries()) judgeNext(heads[index - 1], head, find);
  const last = heads.at(-1)?.statement;
  if (last === undefined) return;
  if (!last.closed) find('open_end', `the log has no end; decisions after ${new Date(last.time).toISOString()} lack`);
  if (last.lost > 0) find('lost', `${last.lost} decisions are not in the log`);
}

/**
 * @param removable how many of the first entries may be given by their hashes
 * @param from the first entry that may be of the span
 * @param isFound gets each entry that a head covers, with the first head that does
 */
function judgeEntries(
  { entries, heads }: Pick<JudgedBoot, 'entries' | 'heads'>,
  { removable, from }: { readonly removable: number; readonly from: number },
  find: Find,
  isFound: (index: number, head: number, entry: ReceiptEntry) => boolean,
): void {
  const edge = new TreeEdge();
  const bySize = heads.toSorted((one, other) => one.size - other.size);
  const covered = bySize.at(-1)?.size ?? 0;
  if (entries === undefined) {
    if (covered > 0) find('no_entries', `its ${covered} entries are not at hand: nothing is known of them`);
    return;
  }
  let next = 0;
  const found = new Map<ReceiptFault, string>();
  const findOnce: Find = (fault, detail) => found.set(fault, found.get(fault) ?? detail);
  const compare = (): void => {
    for (let head = bySize[next]; head !== undefined && head.size === edge.size; head = bySize[next]) {
      next += 1;
      if (edge.root().equals(head.root)) continue;
      findOnce('other_root', `the entries are not those of head ${head.statement.sequence}`);
    }
  };
  let removed = 0;
  let begin = from;
  compare();
  for (const entry of entries) {
    if (edge.size === covered) {
      findOnce('uncovered_entries', `no head covers the entries from ${covered} on`);
      break;
    }
    if (entry instanceof Uint8Array) {
      const read = decodeEntry(entry);
      if (read === undefined) findOnce('malformed_entry', `entry ${edge.size} has another form`);
      else if (isFound(edge.size, bySize[next]?.statement.sequence ?? 0, read)) begin = Math.min(begin, edge.size);
      edge.append(leafHash(entry));
    } else {
      if (edge.size < removable) removed = edge.size + 1;
      else findOnce('missing_entries', `entry ${edge.size} is withheld: no head that counts lets it be removed`);
      edge.append(entry.hash);
    }
    compare();
  }
  if (edge.size < covered) findOnce('missing_entries', `there are ${edge.size} entries of ${covered}`);
  if (removed > 0 && (removed > from || begin < from))
    findOnce('removed_by_retention', `entries up to ${removed - 1} are gone, of which some hashes are left`);
  for (const [fault, detail] of found) find(fault, detail);
}

interface History {
  /** Those with heads. */
  readonly boots: readonly VerifiedBoot[];
  readonly places: ReadonlyMap<string, { readonly other: VerifiedBoot; readonly at: number }>;
  /** By kind, what the first head of the earliest boot names: the time before what is at hand. */
  readonly earlier: ReadonlyMap<string, ReadonlySet<string>>;
}

function historyOf(all: readonly VerifiedBoot[]): History {
  const boots = all
    .filter(({ heads }) => heads.length > 0)
    .sort((one, other) => timeOfFirst(one) - timeOfFirst(other) || (one.boot < other.boot ? -1 : 1));
  const earlier = new Map<string, ReadonlySet<string>>();
  for (const { identity, heads } of boots) {
    if (!earlier.has(identity.kind)) earlier.set(identity.kind, new Set(heads[0]?.statement.before?.heads ?? []));
  }
  const places = boots.flatMap((other) => other.heads.map(({ digest }, at) => [digest, { other, at }] as const));
  return { boots, places: new Map(places), earlier };
}

/** Against what is there of the time before this boot: only a first head names others. */
function judgeFirst(
  { statement: { before, time } }: KeptHead,
  { identity }: VerifiedBoot,
  { boots, places, earlier }: History,
  find: Find,
): void {
  if (before === null) return;
  if (before.gap !== null) {
    find('unlinked', 'the signer could not read which heads were there');
    return;
  }
  const named = new Set<string>();
  let unlisted = 0;
  for (const digest of before.heads) {
    const place = places.get(digest);
    if (place === undefined) {
      if (earlier.get(identity.kind)?.has(digest) === true) unlisted += 1;
      else find('unknown_head', `it names ${digest}, which is not there`);
      continue;
    }
    const { other, at } = place;
    named.add(other.boot);
    const next = other.heads[at + 1];
    if (next !== undefined && !(ranOn(other, time) && next.statement.time > time - SETTLED_MS)) {
      find('rolled_back', `it names a head of ${other.boot} that was not the last one`);
    }
  }
  if (unlisted > 0)
    find('unlisted', `it names ${unlisted} boots before all that are at hand: nothing is known of them`);
  const others = boots
    .filter((other) => timeOfFirst(other) < time)
    .sort((one, other) => lastBefore(other, time) - lastBefore(one, time) || (one.boot < other.boot ? -1 : 1))
    .slice(0, MAX_NAMED_HEADS);
  for (const other of others) {
    if (named.has(other.boot) || (ranOn(other, time) && timeOfFirst(other) > time - SETTLED_MS)) continue;
    find('not_named', `it does not name ${other.boot}, which was there before`);
  }
}

function ranOn({ heads }: VerifiedBoot, time: number): boolean {
  return (heads.at(-1)?.statement.time ?? 0) >= time;
}

function timeOfFirst({ heads }: VerifiedBoot): number {
  return heads[0]?.statement.time ?? Number.POSITIVE_INFINITY;
}

function lastBefore({ heads }: VerifiedBoot, time: number): number {
  return heads.findLast((head) => head.statement.time < time)?.statement.time ?? 0;
}
