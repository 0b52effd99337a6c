// `make soak MINUTES=…`: mixed load on three signers, over sqlite, postgres and dynamodb (stand-in), and what they use
// meanwhile: resident memory, descriptors, the delay of the event loop, the latency of clients. Writes a chart
// (build/soak.svg) and says whether each curve is flat: whether its slope over the last two thirds, in the whole of
// them, is below a tenth of its mean. Resident memory is a sawtooth of V8's collections, and has a rule of its own
// (soak-verdict.ts); so has what is alive on the main thread, after a full collection at a sixth and at the end.
// Between them nothing disturbs the memory that is judged: a heap snapshot would add to it.
// `make soak JUDGE='build/soak.svg LOG'` judges a run once more.
// The clients run in this process, on the signers' cores. The second argument is the time of a slot's load, in ms.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startDynamoDB } from '../../rehearsal/dynamodb.ts';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { deploy } from '../../test/support/deployment.ts';
import { startPostgres } from '../../test/support/postgres.ts';
import { attestation, block, randaoReveal, TEST_TOKEN } from '../../test/support/requests.ts';
import { residentBytes } from './measured-signer.ts';
import { type Chart, chartOf } from './soak-chart.ts';
import { aliveVerdict, FIRST_COLLECTION, floorOf } from './soak-verdict.ts';

const MINUTES = Number(process.argv[2] || 30);
const KEYS = 64;
const SAMPLE_MS = 5_000;
const BURST_MS = Number(process.argv[3] || 1_000);
if (!(MINUTES > 0 && BURST_MS > 0)) throw new Error('MINUTES and BURST_MS are numbers above 0');
const COLLECTION_WAIT_MS = 300_000;
/** Growth over the judged part, of its mean. */
const FLAT_SHARE = 0.1;
const COLORS = { sqlite: '#1f77b4', postgres: '#d62728', dynamodb: '#2ca02c' } as const;
type Backend = keyof typeof COLORS;
type Measure = 'memory (MB)' | 'descriptors' | 'event loop p99 (ms)' | 'latency p50 (ms)' | 'latency p99 (ms)';
const MEASURES: readonly Measure[] = [
  'memory (MB)',
  'descriptors',
  'event loop p99 (ms)',
  'latency p50 (ms)',
  'latency p99 (ms)',
];

interface Soaked {
  readonly backend: Backend;
  readonly signer: RunningSigner;
  readonly keys: readonly string[];
  readonly agent: Agent;
  latencies: number[];
  readonly samples: Record<Measure, number[]>;
  readonly folder: string;
  readonly alive: Alive[];
}

/** After a full collection, MB. */
interface Alive {
  readonly heap: number;
  readonly resident: number;
}

/** Loaded before the signer: on SIGUSR2 V8 collects everything, and a file says how many bytes are left. */
const collectorFor = (file: string): string =>
  `data:text/javascript,${encodeURIComponent(`
  import { renameSync, writeFileSync } from 'node:fs';
  import { Session } from 'node:inspector';
  import { isMainThread } from 'node:worker_threads';
  const session = new Session();
  session.connect();
  if (isMainThread) process.on('SIGUSR2', () => {
    session.post('HeapProfiler.collectGarbage', () => {
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      writeFileSync('${file}.new', String(heapUsed + arrayBuffers));
      renameSync('${file}.new', '${file}');
    });
  });
`)}`;
const collected = (folder: string): string => join(folder, 'alive');

const [postgres, dynamodb] = await Promise.all([startPostgres(), startDynamoDB()]);
await dynamodb.createTable(tableDefinition('soak'));
const aws = {
  AWS_ENDPOINT_URL_DYNAMODB: dynamodb.endpoint,
  AWS_REGION: 'eu-central-1',
  AWS_ACCESS_KEY_ID: 'TEST',
  AWS_SECRET_ACCESS_KEY: 'TEST',
};
const postgresUrl = postgres.url(await postgres.createDatabase());

