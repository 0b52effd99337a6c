// `make bench-peers`: strongroom over SQLite and over PostgreSQL, and Dirk, on one machine in one run: the same keys
// and messages, one client program in Go for all, which keeps and verifies every signature. The peers take turns in
// each round, so that what else the machine does meets all. Beside Dirk all speak mutual TLS. With --web3signer a
// Web3Signer that runs on this machine takes Dirk's place, and all speak plain HTTP. Without Go strongroom is measured
// alone (own-load.ts).
//
// Usage: lab/bench/peers/main.ts [--keys N] [--rounds N] [--parallel N] [--batch N] [--only NAME]
//   [--web3signer URL --web3signer-store PID]   PID: the first process of its database

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type TestKey, testKey } from '../../../test/support/requests.ts';
import { median } from '../bars.ts';
import { GROUP } from '../measured-signer.ts';
import { measureRawSigning } from '../raw-signing.ts';
import { releasedProgram } from '../released.ts';
import { makeCertificates } from './certificates.ts';
import { buildGo, goVersion, PeerClient, type PeerLoad, type PeerResult, PROGRAMS } from './client.ts';
import { measureOwnAlone } from './own-load.ts';
import { type Peer, runningWeb3Signer, startDirk, startStrongroom } from './peers.ts';
import { countSyncs, cpuSecondsOf, residentBytesOf } from './processes.ts';
import { type PeerFigure, type PeerRounds, tableOf } from './report.ts';

const { values } = parseArgs({
  options: {
    keys: { type: 'string', default: '1000' },
    /** Two runs of three rounds had spreads that did not meet: the machine changes more within minutes. */
    rounds: { type: 'string', default: '6' },
    /** V8 goes on optimizing for some 40,000 requests. */
    'warm-up': { type: 'string', default: '40' },
    parallel: { type: 'string', default: '64' },
    batch: { type: 'string', default: `${GROUP}` },
    only: { type: 'string' },
    web3signer: { type: 'string' },
    'web3signer-store': { type: 'string' },
  },
});
const [KEYS, ROUNDS, WARM_UP] = [Number(values.keys), Number(values.rounds), Number(values['warm-up'])];
const [PARALLEL, BATCH] = [Number(values.parallel), Number(values.batch)];
const LONE_REQUESTS = Math.min(300, KEYS);
const BLOCKS = 20;
/** Mainnet, in fulu. */
const FIRST_EPOCH = 411_400;
const RAW_SECONDS = 1.5;
/** In a round: Linux counts process time in hundredths of a second, and a load of 1,000 votes takes a tenth of one. */
const REPEATS = 4;

type Plan = Omit<PeerLoad, 'Epoch'>;
const BURST: Plan = { Do: 'burst', Parallel: PARALLEL, Keys: KEYS, Group: GROUP };
const LOADS: Readonly<Record<string, Plan>> = {
  [`slot burst, groups of ${GROUP} with one root, ${PARALLEL} at once`]: BURST,
  [`distinct roots, ${PARALLEL} at once`]: { Do: 'distinct', Parallel: PARALLEL, Keys: KEYS, Group: 1 },
  [`batches of ${BATCH} keys, 2 at once`]: { Do: 'batch', Parallel: 2, Keys: KEYS, Batch: BATCH },
  [`RANDAO reveals of different epochs, ${PARALLEL} at once`]: { Do: 'randao', Parallel: PARALLEL, Keys: KEYS },
  [`registrations, ${PARALLEL} at once`]: { Do: 'registration', Parallel: PARALLEL, Keys: KEYS },
  [`selection proofs of one slot, ${PARALLEL} at once`]: { Do: 'selection', Parallel: PARALLEL, Keys: KEYS },
  'lone request': { Do: 'lone', Parallel: 1, Keys: LONE_REQUESTS, Group: 1 },
  'block proposals, one after another, beside a slot burst': {
    ...{ Do: 'block', Parallel: PARALLEL, Keys: KEYS, Group: GROUP, Blocks: BLOCKS },
  },
};

/** A peer with its client, and the next epoch that its keys vote in. */
interface Measured {
  readonly peer: Peer;
  readonly client: PeerClient;
  epoch: number;
}

const keys = Array.from({ length: KEYS }, (_, index) => testKey(index));
const go = goVersion();
say(`${cpus()[0]?.model}, ${cpus().length} cores; Node ${process.version}; ${KEYS} keys, ${ROUNDS} rounds`);
if (go === undefined) {
  say('Go is not here: no Dirk is built, and strongroom is measured alone, by a client in Node');
  await measureOwnAlone(keys, { rounds: ROUNDS, parallel: PARALLEL, batch: BATCH, say });
} else {
  await comparePeers(keys, go);
}

