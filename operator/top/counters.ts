// The numbers of a signer's metrics that `operator top` shows. What comes over plain HTTP is not attested: it is shown
// and decides nothing.

import { SCOPE_CATALOGUE } from '../../signer/api/scope-catalogue.ts';

export interface SigningCounters {
  readonly signed: number;
  readonly refused: ReadonlyMap<string, number>;
  readonly refusedByScope: ReadonlyMap<string, number>;
  /** Cumulative, by upper bound in seconds, ascending; the last is Infinity. */
  readonly durations: readonly (readonly [bound: number, count: number])[];
  readonly keys: number | undefined;
}

/** The metrics name routes without their method: one of several scopes stands for all of them. */
const SCOPES_OF_ROUTES: ReadonlyMap<string, string> = scopesOfRoutes();

function scopesOfRoutes(): Map<string, string> {
  const found = new Map<string, string>();
  for (const [scope, { routes }] of Object.entries(SCOPE_CATALOGUE)) {
    for (const route of routes) {
      const path = route.slice(route.indexOf(' ') + 1).replaceAll(/\{([a-z]+)\}/g, ':$1');
      const before = found.get(path);
      if (before?.split('|').includes(scope) !== true)
        found.set(path, before === undefined ? scope : `${before}|${scope}`);
    }
  }
  return found;
}

const LINE = /^(svc_[a-z_]+)\{([^}]*)\} (\S+)$/;
const LABEL = /([a-z_]+)="([^"]*)"/g;
const MAX_REASONS = 200;

export function readCounters(text: string): SigningCounters {
  let signed = 0;
  let keys: number | undefined;
  const refused = new Map<string, number>();
  const refusedByScope = new Map<string, number>();
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
    } else if (name === 'svc_http_requests_total' && label('status') === '4xx') {
      const scopes = SCOPES_OF_ROUTES.get(label('route'));
      if (scopes !== undefined) refusedByScope.set(scopes, (refusedByScope.get(scopes) ?? 0) + value);
    } else if (name === 'svc_keys') {
      keys = (keys ?? 0) + value;
    }
  }
  const durations = [...buckets].sort(([a], [b]) => a - b);
  return { signed, refused, refusedByScope, durations, keys };
}

export interface Rates {
  readonly signedPerSecond: number;
  readonly refusedPerSecond: number;
  /** Undefined when nothing was asked in between, or it took longer than the last bound. */
  readonly p99Seconds: number | undefined;
  readonly mainReason: string | undefined;
  readonly refusedByScope: ReadonlyMap<string, number>;
}

/** A counter that fell started at zero again: the signer was restarted. */
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
    refusedByScope: new Map(
      [...now.refusedByScope].flatMap(([scope, count]) => {
        const more = risen(count, before.refusedByScope.get(scope) ?? 0);
        return more === 0 ? [] : [[scope, more / seconds] as const];
      }),
    ),
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
