// The metrics catalogue: its conventions, that its label values are those of the sources, and what is rendered.

import { afterEach, expect, it } from 'vitest';
import { ERROR_REASONS, type ErrorReason, SLASHING_KEY_FAULTS, SLASHING_REFUSALS } from '../../signer/api/errors.ts';
import { OPERATIONS } from '../../signer/api/operations.ts';
import type { AwsFault } from '../../signer/aws/errors.ts';
import { METRICS } from '../../signer/metrics/catalogue.ts';
import type { MetricEntry } from '../../signer/metrics/entry.ts';
import { createMetrics, type Metrics, statusClass } from '../../signer/metrics/metrics.ts';
import { authorizationReference } from '../../tools/reference/authorization.ts';
import { errorReference } from '../../tools/reference/errors.ts';
import { metricsReference } from '../../tools/reference/metrics.ts';

const entries: readonly MetricEntry[] = Object.values(METRICS);

const opened: Metrics[] = [];
afterEach(() => {
  for (const metrics of opened.splice(0)) metrics.close();
});

function openMetrics(): Metrics {
  const metrics = createMetrics();
  opened.push(metrics);
  return metrics;
}

async function linesOf(metrics: Metrics, name: string): Promise<string[]> {
  const { body } = await metrics.render();
  return body.split('\n').filter((line) => line.startsWith(name) && !line.startsWith('#'));
}

function reasonsWithStatus(...statuses: number[]): string[] {
  return (Object.keys(ERROR_REASONS) as ErrorReason[]).filter((reason) =>
    statuses.includes(ERROR_REASONS[reason].status),
  );
}

it('names start with svc_, are unique, and end in their unit; counters in _total', () => {
  expect(new Set(entries.map(({ name }) => name)).size).toBe(entries.length);
  for (const { name, type } of entries) {
    expect(name).toMatch(/^svc_[a-z0-9_]+$/);
    expect(name.endsWith('_total')).toBe(type === 'counter');
  }
});

it('every metric says what it is, and the buckets of every histogram ascend', () => {
  for (const { help, type, buckets } of entries) {
    expect(help).toMatch(/^[A-Z0-9].*\.$/);
    expect(buckets.length > 0).toBe(type === 'histogram');
    expect(buckets.toSorted((a, b) => a - b)).toEqual(buckets);
  }
});

it('label values are those of the sources they come from', () => {
  expect(METRICS.signingRequests.labels.operation.values).toEqual([...OPERATIONS, 'unknown']);
  expect(METRICS.signingRequests.labels.outcome.values).toEqual(['signed', ...Object.keys(ERROR_REASONS)]);
  expect(METRICS.slashingRefusals.labels.reason.values.toSorted()).toEqual(
    // No store has equivocations: they are remembered, and counted with the signing requests.
    [...reasonsWithStatus(412).filter((reason) => reason !== 'equivocation'), ...SLASHING_KEY_FAULTS].toSorted(),
  );
  expect(METRICS.authRejections.labels.reason.values.toSorted()).toEqual(
    [...reasonsWithStatus(401, 403), 'unknown'].toSorted(),
  );
  const outcomes: Record<AwsFault | 'ok', true> = {
    ok: true,
    condition_failed: true,
    conflict: true,
    throttled: true,
    not_found: true,
    denied: true,
    unreachable: true,
    failed: true,
  };
  expect(METRICS.kmsCalls.labels.outcome.values).toEqual(Object.keys(outcomes));
});

it('what is recorded is rendered as Prometheus text', async () => {
  const metrics = openMetrics();
  metrics.signingRequests.inc({ operation: 'ATTESTATION', outcome: 'signed' });
  metrics.signingRequests.inc({ operation: 'ATTESTATION', outcome: 'signed' });
  metrics.signingRequests.inc({ operation: 'BLOCK_V2', outcome: 'double_block' });
  metrics.signingSeconds.observe(0.004, { operation: 'ATTESTATION' });
  metrics.keys.set(7, { source: 'memory', status: 'active' });
  metrics.slashingBatchMessages.observe(3);
  const { contentType, body } = await metrics.render();
  expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
  for (const line of [
    '# TYPE svc_signing_requests_total counter',
    'svc_signing_requests_total{operation="ATTESTATION",outcome="signed"} 2',
    'svc_signing_requests_total{operation="BLOCK_V2",outcome="double_block"} 1',
    'svc_signing_duration_seconds_bucket{le="0.002",operation="ATTESTATION"} 0',
    'svc_signing_duration_seconds_bucket{le="0.005",operation="ATTESTATION"} 1',
    'svc_signing_duration_seconds_count{operation="BLOCK_V2"} 0',
    'svc_keys{source="memory",status="active"} 7',
    'svc_slashing_batch_messages_sum 3',
  ]) {
    expect(body.split('\n')).toContain(line);
  }
});

it('a canary counter that never counted is rendered as zero, so that an alarm has something to watch', async () => {
  const metrics = openMetrics();
  expect(await linesOf(metrics, 'svc_canary_signing_total')).toEqual(['svc_canary_signing_total 0']);
  metrics.canarySignings.inc();
  expect(await linesOf(metrics, 'svc_canary_signing_total')).toEqual(['svc_canary_signing_total 1']);
});

it('a total that is counted elsewhere is reached, each series by itself, however often it is read', async () => {
  const metrics = openMetrics();
  for (const total of [3, 3, 5]) metrics.receiptDecisions.reach(total, { outcome: 'logged' });
  metrics.receiptDecisions.reach(2, { outcome: 'lost' });
  expect(await linesOf(metrics, 'svc_receipts_decisions_total')).toEqual([
    'svc_receipts_decisions_total{outcome="logged"} 5',
    'svc_receipts_decisions_total{outcome="lost"} 2',
  ]);
});