async function start(backend: Backend, config: object, env: Record<string, string>): Promise<Soaked> {
  const deployment = deploy(KEYS);
  const { folder } = deployment;
  const NODE_OPTIONS = `--import ${collectorFor(collected(folder))}`;
  const signer = await deployment.start({ config: { ...config }, env: { ...env, NODE_OPTIONS }, keepsLog: false });
  const samples = Object.fromEntries(MEASURES.map((measure) => [measure, [] as number[]])) as Record<Measure, number[]>;
  const keys = deployment.keys.map(({ publicKey }) => publicKey);
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  return { backend, signer, keys, agent, latencies: [], samples, folder, alive: [] };
}

const all = [
  await start('sqlite', {}, {}),
  await start('postgres', { anti_slashing: { backend: 'postgres' } }, { SVC_ANTI_SLASHING__URL: postgresUrl }),
  await start('dynamodb', { anti_slashing: { backend: 'dynamodb', table: 'soak' } }, aws),
];
const statuses = new Map<string, number>();

function post(one: Soaked, path: string, body: object, token = TEST_TOKEN): Promise<void> {
  const text = JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  };
  const started = performance.now();
  return new Promise((resolve) => {
    const note = (status: string): void => {
      const name = `${one.backend} ${status}`;
      statuses.set(name, (statuses.get(name) ?? 0) + 1);
      resolve();
    };
    request(`${one.signer.url}${path}`, { method: 'POST', agent: one.agent, headers }, (answer) => {
      answer.resume().once('close', () => {
        one.latencies.push(performance.now() - started);
        note(String(answer.statusCode));
      });
    })
      .once('error', () => note('error'))
      .end(text);
  });
}

/** What a validator client and its neighbours ask for in a slot, compressed into a second. */
async function burst(one: Soaked, epoch: number): Promise<void> {
  const sign = '/api/v1/eth2/sign';
  const vote = attestation({ source: epoch - 1, target: epoch });
  await Promise.all([
    ...one.keys.slice(0, 24).map((key) => post(one, `${sign}/${key}`, vote)),
    post(one, sign, { identifiers: one.keys.slice(24), signing_request: vote }),
    post(one, `${sign}/${one.keys[epoch % KEYS]}`, block({ slot: 32 * epoch })),
    post(one, `${sign}/${one.keys[epoch % KEYS]}`, randaoReveal(epoch)),
    // Slashable, unknown, and without a right.
    post(
      one,
      `${sign}/${one.keys[0]}`,
      attestation({ source: epoch - 1, target: epoch, head: `0x${'ab'.repeat(32)}` }),
    ),
    post(one, `${sign}/0x${'ab'.repeat(48)}`, vote),
    post(one, `${sign}/${one.keys[0]}`, vote, `sr_client_TEST_WRONG_TOKEN_of_the_soak_${epoch}`),
  ]);
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length * share)] ?? Number.NaN;
}

async function sample(one: Soaked): Promise<void> {
  const { samples, signer, latencies } = one;
  one.latencies = [];
  const metrics = await (await fetch(signer.metricsUrl)).text();
  const lag = /^svc_[a-z_]*event_?loop[a-z_]*(?:\{[^}]*(?:p99|0\.99)[^}]*\})? ([0-9.e-]+)/m.exec(metrics)?.[1];
  samples['memory (MB)'].push(residentBytes(signer) / 1e6);
  samples.descriptors.push(readdirSync(`/proc/${signer.pid}/fd`).length);
  samples['event loop p99 (ms)'].push(Number(lag ?? Number.NaN) * 1000);
  samples['latency p50 (ms)'].push(quantile(latencies, 0.5));
  samples['latency p99 (ms)'].push(quantile(latencies, 0.99));
}

async function collect({ signer, folder, alive }: Soaked): Promise<void> {
  const file = collected(folder);
  process.kill(signer.pid, 'SIGUSR2');
  const late = performance.now() + COLLECTION_WAIT_MS;
  while (!existsSync(file)) {
    if (performance.now() > late) throw new Error('a signer did not collect its garbage');
    await pause(100);
  }
  alive.push({ heap: Number(readFileSync(file, 'utf8')) / 1e6, resident: residentBytes(signer) / 1e6 });
  rmSync(file);
}

