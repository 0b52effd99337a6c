// What verified logs cover, for people and programs: each boot with its time and its image, and when no log was kept.
// It is said of logs that are verified, and judges nothing.

import { readCoseSign1, readPayload } from '../../common/attestation/document.ts';
import type { KeptHead, VerifiedBoot } from '../../common/receipts/verify.ts';
import type { TimeSpan } from './fetch.ts';

/** Of the image, its kernel, its program, its configuration and its ceremony (specification/evidence.md#registers). */
const SHOWN_REGISTERS = [0, 1, 2, 16, 17] as const;

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
  /** What its attestation document states; null without one. */
  readonly measurements: Readonly<Record<string, string>> | null;
}

export function summariesOf(boots: readonly VerifiedBoot[], isAttested: (boot: string) => boolean): BootSummary[] {
  const bootOfHead = new Map(boots.flatMap(({ boot, heads }) => heads.map(({ digest }) => [digest, boot] as const)));
  return boots
    .map((one) => summaryOf(one, bootOfHead, isAttested(one.boot)))
    .sort((one, other) => ((one.from ?? '') < (other.from ?? '') ? -1 : 1));
}

function summaryOf(
  { boot, identity, heads }: VerifiedBoot,
  bootOfHead: ReadonlyMap<string, string>,
  isAttested: boolean,
): BootSummary {
  const last = heads.at(-1);
  const before = heads[0]?.statement.before ?? null;
  const names = before?.heads.map((digest) => bootOfHead.get(digest) ?? `a head ${digest}, which is not there`);
  return {
    boot,
    kind: identity.kind,
    from: timeOf(heads[0]),
    to: timeOf(last),
    closed: last?.statement.closed ?? false,
    heads: heads.length,
    size: last?.size ?? 0,
    lost: last?.statement.lost ?? 0,
    names: before === null || before.gap !== null ? null : (names ?? []),
    measurements: isAttested && identity.document !== null ? measurementsOf(identity.document) : null,
  };
}

/** The times in the span that no log covers, in their order. Without bounds, those between logs. */
export function timesWithoutLog(boots: readonly VerifiedBoot[], { fromMs, toMs }: TimeSpan): TimeSpan[] {
  const covered = boots
    .flatMap(({ heads }) => {
      const [first, last] = [heads[0], heads.at(-1)];
      return first === undefined || last === undefined
        ? []
        : [{ fromMs: first.statement.time, toMs: last.statement.time }];
    })
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

function timeOf(head: KeptHead | undefined): string | null {
  return head === undefined ? null : new Date(head.statement.time).toISOString();
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
