// The names that Web3Signer's dashboard, public alerts and wrappers look for, of a real `strongroom web3signer` that
// has signed, refused and been asked for nonsense; the file of its ports; and a signer that is no drop-in.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type RunningSigner, startSigner } from '../../rehearsal/signer.ts';
import { otherNames, WEB3SIGNER_NAMES } from '../../service/metric-names.ts';
import type { MetricSample } from '../../signer/metrics/metrics.ts';
import { deploy } from '../support/deployment.ts';
import { attestation, call, rootOf, signCall } from '../support/requests.ts';
import { made as madeIn, ON_FREE_PORTS, TOOL_KEY, writeToolKeystore } from '../support/web3signer-tools.ts';

let folder = '';
let signer: RunningSigner | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-names-'));
});
afterEach(async () => {
  await signer?.stop();
  signer = undefined;
  rmSync(folder, { recursive: true });
});

function valuesIn(text: string): Readonly<Record<string, string>> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), line.split(' ').at(-1) ?? '']));
}

async function metricsOf({ metricsUrl }: RunningSigner): Promise<Readonly<Record<string, string>>> {
  return valuesIn(await (await fetch(metricsUrl)).text());
}

/** The dashboard's queries of what strongroom has too; of the others the guide says that they are not there. */
const DASHBOARD = [
  'process_cpu_seconds_total',
  'process_resident_memory_bytes',
  'signing_signers_loaded_count',
  'signing_bls_signing_duration_count',
  'signing_bls_signing_duration{quantile="0.95"}',
  'signing_bls_missing_identifier_count_total',
  'http_bls_malformed_request_count_total',
  'eth2_slashingprotection_permitted_signings_total',
  'eth2_slashingprotection_prevented_signings_total',
];

it('counts under Web3Signer’s names what it signed, refused and did not understand', async () => {
  const keys = madeIn(folder, 'keys');
  const data = madeIn(folder, 'data');
  writeToolKeystore(keys);
  const command = [
    'web3signer',
    `--key-store-path=${keys}`,
    `--data-path=${data}`,
    '--metrics-enabled',
    'eth2',
    '--network=mainnet',
    '--slashing-protection-enabled=false',
  ];
  signer = await startSigner({ folder, command, env: ON_FREE_PORTS });
  const before = await metricsOf(signer);
  expect(DASHBOARD.filter((name) => before[name] === undefined)).toEqual([]);
  expect(before['signing_signers_loaded_count']).toBe('1');
  expect(before['signing_bls_signing_duration{quantile="0.95"}']).toBe('NaN');

  const vote = (target: number, head = rootOf(1)) => attestation({ source: target - 1, target, head });
  const ask = (key: string, body: unknown) => signCall(signer?.url ?? '', key, body, { token: null });
  expect((await ask(TOOL_KEY, vote(5))).status).toBe(200);
  expect((await ask(TOOL_KEY, vote(6))).status).toBe(200);
  expect((await ask(TOOL_KEY, vote(6, rootOf(2)))).status).toBe(412);
  expect((await ask(`0x${'ab'.repeat(48)}`, vote(7))).status).toBe(404);
  expect((await ask(TOOL_KEY, {})).status).toBe(400);

  // The page is kept for a second.
  const asked = signer;
  const readAgain = () => metricsOf(asked);
  await expect.poll(readAgain, { timeout: 10_000 }).toMatchObject({ signing_bls_signing_duration_count: '5' });
  const after = await readAgain();
  expect(after).toMatchObject({
    signing_bls_signing_duration_count: '5',
    signing_bls_missing_identifier_count_total: '1',
    http_bls_malformed_request_count_total: '1',
    eth2_slashingprotection_permitted_signings_total: '2',
    eth2_slashingprotection_prevented_signings_total: '1',
  });
  expect(Number(after['signing_bls_signing_duration{quantile="0.95"}'])).toBeGreaterThan(0);
  expect(after['process_cpu_seconds_total']).toBe(after['svc_process_cpu_seconds_total']);

  const { checks } = (await call(`${signer.url}/healthcheck`, { token: null })).json as {
    checks: { id: string; status: string }[];
  };
  expect(checks).toContainEqual({ id: 'keys-check', status: 'UP' });
  expect(checks).toContainEqual({ id: 'slashing-protection-db-health-check', status: 'UP' });

  const file = join(data, 'web3signer.ports');
  const ports = readFileSync(file, 'utf8').split('\n').slice(1);
  expect(ports).toEqual([
    `http-port=${new URL(signer.url).port}`,
    `metrics-port=${new URL(signer.metricsUrl).port}`,
    '',
  ]);
  await signer.stop();
  signer = undefined;
  expect(existsSync(file)).toBe(false);
});

it('a signer that is no drop-in has the names of the process, and no other', async () => {
  signer = await deploy(1).start();
  const names = Object.keys(await metricsOf(signer)).map((name) => name.replace(/\{.*/, ''));
  const foreign = new Set(names.filter((name) => !name.startsWith('svc_')));
  expect([...foreign]).toEqual(['process_cpu_seconds_total', 'process_resident_memory_bytes']);
});

it('quantiles are of the last five minutes, sums and counts of all time', async () => {
  let now = 0;
  let counts = [0, 0, 0];
  const bounds = ['0.1', '1', '+Inf'];
  const histogram = (name: string): MetricSample[] => [
    ...bounds.map((le, at) => ({ metricName: `${name}_bucket`, labels: { le }, value: counts[at] ?? 0 })),
    { metricName: `${name}_sum`, labels: {}, value: 7 },
    { metricName: `${name}_count`, labels: {}, value: counts[2] ?? 0 },
  ];
  const names = otherNames({ web3signer_names: true } as Parameters<typeof otherNames>[0], () => now);
  const read = async (name: string) => (name === 'svc_signing_duration_seconds' ? histogram(name) : []);
  const median = async () => valuesIn(await names(read))['signing_bls_signing_duration{quantile="0.5"}'];

  expect(await median()).toBe('NaN');
  counts = [0, 10, 10];
  expect(await median()).toBe('1');
  now += 4 * 60_000;
  counts = [5, 15, 15];
  expect(await median()).toBe('1'); // all 15 of the last five minutes
  now += 4 * 60_000;
  expect(await median()).toBe('NaN'); // the reading of four minutes ago had them all
  counts = [5, 15, 18];
  expect(await median()).toBe('+Inf');
});

it('the guide has each of the names', () => {
  const guide = readFileSync(join(import.meta.dirname, '../../docs/guides/web3signer.md'), 'utf8');
  const isMissing = ({ name }: { readonly name: string }) => !guide.includes(`| \`${name}\``);
  expect(WEB3SIGNER_NAMES.filter(isMissing)).toEqual([]);
});
