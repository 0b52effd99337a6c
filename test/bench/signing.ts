// `make bench`: the whole path over HTTP (token, rules, durable SQLite, root, signature) beside raw BLS signing, in one run.
// The machine is shared: raw signing is measured before and after each figure and ratios are medians of the rounds.
// S: CPU of one raw signature. R2: raw signatures a second on both cores. The load generator runs on the same cores.
//
// Usage: bench [--rounds N] [--core native|portable] [--only NAME]

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeCertificate } from '../support/certificates.ts';
import { type Deployment, deployKeyFiles } from '../support/deployment.ts';
import { attestation, rootOf, TEST_TOKEN, testKey } from '../support/requests.ts';
import type { RunningSigner } from '../support/signer.ts';
import type { LoadPlan, LoadResult } from './load-generator.ts';
import { measureRawSigning, type RawRate } from './raw-signing.ts';

/** One committee-sized share of a slot's attesters that one signer holds. */
const GROUP = 312;
const KEYS = GROUP * 16;
const RAW_SECONDS = 2;
/** Linux counts process time in hundredths of a second. */
const CLOCK_TICKS = 100;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    core: { type: 'string', default: 'native' },
    only: { type: 'string' },
  },
});

interface Figure {
  readonly cpuPerS: number;
  readonly throughputPerR2: number;
  readonly p50: number;
  readonly p99: number;
  readonly fsyncsPerSignature: number;
}

const keys = Array.from({ length: KEYS }, (_, index) => testKey(index));
let epoch = 1;

const SCENARIOS: Readonly<Record<string, (signer: RunningSigner) => Promise<Figure>>> = {
  'distinct roots, 64 connections': (signer) => underLoad(signer, { requests: distinctRoots(KEYS) }),
  [`slot burst, groups of ${GROUP} with one root`]: (signer) => underLoad(signer, { requests: slotBursts(KEYS) }),
  'slot burst over TLS': (signer) => underLoad(signer, { requests: slotBursts(KEYS), tls: true }),
  'half load': async (signer) => {
    const full = await generate(signer, { requests: distinctRoots(KEYS) });
    const ratePerSecond = KEYS / full.seconds / 2;
    return underLoad(signer, { requests: distinctRoots(Math.min(KEYS, Math.ceil(ratePerSecond * 3))), ratePerSecond });
  },
  'lone request': (signer) => underLoad(signer, { requests: distinctRoots(300), connections: 1 }),
};

await main();

async function main(): Promise<void> {
  const empty = await start(deployKeyFiles(keys.slice(0, 1)));
  const emptyBytes = residentBytes(empty);
  await empty.stop();
  const signer = await start(deployKeyFiles(keys));
  const bytesPerKey = (residentBytes(signer) - emptyBytes) / KEYS;
  process.stdout.write(`core: ${values.core}, keys: ${KEYS}, rounds: ${values.rounds}\n`);
  process.stdout.write(`resident memory per loaded key: ${(bytesPerKey / 1000).toFixed(2)} KB\n\n`);
  await generate(signer, { requests: distinctRoots(KEYS) }); // warm
  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    if (values.only !== undefined && !name.includes(values.only)) continue;
    const figures: Figure[] = [];
    for (let round = 0; round < Number(values.rounds); round += 1) figures.push(await scenario(signer));
    print(name, figures);
  }
  await signer.stop();
}

async function start(deployment: Deployment): Promise<RunningSigner> {
  const { cert, key } = makeCertificate(deployment.folder, 'bench');
  const tls = { mode: 'file', listen_address: '127.0.0.1', listen_port: 0, file: { cert_path: cert, key_path: key } };
  return deployment.start({ config: { tls }, blsCore: values.core === 'portable' ? 'portable' : 'native' });
}

/** One measurement between two of raw signing. */
async function underLoad(signer: RunningSigner, load: Pick<LoadPlan, 'requests'> & Partial<LoadPlan>): Promise<Figure> {
  const before = await measureRawSigning(RAW_SECONDS);
  const cpuBefore = cpuSeconds(signer.pid);
  const syncsBefore = await batches(signer);
  const result = await generate(signer, load);
  const cpu = cpuSeconds(signer.pid) - cpuBefore;
  const syncs = (await batches(signer)) - syncsBefore;
  const raw = mean(before, await measureRawSigning(RAW_SECONDS));
  const signed = result.statuses['200'] ?? 0;
  if (signed !== load.requests.length) throw new Error(`not everything was signed: ${JSON.stringify(result.statuses)}`);
  return {
    cpuPerS: cpu / signed / raw.s,
    throughputPerR2: signed / result.seconds / raw.r2,
    p50: result.p50,
    p99: result.p99,
    fsyncsPerSignature: syncs / signed,
  };
}

async function generate(
  signer: RunningSigner,
  load: Pick<LoadPlan, 'requests'> & Partial<LoadPlan>,
): Promise<LoadResult> {
  const generator: ChildProcess = fork(join(import.meta.dirname, 'load-generator.ts'));
  await once(generator, 'message');
  const port = Number(new URL((load.tls === true ? signer.tlsUrl : signer.url) ?? '').port);
  generator.send({ tls: false, connections: 64, token: TEST_TOKEN, ...load, port } satisfies LoadPlan);
  const [result] = (await once(generator, 'message')) as [LoadResult];
  generator.kill();
  return result;
}

/** A vote of every key for the next epoch, each with a head of its own. */
function distinctRoots(count: number): LoadPlan['requests'] {
  epoch += 1;
  return keys.slice(0, count).map(({ publicKey }, index) => {
    const head = Buffer.alloc(32);
    head.writeUInt32LE(index);
    return { publicKey, body: vote(`0x${head.toString('hex')}`, epoch) };
  });
}

/** A vote of every key for the next epoch; groups of keys share their head. */
function slotBursts(count: number): LoadPlan['requests'] {
  epoch += 1;
  return keys.slice(0, count).map(({ publicKey }, index) => ({
    publicKey,
    body: vote(rootOf(Math.floor(index / GROUP)), epoch),
  }));
}

function vote(head: string, target: number): string {
  return JSON.stringify(attestation({ head, source: target - 1, target }));
}

/** User and system time of the process, all threads. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS;
}

/** Commits of the slashing database so far: one fsync each. */
async function batches(signer: RunningSigner): Promise<number> {
  const text = await (await fetch(signer.metricsUrl)).text();
  return Number(/^svc_slashing_batch_messages_count (\d+)/m.exec(text)?.[1] ?? 0);
}

function residentBytes(signer: RunningSigner): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${signer.pid}/status`, 'utf8'))?.[1]) * 1024;
}

function mean(one: RawRate, other: RawRate): RawRate {
  return { s: (one.s + other.s) / 2, r2: (one.r2 + other.r2) / 2 };
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

function print(name: string, figures: readonly Figure[]): void {
  const of = (pick: (figure: Figure) => number, digits = 2): string => median(figures.map(pick)).toFixed(digits);
  process.stdout.write(
    `${name}\n  CPU / S ${of((f) => f.cpuPerS)}   throughput / R2 ${of((f) => f.throughputPerR2)}` +
      `   p50 ${of((f) => f.p50, 1)} ms   p99 ${of((f) => f.p99, 1)} ms   fsyncs per signature ${of((f) => f.fsyncsPerSignature, 3)}\n`,
  );
}
