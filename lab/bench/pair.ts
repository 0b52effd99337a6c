// `make bench-pair OTHER=PROGRAM`: this checkout's signer beside another program (an earlier checkout's
// bin/strongroom, the launcher of a release) on one machine in one run: the same keys, votes and load generator. The
// two take turns, each begins as often as the other, and a ratio is of one round, so that what else the machine does
// meets both. Memory is what is resident at the end of a load. No ratio is printed when a request failed.
//
// Usage: lab/bench/pair.ts --other PROGRAM [--own PROGRAM] [--rounds N] [--keys N] [--only NAME]

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { deployKeyFiles } from '../../test/support/deployment.ts';
import { TEST_TOKEN, testKey } from '../../test/support/requests.ts';
import { median } from './bars.ts';
import type { LoadPlan } from './load-generator.ts';
import { cpuSeconds, GROUP, LoadGenerator, residentBytes, tlsIn, Votes } from './measured-signer.ts';

const { values } = parseArgs({
  options: {
    own: { type: 'string', default: new URL('../../bin/strongroom', import.meta.url).pathname },
    other: { type: 'string' },
    rounds: { type: 'string', default: '10' },
    keys: { type: 'string', default: '1000' },
    only: { type: 'string' },
  },
});
if (values.other === undefined || values.other === '')
  throw new Error(
    'OTHER= (--other): the program to measure beside this one, as the bin/strongroom of another checkout',
  );

const ROUNDS = Number(values.rounds);
if (!(ROUNDS > 0 && ROUNDS % 2 === 0))
  throw new Error('ROUNDS= (--rounds): an even number, so that both begin as often');

/** Linux counts process time in hundredths of a second: a load is repeated until these do not show. */
const REPEATS = 4;
/** V8 goes on optimizing for some 40,000 requests. */
const WARM_UP_LOADS = 40;
const LONE_REQUESTS = 300;
/** About half of what two cores sign with distinct roots. */
const HALF_LOAD_PER_SECOND = 1000;

interface Load {
  readonly requests: (votes: Votes) => LoadPlan['requests'];
  readonly plan: Partial<LoadPlan>;
  readonly signatures: number;
}

const keys = Array.from({ length: Number(values.keys) }, (_, index) => testKey(index));
const LOADS: Readonly<Record<string, Load>> = {
  'slot burst': { requests: (votes) => votes.slotBursts(), plan: {}, signatures: keys.length },
  'slot burst, TLS': { requests: (votes) => votes.slotBursts(), plan: { tls: true }, signatures: keys.length },
  'distinct roots': { requests: (votes) => votes.distinct(), plan: {}, signatures: keys.length },
  batches: {
    requests: (votes) => votes.batches(keys.length, GROUP),
    plan: { connections: 2 },
    signatures: keys.length,
  },
  'lone request': {
    requests: (votes) => votes.distinct(LONE_REQUESTS),
    plan: { connections: 1 },
    signatures: LONE_REQUESTS,
  },
  'half load': {
    requests: (votes) => votes.distinct(),
    plan: { ratePerSecond: HALF_LOAD_PER_SECOND },
    signatures: keys.length,
  },
};

const chosen = Object.entries(LOADS).filter(([name]) => name.includes(values.only ?? ''));
if (chosen.length === 0) throw new Error(`--only: a part of one of ${Object.keys(LOADS).join(', ')}`);

interface Side {
  readonly signer: RunningSigner;
  readonly votes: Votes;
}

interface Figure {
  readonly perSecond: number;
  readonly cpuMicroseconds: number;
  readonly p99Milliseconds: number;
  readonly residentMegabytes: number;
  readonly failed: number;
}

type Pair = readonly [own: Figure, other: Figure];

const generator = await LoadGenerator.start();
const own = await start(resolve(values.own));
const other = await start(resolve(values.other));
try {
  for (const [name, load] of chosen) {
    for (const side of [own, other]) for (let index = 0; index < WARM_UP_LOADS; index++) await run(side, load);
    const pairs: Pair[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const isOwnFirst = round % 2 === 0;
      const first = await measure(isOwnFirst ? own : other, load);
      const second = await measure(isOwnFirst ? other : own, load);
      pairs.push(isOwnFirst ? [first, second] : [second, first]);
    }
    report(name, pairs);
  }
} finally {
  generator.stop();
  await Promise.all([own.signer.stop(), other.signer.stop()]);
}

async function start(program: string): Promise<Side> {
  const deployment = deployKeyFiles(keys);
  const config = { tls: tlsIn(deployment.folder) };
  const signer = await deployment.start({ program: [program], config, keepsLog: false });
  return { signer, votes: new Votes(keys) };
}

async function run({ signer, votes }: Side, { requests, plan }: Load) {
  return await generator.run(signer, { token: TEST_TOKEN, ...plan, requests: requests(votes) });
}

async function measure(side: Side, load: Load): Promise<Figure> {
  const before = cpuSeconds(side.signer);
  const results = [];
  for (let repeat = 0; repeat < REPEATS; repeat++) results.push(await run(side, load));
  const signatures = REPEATS * load.signatures;
  const seconds = results.reduce((sum, result) => sum + result.seconds, 0);
  return {
    perSecond: signatures / seconds,
    cpuMicroseconds: ((cpuSeconds(side.signer) - before) * 1e6) / signatures,
    p99Milliseconds: median(results.map(({ p99 }) => p99)),
    residentMegabytes: residentBytes(side.signer) / 1e6,
    failed: results.reduce((sum, { statuses }) => sum + failedOf(statuses), 0),
  };
}

function failedOf(statuses: Readonly<Record<string, number>>): number {
  return Object.entries(statuses).reduce((sum, [status, count]) => sum + (status === '200' ? 0 : count), 0);
}

function report(name: string, pairs: readonly Pair[]): void {
  const failed = pairs.flat().reduce((sum, figure) => sum + figure.failed, 0);
  console.log(`${name}: ${pairs.length} rounds, ${failed} failed`);
  if (failed > 0) {
    process.exitCode = 1;
    return;
  }
  const row = (what: string, of: keyof Figure): void => {
    const ratios = pairs.map(([one, two]) => one[of] / two[of]).sort((one, two) => one - two);
    const [least, most] = [ratios[0] ?? Number.NaN, ratios.at(-1) ?? Number.NaN];
    const figure = (side: 0 | 1): string => median(pairs.map((pair) => pair[side][of])).toPrecision(4);
    const spread = `${least.toPrecision(3)} to ${most.toPrecision(3)}`;
    console.log(
      `  ${what.padEnd(16)} ${figure(0)} : ${figure(1)}, own : other ${median(ratios).toPrecision(3)} (${spread})`,
    );
  };
  row('signatures/s', 'perSecond');
  row('CPU, us', 'cpuMicroseconds');
  row('p99, ms', 'p99Milliseconds');
  row('memory, MB', 'residentMegabytes');
}
