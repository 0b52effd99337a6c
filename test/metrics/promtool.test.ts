// What Prometheus' own linter says of the metrics of a real signer, and of the parent proxy: nothing.

import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { createProxyMetrics, type MetricName, PROXY_METRICS } from '../../parent-proxy/metrics.ts';
import { deploy } from '../support/deployment.ts';
import { lacking } from '../support/needs.ts';
import { attestation, signCall } from '../support/requests.ts';

const noPromtool = lacking('promtool');

function check(text: string): { readonly said: string; readonly status: number | null } {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  return { said: `${stdout}${stderr}`, status };
}

it.skipIf(noPromtool)('promtool check metrics accepts what a signer that has signed shows', async () => {
  const deployment = deploy(1);
  const signer = await deployment.start();
  try {
    const key = deployment.keys[0]?.publicKey ?? '';
    expect((await signCall(signer.url, key, attestation({ source: 1, target: 2 }))).status).toBe(200);
    const text = await (await fetch(signer.metricsUrl)).text();
    expect(text).toContain('svc_event_loop_lag_seconds{statistic="p99"}');
    expect(check(text)).toEqual({ said: '', status: 0 });
  } finally {
    await signer.stop();
  }
});

it.skipIf(noPromtool)('and what the parent proxy shows, every metric of its table', () => {
  const metrics = createProxyMetrics();
  for (const name of Object.keys(PROXY_METRICS) as MetricName[]) {
    const labels = Object.fromEntries(Object.keys(PROXY_METRICS[name].labels).map((label) => [label, 'x']));
    metrics.at(name, labels as never).add(1);
  }
  expect(check(metrics.render())).toEqual({ said: '', status: 0 });
});
