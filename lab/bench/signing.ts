// `make bench`: the whole path over HTTP (token, rules, durable SQLite, root, signature) beside raw BLS signing, in one
// run. The machine is shared: raw signing is measured before and after each figure and ratios are medians of the
// rounds. S: CPU of one raw signature. R2: raw signatures a second on both cores. The load generator runs on the same
// cores.
//
// Usage: bench [--core native|portable] [--rounds N] [--warm-up N] [--keystores N] [--only NAME]

import { measureEnvelopes } from './envelopes.ts';
import { memoryPerKey } from './memory-per-key.ts';
import { core, generator, rounds, say, values } from './signing-figures.ts';
import { batchBurst, batchesOverTls, signingUnderLoad } from './signing-load.ts';
import { blockBesideBatches, fullQueue, priorityOperations, tenThousandAtOnce } from './signing-queues.ts';
import { measureTimeToReady } from './time-to-ready.ts';

const SCENARIOS: Readonly<Record<string, () => Promise<void>>> = {
  'signing under load': signingUnderLoad,
  'batch burst': batchBurst,
  'batches over TLS': batchesOverTls,
  'block beside batches': blockBesideBatches,
  'ten thousand at once': tenThousandAtOnce,
  'full queue': fullQueue,
  'priority operations': priorityOperations,
  'memory per key': memoryPerKey,
  envelopes: () => measureEnvelopes(generator, core, rounds, say),
  'time to ready': () => measureTimeToReady(core, { keystores: Number(values.keystores) }, say),
};

say(`${core} core, medians of ${rounds} rounds`);
for (const [name, scenario] of Object.entries(SCENARIOS)) {
  if (values.only === undefined || name.includes(values.only)) await scenario();
}
generator.stop();
