// What verified logs cover, for people and programs: each boot with its time and its image, when no log was kept, and
// starts in a loop. It is said of logs that are verified, and judges nothing.

import { readCoseSign1, readPayload } from '../../common/attestation/document.ts';
import { MAX_NAMED_HEADS } from '../../common/receipts/head.ts';
import type { VerifiedBoot } from '../../common/receipts/verify.ts';

/** Of the image, its kernel, its program, its configuration and its ceremony (specification/evidence.md#registers). */
const SHOWN_REGISTERS = [0, 1, 2, 16, 17] as const;
const HOUR_MS = 3_600_000;

export interface TimeSpan {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface BootSummary {
  readonly boot: string;
  readonly kind: string;
  /** RFC 3339, of the first head and of the last one. */
  readonly from: string | null;
  readonly to: string | null;
  readonly closed: boolean;
  readonly heads: number;
  readonly size: number;
  readonly lost: number;
  /** Boots before it, whose last heads its first head names; null when it could not read them. */
  readonly names: readonly string[] | null;
  /** What its attestation document states; null without an accepted one. */
  readonly measurements: Readonly<Record<string, string>> | null;
}

export function summariesOf(boots: readonly VerifiedBoot[]): BootSummary[] {
  const bootOfHead = new Map(boots.flatMap(({ boot, heads }) => heads.map(({ digest }) => [digest, boot] as const)));
  const summaries = boots.map(({ boot, identity, heads, accepted }): BootSummary => {
    const [first, last] = [heads[0]?.statement, heads.at(-1)?.statement];
    const before = first?.before ?? null;
    const names = before?.heads.map((digest) => bootOfHead.get(digest) ?? `a head ${digest}, which is not there`);
    return {
      ...{
        boot,
        kind: identity.kind,
        from: timeOf(first?.time),
        to: timeOf(last?.time),
        closed: last?.closed ?? false,
      },
      ...{ heads: heads.length, size: heads.at(-1)?.size ?? 0, lost: last?.lost ?? 0 },
      names: before === null || before.gap !== null ? null : (names ?? []),
      measurements: accepted === null || identity.document === null ? null : measurementsOf(identity.document),
    };
  });
  return summaries.sort((one, other) => ((one.from ?? '') < (other.from ?? '') ? -1 : 1));
}

/** The times in the span that no accepted log covers, in their order. Without bounds, those between logs. */
export function timesWithoutLog(boots: readonly VerifiedBoot[], { fromMs, toMs }: TimeSpan): TimeSpan[] {
  const covered = boots
    .filter(({ accepted, heads }) => accepted !== null && heads.length > 0)
    .map(({ heads }) => ({ fromMs: heads[0]?.statement.time ?? 0, toMs: heads.at(-1)?.statement.time ?? 0 }))
    .sort((one, other) => one.fromMs - other.fromMs);
  const missing: TimeSpan[] = [];
  let at = fromMs > 0 ? fromMs : (covered[0]?.fromMs ?? 0);
  for (const one of covered) {
    if (one.fromMs > at) missing.push({ fromMs: at, toMs: Math.min(one.fromMs, toMs) });
    at = Math.max(at, one.toMs);
    if (at >= toMs) return missing;
  }
  return toMs === Number.POSITIVE_INFINITY ? missing : [...missing, { fromMs: at, toMs }];
}

/** Times with more starts within an hour than a first head can name: the parent restarts the signer in a loop. */
export function restartLoops(boots: readonly VerifiedBoot[]): (TimeSpan & { readonly starts: number })[] {
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
  return loops;
}

export function timeOf(timeMs: number): string;
export function timeOf(timeMs: number | undefined): string | null;
export function timeOf(timeMs: number | undefined): string | null {
  return timeMs === undefined ? null : new Date(timeMs).toISOString();
}

/** Of a document that is authentic. */
function measurementsOf(document: Buffer): Record<string, string> {
  const { pcrs } = readPayload(readCoseSign1(document).payload);
  return Object.fromEntries(
    SHOWN_REGISTERS.flatMap((register) => {
      const value = pcrs.get(register);
      return value === undefined ? [] : [[`PCR${register}`, value.toString('hex')]];
    }),
  );
}
