// What the BLS cores cost beside raw signing with @chainsafe/blst, measured in turns in one run: R2 is the rate of raw
// signing on all cores, S the CPU time of one raw signature. The machine may be shared, so only the ratios mean
// something; medians of the rounds. Run: bin/pinned-node lab/bench/bls.ts [rounds]

import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { SecretKey } from '@chainsafe/blst';
import type { BlsCore } from '../../signer/bls/bls.ts';
import { NativeBlsCore } from '../../signer/bls/native.ts';
import { PortableBlsCore } from '../../signer/bls/portable.ts';
import type { KeyHandle } from '../../signer/keys/vault.ts';
import { loadAddon } from '../../signer/native/load.ts';

const CORES = availableParallelism();
const KEYS = 624;
/** Keys that sign one root: docs/performance.md, "slot burst". */
const GROUP = 312;
const CONCURRENT = 256;
const SIGNATURES = KEYS * 5;

interface Cost {
  readonly perSecond: number;
  readonly cpuSeconds: number;
}

async function measure(count: number, work: () => Promise<void>): Promise<Cost> {
  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  await work();
  const seconds = (performance.now() - start) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  return { perSecond: count / seconds, cpuSeconds: (cpu.user + cpu.system) / 1e6 / count };
}

function signRaw(thread: Worker, count: number): Promise<void> {
  return new Promise((resolve) => {
    thread.once('message', () => resolve());
    thread.postMessage(count, []);
  });
}

/** Threads that sign with blst as fast as they can; each `run` signs `count` roots in all. */
function openRaw() {
  const code = `
    const { parentPort } = require('node:worker_threads');
    const { randomBytes } = require('node:crypto');
    const { SecretKey } = require('@chainsafe/blst');
    const secretKey = SecretKey.fromKeygen(randomBytes(32));
    parentPort.on('message', (count) => {
      const root = randomBytes(32);
      for (let done = 0; done < count; done++) { root.writeUInt32LE(done); secretKey.sign(root); }
      parentPort.postMessage('done');
    });`;
  const threads = Array.from({ length: CORES }, () => new Worker(code, { eval: true }));
  return {
    run: async (count: number) => {
      await Promise.all(threads.map((thread) => signRaw(thread, count / CORES)));
    },
    close: () => Promise.all(threads.map((thread) => thread.terminate())),
  };
}

/** Keep CONCURRENT jobs with the core until `roots` are signed, each by the next key in turn. */
async function saturate(core: BlsCore, handles: readonly KeyHandle[], roots: readonly Uint8Array[]): Promise<void> {
  let next = 0;
  const signer = async () => {
    for (let index = next++; index < roots.length; index = next++) {
      await core.sign(handles[index % handles.length] as KeyHandle, roots[index] as Uint8Array, 'normal');
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, signer));
}

function rootsInGroups(group: number): Uint8Array[] {
  return Array.from({ length: SIGNATURES / group }, () => randomBytes(32)).flatMap((root) =>
    Array<Uint8Array>(group).fill(root),
  );
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function openCores(): BlsCore[] {
  const log = { debug() {}, info() {}, warn: console.warn, error: console.error };
  const addon = loadAddon();
  if (addon === undefined) console.warn('the native core is not measured: the addon has not been built (make native)');
  return [...(addon === undefined ? [] : [new NativeBlsCore(addon)]), new PortableBlsCore({ log })];
}

async function loneLatencyMs(core: BlsCore, handle: KeyHandle): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 50; round++) {
    const start = performance.now();
    await core.sign(handle, randomBytes(32), 'normal');
    times.push(performance.now() - start);
  }
  return median(times);
}

const rounds = Number(process.argv[2] ?? 7);
const raw = openRaw();
const rows = openCores().flatMap((core) => {
  const handles = Array.from(
    { length: KEYS },
    () => core.addKey(SecretKey.fromKeygen(randomBytes(32)).toBytes()).handle,
  );
  return [
    { core, handles, name: `${core.kind}, distinct roots`, group: 1, throughput: [] as number[], cpu: [] as number[] },
    {
      core,
      handles,
      name: `${core.kind}, groups of ${GROUP}`,
      group: GROUP,
      throughput: [] as number[],
      cpu: [] as number[],
    },
  ];
});

await raw.run(CORES * 200);
const rawCosts: Cost[] = [];
for (let round = 0; round < rounds; round++) {
  for (const { core, handles, group, throughput, cpu } of rows) {
    const roots = rootsInGroups(group);
    const before = await measure(SIGNATURES, () => raw.run(SIGNATURES));
    const cost = await measure(SIGNATURES, () => saturate(core, handles, roots));
    rawCosts.push(before);
    throughput.push(cost.perSecond / before.perSecond);
    cpu.push(cost.cpuSeconds / before.cpuSeconds);
  }
}

const rate = median(rawCosts.map((cost) => cost.perSecond));
const cpuSeconds = median(rawCosts.map((cost) => cost.cpuSeconds));
console.log(
  `raw @chainsafe/blst on ${CORES} cores: R2 = ${rate.toFixed(0)}/s, S = ${(cpuSeconds * 1e6).toFixed(0)} µs`,
);
for (const { core, handles, name, group, throughput, cpu } of rows) {
  const lone = group === 1 ? `   lone ${(await loneLatencyMs(core, handles[0] as KeyHandle)).toFixed(2)} ms` : '';
  console.log(
    `${name.padEnd(28)} throughput / R2 ${median(throughput).toFixed(2)}   CPU / S ${median(cpu).toFixed(2)}${lone}`,
  );
}
await raw.close();
for (const core of new Set(rows.map((row) => row.core))) await core.close();
