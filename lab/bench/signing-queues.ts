// Scenarios of `make bench` in which requests wait: proposals beside batches, ten thousand at once, a queue that is
// full, operations with priority.

import { block, randaoReveal } from '../../test/support/requests.ts';
import { median, row } from './bars.ts';
import { type Load, LoadGenerator, peakResidentBytes, residentBytes, startMeasured, Votes } from './measured-signer.ts';
import { bars, core, generator, KEYS, measure, rounds, say, sayMedian, testKeys } from './signing-figures.ts';

/** Proposals at a steady rate, beside ten batches that are always under way. */
export async function blockBesideBatches(): Promise<void> {
  const [batches, size] = [10, 2048];
  const keys = testKeys(batches * size + 300);
  const votes = new Votes(keys.slice(0, batches * size));
  const signer = await startMeasured(keys, core, { signing: { queue_buffer_size: batches * size } });
  const beside = await LoadGenerator.start();
  const proposers = keys.slice(batches * size);
  let slot = 32;
  const blocks = (): Load => {
    slot += 1;
    const requests = proposers.map(({ publicKey }) => ({ publicKey, body: JSON.stringify(block({ slot })) }));
    return { requests, connections: 8, ratePerSecond: 100 };
  };
  const load = (): Load => ({
    requests: Array.from({ length: 2 }, () => votes.batches(batches * size, size)).flat(),
    connections: batches,
  });
  await Promise.all([generator.run(signer, load()), beside.run(signer, blocks())]); // warm
  const results = [];
  for (let round = 0; round < rounds; round++) {
    results.push(await Promise.all([generator.run(signer, load()), beside.run(signer, blocks())]));
  }
  beside.stop();
  for (const { statuses } of results.flat()) {
    if (Object.keys(statuses).some((status) => status !== '200')) throw new Error(JSON.stringify(statuses));
  }
  say(`block proposals, 100 a second, beside ${batches} batches of ${size} keys`);
  say(row('batches: p50, ms', median(results.map(([{ p50 }]) => p50))));
  say(row('blocks: p50, ms', median(results.map(([, { p50 }]) => p50))));
  say(row('blocks: p99', median(results.map(([, { p99 }]) => p99)), bars.blockBesideBatchesP99));
  await signer.stop();
}

export async function tenThousandAtOnce(): Promise<void> {
  const count = 10_000;
  const keys = testKeys(count);
  const votes = new Votes(keys);
  const signer = await startMeasured(keys, core, { signing: { queue_buffer_size: count } });
  for (let round = 0; round < 3; round++) await generator.run(signer, { requests: votes.oneRoot() });
  const figures = await measure(signer, () => ({ requests: votes.oneRoot(), connections: count }), Math.min(rounds, 3));
  say('10,000 at once, each on a connection of its own, one root');
  sayMedian('time × R2 / 10,000', figures, (figure) => figure.timeTimesR2, bars.tenThousand);
  sayMedian('slowest answer, ms', figures, ({ result }) => result.slowest['200'] ?? Number.NaN);
  await signer.stop();
}

/** Few permits and a short queue, so that the surplus meets a full one whatever the machine's speed. */
export async function fullQueue(): Promise<void> {
  const count = 6000;
  const keys = testKeys(count);
  const votes = new Votes(keys);
  const signing = { max_concurrent_jobs: 200, queue_buffer_size: 400 };
  const signer = await startMeasured(keys, core, { signing });
  for (let round = 0; round < 3; round++) await generator.run(signer, { requests: votes.oneRoot() });
  const before = residentBytes(signer);
  const result = await generator.run(signer, { requests: votes.oneRoot(), connections: count });
  const { '200': signed = 0, '503': refused = 0, ...lost } = result.statuses;
  say(
    `6,000 connections at once over ${signing.max_concurrent_jobs} permits and a queue of ${signing.queue_buffer_size}`,
  );
  say(row('signed', signed));
  say(row('refused with 503', refused));
  say(
    row(
      'neither (has to be 0)',
      Object.values(lost).reduce((sum, each) => sum + each, 0),
    ),
  );
  say(row('slowest 503, ms', result.slowest['503'] ?? 0));
  say(row('slowest signature, ms', result.slowest['200'] ?? 0));
  say(row('resident memory before, MB', before / 1e6));
  say(row('and at its peak, MB', peakResidentBytes(signer) / 1e6));
  await signer.stop();
}

/**
 * RANDAO reveals at a steady rate, beside attestations as fast as they are answered on more connections than there are
 * permits.
 */
export async function priorityOperations(): Promise<void> {
  const keys = testKeys(KEYS);
  const votes = new Votes(keys);
  const signing = {
    max_concurrent_jobs: 200,
    priority: { enabled: true, max_concurrent_jobs: 50, operations: ['RANDAO_REVEAL'] },
  };
  const signer = await startMeasured(keys, core, { signing });
  for (let round = 0; round < 4; round++) await generator.run(signer, { requests: votes.slotBursts() });
  const reveal = JSON.stringify(randaoReveal());
  const reveals = keys.slice(0, 100).map(({ publicKey }) => ({ publicKey, body: reveal }));
  const steady = await LoadGenerator.start();
  const [normal, priority] = await Promise.all([
    generator.run(signer, { requests: votes.distinct(), connections: 512 }),
    steady.run(signer, { requests: reveals, connections: 8, ratePerSecond: 100 }),
  ]);
  steady.stop();
  say('priority operations under 512 connections of others');
  say(row('others: p50, ms', normal.p50));
  say(row('priority: p50, ms', priority.p50));
  say(row('priority: p99, ms', priority.p99));
  await signer.stop();
}
