// Other names of what the catalogue counts, made when the metrics are read: the names that every program's dashboard
// asks for (`process_…`), and those of Web3Signer's dashboard and public alerts, for who came from there
// (guides/web3signer.md#metrics). Nothing is recorded for them, so a signature pays nothing.

import { type ErrorReason, SLASHING_REFUSALS } from '../signer/api/errors.ts';
import type { Operation } from '../signer/api/operations.ts';
import type { Config } from '../signer/config/options.ts';
import { METRICS } from '../signer/metrics/catalogue.ts';
import type { MetricEntry } from '../signer/metrics/entry.ts';
import type { MetricSample, OtherNames } from '../signer/metrics/metrics.ts';

export interface Alias {
  readonly name: string;
  /** A summary is made of a histogram: its quantiles are of the last minutes. */
  readonly type: 'counter' | 'gauge' | 'summary';
  readonly help: string;
  readonly of: MetricEntry;
  /** Which series are added up, by the values of their labels; all of them without it. */
  readonly where?: Readonly<Record<string, readonly string[]>>;
}

const PROCESS_NAMES: readonly Alias[] = [
  {
    name: 'process_cpu_seconds_total',
    type: 'counter',
    help: 'As svc_process_cpu_seconds_total.',
    of: METRICS.processCpuSeconds,
  },
  {
    name: 'process_resident_memory_bytes',
    type: 'gauge',
    help: 'As svc_process_resident_memory_bytes.',
    of: METRICS.processResidentBytes,
  },
];

const MALFORMED = [
  'malformed_request',
  'malformed_body',
  'malformed_parameter',
  'unsupported_operation',
] as const satisfies readonly ErrorReason[];

export const WEB3SIGNER_NAMES: readonly Alias[] = [
  {
    name: 'signing_signers_loaded_count',
    type: 'gauge',
    help: 'Keys that may sign: svc_keys with the status active.',
    of: METRICS.keys,
    where: { status: ['active'] },
  },
  {
    name: 'signing_bls_signing_duration',
    type: 'summary',
    help: 'Time of signing requests in seconds: svc_signing_duration_seconds of all operations.',
    of: METRICS.signingSeconds,
  },
  {
    name: 'signing_bls_missing_identifier_count_total',
    type: 'counter',
    help: 'Signing requests for keys that are not loaded: svc_signing_requests_total, unknown_key.',
    of: METRICS.signingRequests,
    where: { outcome: ['unknown_key'] satisfies ErrorReason[] },
  },
  {
    name: 'http_bls_malformed_request_count_total',
    type: 'counter',
    help: 'Signing requests that are malformed: svc_signing_requests_total, malformed_… and unsupported_operation.',
    of: METRICS.signingRequests,
    where: { outcome: MALFORMED },
  },
  {
    name: 'eth2_slashingprotection_permitted_signings_total',
    type: 'counter',
    help: 'Votes and blocks that were signed: svc_signing_requests_total, signed.',
    of: METRICS.signingRequests,
    where: { operation: ['ATTESTATION', 'BLOCK_V2'] satisfies Operation[], outcome: ['signed'] },
  },
  {
    name: 'eth2_slashingprotection_prevented_signings_total',
    type: 'counter',
    help: 'Messages that slashing protection refused: svc_slashing_refusals_total, without faults of a record.',
    of: METRICS.slashingRefusals,
    where: { reason: SLASHING_REFUSALS },
  },
];

/** Prometheus text of them, to stand after the catalogue's own. */
export function otherNames({ web3signer_names: isDropIn }: Config['server'], now: () => number): OtherNames {
  const aliases = isDropIn ? [...PROCESS_NAMES, ...WEB3SIGNER_NAMES] : PROCESS_NAMES;
  const rendered = aliases.map((alias) => {
    const text = alias.type === 'summary' ? summaryText(alias, now) : sumText(alias);
    return { name: alias.of.name, text };
  });
  return async (read) => {
    const texts = await Promise.all(rendered.map(async ({ name, text }) => text(await read(name))));
    return texts.map((text) => `\n${text}\n`).join('');
  };
}

type Rendered = (samples: readonly MetricSample[]) => string;

function sumText({ name, type, help, where = {} }: Alias): Rendered {
  return (samples) => {
    const counted = samples.filter(({ labels }) =>
      Object.entries(where).every(([label, values]) => values.includes(String(labels[label]))),
    );
    return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name} ${sumOf(counted)}`;
  };
}

const QUANTILES = [0.5, 0.95, 0.99];
/** As far back as quantiles look: Web3Signer's are of the last minutes, too. */
const WINDOW_MS = 5 * 60_000;

interface Reading {
  readonly at: number;
  /** Counts up to each bound, the bounds ascending. */
  readonly buckets: ReadonlyMap<number, number>;
}

/** A quantile is the bound of the bucket that it lies in, over what ended since a reading of some minutes ago. */
function summaryText({ name, help, of }: Alias, now: () => number): Rendered {
  let readings: Reading[] = [];
  return (samples) => {
    const part = (suffix: string) => samples.filter(({ metricName }) => metricName === `${of.name}_${suffix}`);
    const latest: Reading = { at: now(), buckets: cumulative(part('bucket')) };
    const inWindow = readings.filter(({ at }) => latest.at - at <= WINDOW_MS);
    const before = inWindow[0]?.buckets ?? new Map<number, number>();
    readings = [...inWindow, latest];
    const lines = QUANTILES.map((q) => `${name}{quantile="${q}"} ${quantileOf(q, latest.buckets, before)}`);
    const totals = [`${name}_sum ${sumOf(part('sum'))}`, `${name}_count ${sumOf(part('count'))}`];
    return [`# HELP ${name} ${help}`, `# TYPE ${name} summary`, ...lines, ...totals].join('\n');
  };
}

function cumulative(samples: readonly MetricSample[]): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const { value, labels } of samples) {
    const bound = labels['le'] === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels['le']);
    counts.set(bound, (counts.get(bound) ?? 0) + value);
  }
  return new Map([...counts].toSorted(([one], [other]) => one - other));
}

function quantileOf(quantile: number, latest: Reading['buckets'], before: Reading['buckets']): string {
  const counts = [...latest].map(([bound, count]) => ({ bound, count: count - (before.get(bound) ?? 0) }));
  const all = counts.at(-1)?.count ?? 0;
  const bucket = all === 0 ? undefined : counts.find(({ count }) => count >= quantile * all);
  if (bucket === undefined) return 'NaN';
  return bucket.bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bucket.bound);
}

function sumOf(samples: readonly MetricSample[]): number {
  return samples.reduce((sum, { value }) => sum + value, 0);
}
