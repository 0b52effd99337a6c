// The few numbers of a signer's metrics that `operator top` shows, read from the Prometheus text: counters of signing
// requests and the histogram of their durations, summed over operations. What comes over plain HTTP is not attested: it
// is shown and decides nothing.

export interface SigningCounters {
  readonly signed: number;
  /** Every other outcome, by reason. */
  readonly refused: ReadonlyMap<string, number>;
  /** Cumulative, by upper bound in seconds, ascending; the last is Infinity. */
  readonly durations: readonly (readonly [bound: number, count: number])[];
  /** Loaded keys; undefined before the first load. */
  readonly keys: number | undefined;
}

const LINE = /^(svc_[a-z_]+)\{([^}]*)\} (\S+)$/;
const LABEL = /([a-z_]+)="([^"]*)"/g;
const MAX_REASONS = 200;

export function readCounters(text: string): SigningCounters {
  let signed = 0;
  let keys: number | undefined;
  const refused = new Map<string, number>();
  const buckets = new Map<number, number>();
  for (const line of text.split('\n')) {
    const [, name, labels = '', written] = LINE.exec(line) ?? [];
    const value = Number(written);
    if (name === undefined || !Number.isFinite(value)) continue;
    const label = (wanted: string): string =>
      [...labels.matchAll(LABEL)].find(([, found]) => found === wanted)?.[2] ?? '';
    if (name === 'svc_signing_requests_total') {
      const outcome = label('outcome');
      if (outcome === 'signed') signed += value;
      else if (refused.has(outcome) || refused.size < MAX_REASONS)
        refused.set(outcome, (refused.get(outcome) ?? 0) + value);
    } else if (name === 'svc_signing_duration_seconds_bucket') {
      const bound = label('le') === '+Inf' ? Number.POSITIVE_INFINITY : Number(label('le'));
      buckets.set(bound, (buckets.get(bound) ?? 0) + value);
    } else if (name === 'svc_keys') {
      keys = (keys ?? 0) + value;
    }
  }
  const durations = [...buckets].sort(([a], [b]) => a - b);
  return { signed, refused, durations, keys };
}

export interface Rates {
  readonly signedPerSecond: number;
  readonly refusedPerSecond: number;
  /** Undefined when nothing was asked in between, or it took longer than the last bound. */
  readonly p99Seconds: number | undefined;
  /** The reason of most refusals in between. */
  readonly mainReason: string | undefined;
}

/** A counter that fell began anew: the signer was restarted. */
function risen(now: number, before: number): number {
  return now >= before ? now - before : now;
}

export function ratesBetween(before: SigningCounters, now: SigningCounters, seconds: number): Rates {
  const reasons = [...now.refused].map(([reason, count]): [string, number] => [
    reason,
    risen(count, before.refused.get(reason) ?? 0),
  ]);
  const [main] = reasons.filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a);
  return {
    signedPerSecond: risen(now.signed, before.signed) / seconds,
    refusedPerSecond: reasons.reduce((sum, [, count]) => sum + count, 0) / seconds,
    p99Seconds: quantile(0.99, before, now),
    mainReason: main?.[0],
  };
}

/** As Prometheus has it (histogram_quantile): linear within the bucket. */
function quantile(share: number, before: SigningCounters, now: SigningCounters): number | undefined {
  const earlier = new Map(before.durations);
  const counts = now.durations.map(([bound, count]) => [bound, risen(count, earlier.get(bound) ?? 0)] as const);
  const total = counts.at(-1)?.[1] ?? 0;
  if (total === 0) return undefined;
  const rank = share * total;
  const at = counts.findIndex(([, count]) => count >= rank);
  const [upper, reached] = counts[at] ?? [Number.POSITIVE_INFINITY, 0];
  if (upper === Number.POSITIVE_INFINITY) return undefined;
  const [lower, below] = at === 0 ? [0, 0] : (counts[at - 1] ?? [0, 0]);
  return reached === below ? upper : lower + ((upper - lower) * (rank - below)) / (reached - below);
}