/** Least squares over the last two thirds: growth in them, and their mean. */
function growthOf(values: readonly number[]): { readonly growth: number; readonly mean: number } {
  const judged = values.slice(Math.floor(values.length / 3)).filter(Number.isFinite);
  const mean = judged.reduce((sum, value) => sum + value, 0) / judged.length;
  const middle = (judged.length - 1) / 2;
  let [above, below] = [0, 0];
  for (const [index, value] of judged.entries()) {
    above += (index - middle) * (value - mean);
    below += (index - middle) ** 2;
  }
  return { growth: (above / below) * (judged.length - 1), mean };
}

const end = performance.now() + MINUTES * 60_000;
const started = performance.now();
let nextSample = started + SAMPLE_MS;
let isCollected = false;
for (let epoch = 2; performance.now() < end; epoch++) {
  const begun = performance.now();
  await Promise.all(all.map((one) => burst(one, epoch)));
  if (performance.now() >= nextSample) {
    nextSample += SAMPLE_MS;
    for (const one of all) await sample(one);
  }
  if (!isCollected && performance.now() >= started + FIRST_COLLECTION * (end - started)) {
    isCollected = true;
    for (const one of all) await collect(one);
  }
  await pause(Math.max(0, BURST_MS - (performance.now() - begun)));
}
for (const one of all) await collect(one);
const minutes = (performance.now() - started) / 60_000;
for (const { signer, agent } of all) {
  agent.destroy();
  await signer.stop();
}
await Promise.all([postgres.close(), dynamodb.close()]);

const charts: Chart[] = MEASURES.map((title) => ({
  title,
  lines: all.map(({ backend, samples }) => ({ name: backend, color: COLORS[backend], values: samples[title] })),
}));
const file = join(import.meta.dirname, '../../build/soak.svg');
mkdirSync(join(import.meta.dirname, '../../build'), { recursive: true });
writeFileSync(file, chartOf(charts, minutes));

let rising = 0;
process.stdout.write(
  `${minutes.toFixed(1)} minutes; ${[...statuses].map(([name, count]) => `${name}: ${count}`).join(', ')}\n`,
);
process.stdout.write('| Measure | backend | mean | growth | verdict |\n|---|---|---|---|---|\n');
for (const measure of MEASURES) {
  for (const { backend, samples } of all) {
    const { growth, mean } = growthOf(samples[measure]);
    const floor = measure === 'memory (MB)' ? floorOf(samples[measure], minutes) : undefined;
    const verdict = floor?.verdict ?? (growth > FLAT_SHARE * mean ? 'RISES' : 'flat');
    if (verdict !== 'flat') rising += 1;
    const share = `${((100 * growth) / mean).toFixed(1)} %`;
    const text = floor === undefined ? share : `floor ${floor.perHour.toFixed(1)} ± ${floor.error.toFixed(1)} an hour`;
    process.stdout.write(`| ${measure} | ${backend} | ${mean.toFixed(1)} | ${text} | ${verdict} |\n`);
  }
}
const numbers = (values: readonly number[]): string => values.map((value) => value.toFixed(1)).join(', ');
for (const { backend, alive } of all) {
  const [heaps, resident] = [alive.map(({ heap }) => heap), alive.map((one) => one.resident)];
  const verdict = aliveVerdict(heaps, minutes);
  if (verdict !== 'flat') rising += 1;
  process.stdout.write(
    `| alive after a collection (MB) | ${backend} | ${numbers(heaps)} | ${numbers(resident)} resident | ${verdict} |\n`,
  );
}
process.stdout.write(`${rising === 0 ? 'flat' : `${rising} curves are not flat`}; chart: ${file}\n`);
process.exit(rising === 0 ? 0 : 1);
