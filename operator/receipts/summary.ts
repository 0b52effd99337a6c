// What verified logs cover, for people and programs: each boot with its time and its image, when no log was kept, and
// starts in a loop. It is said of logs that are verified, and judges nothing.

import { readCoseSign1, readPayload } from '../../common/attestation/document.ts';
import { MAX_NAMED_HEADS } from '../../common/receipts/head.ts';
import type { Question, VerifiedBoot } from '../../common/receipts/verify.ts';

/** Of the image, its kernel, its program, its configuration and its ceremony (specification/evidence.md#registers). */
const SHOWN_REGISTERS = [0, 1, 2, 16, 17] as const;
const HOUR_MS = 3_600_000;

export type TimeSpan = Pick<Question, 'fromMs' | 'toMs'>;

interface Span {
  /** RFC 3339. */
  readonly from: string;
  readonly to: string;
}

export function summariesOf(boots: readonly VerifiedBoot[]) {
  const bootOfHead = new Map(boots.flatMap(({ boot, heads }) => heads.map(({ digest }) => [digest, boot] as const)));
  const summaries = boots.map(({ boot, identity, heads, accepted }) => {
    const [first, last] = [heads[0]?.statement, heads.at(-1)?.statement];
    const { heads: named = [], gap = null } = first?.before ?? {};
    return {
      ...{ boot, kind: identity.kind, accepted },
      // Of the first head and of the last one.
      ...{ from: first ? timeOf(first.time) : null, to: last ? timeOf(last.time) : null },
      ...{ closed: last?.closed ?? false, lost: last?.lost ?? 0, heads: heads.length, size: heads.at(-1)?.size ?? 0 },
      // Boots before it, whose last heads its first head names; null when it could not read them.
      names:
        first === undefined || gap !== null
          ? null
          : named.map((one) => bootOfHead.get(one) ?? `a head ${one}, which is not there`),
      // What its attestation document states; null without an accepted one.
      measurements: accepted === null || identity.document === null ? null : measurementsOf(identity.document),
    };
  });
  return summaries.sort((one, other) => ((one.from ?? '') < (other.from ?? '') ? -1 : 1));
}

/** The times in the span that no accepted log covers, in their order. Without bounds, those between logs. */
export function timesWithoutLog(boots: readonly VerifiedBoot[], { fromMs, toMs }: TimeSpan): Span[] {
  const covered = boots
    .filter(({ accepted }) => accepted !== null)
    .flatMap(({ heads: [first, ...more] }) => (first === undefined ? [] : [[first, more.at(-1) ?? first] as const]))
    .map(([first, last]) => [first.statement.time, last.statement.time] as const)
    .sort(([one], [other]) => one - other);
  const missing: Span[] = [];
  let at = fromMs > 0 ? fromMs : (covered[0]?.[0] ?? 0);
  for (const [first, last] of covered) {
    if (first > at) missing.push({ from: timeOf(at), to: timeOf(Math.min(first, toMs)) });
    at = Math.max(at, last);
    if (at >= toMs) return missing;
  }
  return toMs === Number.POSITIVE_INFINITY ? missing : [...missing, { from: timeOf(at), to: timeOf(toMs) }];
}

/** Times with more starts within an hour than a first head can name: a parent restarts the signer in a loop. */
export function restartLoops(boots: readonly VerifiedBoot[]): (Span & { readonly starts: number })[] {
  const times = boots.flatMap(({ heads }) => heads[0]?.statement.time ?? []).sort((one, other) => one - other);
  const loops: { fromMs: number; toMs: number; starts: number }[] = [];
  let first = 0;
  for (const [index, toMs] of times.entries()) {
    while ((times[first] ?? 0) <= toMs - HOUR_MS) first += 1;
    const [fromMs = toMs, starts, last] = [times[first], index - first + 1, loops.at(-1)];
    if (starts <= MAX_NAMED_HEADS) continue;
    if (last === undefined || last.toMs < fromMs) loops.push({ fromMs, toMs, starts });
    else Object.assign(last, { toMs, starts: last.starts + 1 });
  }
  return loops.map(({ fromMs, toMs, starts }) => ({ from: timeOf(fromMs), to: timeOf(toMs), starts }));
}

export function timeOf(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

/** Of a document that is authentic. */
function measurementsOf(document: Buffer): Record<string, string> {
  const { pcrs } = readPayload(readCoseSign1(document).payload);
  const shown = SHOWN_REGISTERS.filter((register) => pcrs.has(register));
  return Object.fromEntries(shown.map((register) => [`PCR${register}`, pcrs.get(register)?.toString('hex') ?? '']));
}