it('every slashing refusal and every authentication refusal is rendered from the start', async () => {
  const metrics = openMetrics();
  expect(await linesOf(metrics, 'svc_slashing_refusals_total')).toHaveLength(
    SLASHING_REFUSALS.length + SLASHING_KEY_FAULTS.length,
  );
  const reasons = (Object.keys(ERROR_REASONS) as ErrorReason[]).filter((reason) =>
    [401, 403].includes(ERROR_REASONS[reason].status),
  );
  const other = 1; // what the list does not have
  expect(await linesOf(metrics, 'svc_auth_rejections_total')).toHaveLength(reasons.length + other);
});

it('a gauge that was never set is not rendered: no certificate is not a certificate that expired in 1970', async () => {
  const metrics = openMetrics();
  expect(await linesOf(metrics, 'svc_tls_certificate_expiry_timestamp_seconds')).toEqual([]);
  metrics.certificateExpiry.set(1_800_000_000, { mode: 'ratls' });
  expect(await linesOf(metrics, 'svc_tls_certificate_expiry_timestamp_seconds')).toEqual([
    'svc_tls_certificate_expiry_timestamp_seconds{mode="ratls"} 1800000000',
  ]);
});

it('a value from elsewhere that is not listed counts as unknown, however many of them there are', async () => {
  const metrics = openMetrics();
  for (let index = 0; index < 100; index += 1) metrics.httpRequests.inc({ route: `/probe/${index}`, status: '4xx' });
  metrics.httpRequests.inc({ route: '/upcheck', status: '2xx' });
  metrics.httpRequests.inc({ route: '__proto__', status: '4xx' });
  const lines = await linesOf(metrics, 'svc_http_requests_total');
  expect(lines).toContain('svc_http_requests_total{route="unknown",status="4xx"} 101');
  expect(lines).toContain('svc_http_requests_total{route="/upcheck",status="2xx"} 1');
  expect(lines.some((line) => line.includes('probe'))).toBe(false);
});

it('each combination of label values is a series of its own', async () => {
  const metrics = openMetrics();
  const { source, status } = METRICS.keys.labels;
  const pairs = source.values.flatMap((from) => status.values.map((is) => ({ source: from, status: is })));
  for (const [index, pair] of pairs.entries()) metrics.keys.set(index + 1, pair);
  const lines = pairs.map((pair, index) => `svc_keys{source="${pair.source}",status="${pair.status}"} ${index + 1}`);
  expect(await linesOf(metrics, 'svc_keys')).toEqual(lines);
});

it('a value that a closed label does not have is a bug, and nothing is recorded', async () => {
  const metrics = openMetrics();
  const bug = { row: 'other' } as unknown as { row: 'policy' };
  expect(() => metrics.authRowsRejected.inc(bug)).toThrow(/svc_auth_rows_rejected_total/);
  for (const line of await linesOf(metrics, 'svc_auth_rows_rejected_total')) expect(line).toMatch(/ 0$/);
});

it('two sets of metrics share nothing', async () => {
  const [one, other] = [openMetrics(), openMetrics()];
  one.canarySignings.inc();
  expect(await linesOf(other, 'svc_canary_signing_total')).toEqual(['svc_canary_signing_total 0']);
});

it('collectors run before each rendering', async () => {
  const metrics = openMetrics();
  let depth = 0;
  metrics.onRender(() => {
    depth += 1;
    metrics.signingQueueDepth.set(depth, { pool: 'normal' });
  });
  await metrics.render();
  expect(await linesOf(metrics, 'svc_signing_queue_depth')).toEqual(['svc_signing_queue_depth{pool="normal"} 2']);
});

it('the process is measured: CPU time grows, memory and lag are there', async () => {
  const metrics = openMetrics();
  const value = async (name: string) => Number((await linesOf(metrics, name))[0]?.split(' ').at(-1));
  const before = await value('svc_process_cpu_seconds_total');
  for (let index = 0; index < 3e7; index += 1) Math.sqrt(index);
  expect(await value('svc_process_cpu_seconds_total')).toBeGreaterThan(before);
  expect(await value('svc_process_resident_memory_bytes')).toBeGreaterThan(10e6);
  expect(await linesOf(metrics, 'svc_event_loop_lag_seconds')).toHaveLength(3);
});

it('the status class of an answer', () => {
  const classes = [100, 200, 204, 302, 404, 499, 500, 503].map(statusClass);
  expect(classes.join(' ')).toBe('1xx 2xx 2xx 3xx 4xx 4xx 5xx 5xx');
});

it('the reference and the pages that it links describe every metric and every label value, and nothing else is rendered', async () => {
  const reference = metricsReference();
  for (const link of ['every [reason](', 'every [operation](']) expect(reference).toContain(link);
  const linked = [errorReference(), authorizationReference()];
  const ranges = [...reference.matchAll(/`0` to `(\d+)`/g)].flatMap(([, last]) =>
    Array.from({ length: Number(last) + 1 }, (_, value) => `\`${value}\``),
  );
  const described = [reference, ...linked, ...ranges].join('\n');
  for (const { name, help, labels } of entries) {
    expect(reference).toContain(`## \`${name}\``);
    expect(reference).toContain(help);
    for (const { values } of Object.values(labels))
      for (const value of values) expect(described).toContain(`\`${value}\``);
  }
  const { body } = await openMetrics().render();
  const rendered = body.split('\n').flatMap((line) => /^# TYPE (\S+)/.exec(line)?.[1] ?? []);
  expect(rendered.toSorted()).toEqual(entries.map(({ name }) => name).toSorted());
});