async function comparePeers(all: readonly TestKey[], version: string): Promise<void> {
  say(
    `${version}; Dirk and its client library as lab/bench/peers/dirk/go.mod and lab/bench/peers/client/go.mod pin them`,
  );
  const strongroom = releasedProgram();
  const client = buildGo('client', '.');
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-peers-'));
  const certificates = makeCertificates(folder);
  const { web3signer: url, 'web3signer-store': store } = values;
  const other =
    url === undefined
      ? await startDirk({ dirk: buildGo('dirk', 'github.com/attestantio/dirk'), client }, all, certificates)
      : await runningWeb3Signer(url, all, store);
  const spoken = url === undefined ? certificates : undefined;
  const peers = [
    await startStrongroom(strongroom, all, 'sqlite', spoken),
    await startStrongroom(strongroom, all, 'postgres', spoken),
    other,
  ];
  const PublicKeys = all.map(({ publicKey }) => publicKey);
  const measured: Measured[] = [];
  for (const peer of peers) {
    const options = { ...peer.options, PublicKeys, Parallel: PARALLEL };
    measured.push({ peer, client: await PeerClient.open(client, certificates, options), epoch: FIRST_EPOCH });
  }
  try {
    for (const one of measured) {
      const { cpuMicroseconds, failed } = await measure(one, BURST, 1);
      say(`${one.peer.name}, the first burst: ${cpuMicroseconds.toFixed(0)} us of CPU a vote, ${failed} failed`);
    }
    const results: Record<string, PeerRounds[]> = {};
    for (const [load, plan] of Object.entries(LOADS)) {
      if (values.only !== undefined && !load.includes(values.only)) continue;
      // Batches are ours and Dirk's.
      if (plan.Do === 'batch' && url !== undefined) continue;
      const rounds = await measureLoad(measured, plan);
      results[load] = rounds;
      for (const line of tableOf(load, rounds)) say(line);
    }
    mkdirSync(PROGRAMS, { recursive: true });
    writeFileSync(
      join(PROGRAMS, 'figures.json'),
      JSON.stringify({ keys: KEYS, rounds: ROUNDS, results }, undefined, 2),
    );
  } finally {
    for (const { client } of measured) client.stop();
    for (const peer of peers) await peer.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureLoad(measured: readonly Measured[], plan: Plan): Promise<PeerRounds[]> {
  for (const one of measured) for (let load = 0; load < WARM_UP; load++) await run(one, plan);
  const figures = new Map<Measured, PeerFigure[]>(measured.map((one) => [one, []]));
  const raw = await measureRawSigning(RAW_SECONDS);
  for (let round = 0; round < ROUNDS; round++) {
    // Each begins a round as often as the others.
    const turn = measured.map((_, index) => measured[(index + round) % measured.length]);
    for (const one of turn) if (one !== undefined) figures.get(one)?.push(await measure(one, plan));
  }
  const after = await measureRawSigning(RAW_SECONDS);
  say(`raw signing beside it: ${raw.r2.toFixed(0)} and ${after.r2.toFixed(0)} a second on two threads`);
  const rounds: PeerRounds[] = [];
  for (const one of measured) {
    let syncedSignatures = 0;
    const syncs = await countSyncs(one.peer.pids(), async () => {
      syncedSignatures = (await run(one, plan)).Signed;
    });
    const { name, keeps } = one.peer;
    rounds.push({ name, keeps, figures: figures.get(one) ?? [], syncs, syncedSignatures });
  }
  return rounds;
}

async function measure(one: Measured, plan: Plan, repeats = REPEATS): Promise<PeerFigure> {
  const before = cpuSecondsOf(one.peer.pids());
  const results: PeerResult[] = [];
  let verified = 0;
  for (let repeat = 0; repeat < repeats; repeat++) {
    const result = await run(one, plan);
    const { Signed, Failure } = await one.client.verify();
    verified += Signed;
    results.push({ ...result, Failure: result.Failure || Failure });
  }
  const pids = one.peer.pids();
  const cpu = cpuSecondsOf(pids) - before;
  const sum = (of: 'Requests' | 'Failed' | 'Signed' | 'Seconds' | 'CPUSeconds') =>
    results.reduce((all, result) => all + result[of], 0);
  return {
    requests: sum('Requests'),
    failed: sum('Failed'),
    signed: sum('Signed'),
    verified,
    perSecond: sum('Signed') / sum('Seconds'),
    cpuMicroseconds: (cpu * 1e6) / sum('Signed'),
    clientMicroseconds: (sum('CPUSeconds') * 1e6) / sum('Signed'),
    p50: median(results.map(({ P50 }) => P50)),
    p99: median(results.map(({ P99 }) => P99)),
    p999: median(results.map(({ P999 }) => P999)),
    residentMegabytes: residentBytesOf(pids) / 1e6,
    failure: results.find(({ Failure }) => Failure !== '')?.Failure ?? '',
  };
}

function run(one: Measured, plan: Plan) {
  one.epoch += 1;
  return one.client.run({ ...plan, Epoch: one.epoch });
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
