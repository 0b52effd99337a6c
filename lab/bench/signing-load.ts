// Scenarios of `make bench`: one request a signature, and one for many keys.

import { GROUP, type Load, startMeasured, Votes } from './measured-signer.ts';
import {
  bars,
  core,
  generator,
  KEYS,
  measure,
  medianOf,
  rounds,
  say,
  sayMedian,
  testKeys,
  values,
} from './signing-figures.ts';

export async function signingUnderLoad(): Promise<void> {
  const keys = testKeys(KEYS);
  const votes = new Votes(keys);
  const signer = await startMeasured(keys, core);
  for (let round = 0; round < Number(values['warm-up']); round++)
    await generator.run(signer, { requests: votes.slotBursts() });

  const burst = await measure(signer, () => ({ requests: votes.slotBursts() }));
  say(`slot burst, groups of ${GROUP} with one root, 64 connections`);
  sayMedian('CPU / S', burst, (figure) => figure.cpuPerS, bars.burstCpu);
  sayMedian('throughput / R2', burst, (figure) => figure.ratePerR2, bars.burstRate);
  sayMedian('load generator: CPU / S', burst, (figure) => figure.generatorCpuPerS);
  sayMedian('fsyncs per signature', burst, (figure) => figure.fsyncs, bars.fsyncs);

  const distinct = await measure(signer, () => ({ requests: votes.distinct() }));
  say('distinct roots, 64 connections');
  sayMedian('CPU / S', distinct, (figure) => figure.cpuPerS, bars.distinctCpu);
  sayMedian('throughput / R2', distinct, (figure) => figure.ratePerR2, bars.distinctRate);
  sayMedian('load generator: CPU / S', distinct, (figure) => figure.generatorCpuPerS);

  await generator.run(signer, { requests: votes.slotBursts(), tls: true }); // warm
  const tls = await measure(signer, () => ({ requests: votes.slotBursts(), tls: true }));
  say('slot burst over TLS');
  sayMedian('CPU / S', tls, (figure) => figure.cpuPerS, bars.tlsCpu);
  sayMedian('throughput / R2', tls, (figure) => figure.ratePerR2);

  const ratePerSecond = KEYS / medianOf(distinct, (figure) => figure.result.seconds) / 2;
  const half = await measure(signer, () => ({
    requests: votes.distinct(Math.min(KEYS, Math.ceil(ratePerSecond * 3))),
    ratePerSecond,
  }));
  say(`half load, distinct roots, ${ratePerSecond.toFixed(0)} a second`);
  sayMedian('p50', half, ({ result }) => result.p50);
  sayMedian('p99', half, ({ result }) => result.p99, bars.halfLoadP99);
  sayMedian('CPU / S', half, (figure) => figure.cpuPerS);

  const lone = await measure(signer, () => ({ requests: votes.distinct(300), connections: 1 }));
  say('lone request');
  sayMedian('p50', lone, ({ result }) => result.p50, bars.loneP50);
  sayMedian('p99', lone, ({ result }) => result.p99);
  await signer.stop();
}

export async function batchBurst(): Promise<void> {
  const keys = testKeys(KEYS);
  const votes = new Votes(keys);
  const signer = await startMeasured(keys, core);
  const load = (): Load => ({ requests: Array.from({ length: 3 }, () => votes.batches()).flat(), connections: 8 });
  for (let round = 0; round < Number(values['warm-up']); round++) await generator.run(signer, load());
  const figures = await measure(signer, load, rounds, GROUP);
  say(`batch burst, one request for ${GROUP} keys, 8 connections`);
  sayMedian('CPU / S', figures, (figure) => figure.cpuPerS, bars.batchCpu);
  sayMedian('throughput / R2', figures, (figure) => figure.ratePerR2, bars.batchRate);
  sayMedian('load generator: CPU / S', figures, (figure) => figure.generatorCpuPerS);
  sayMedian('fsyncs per signature', figures, (figure) => figure.fsyncs, bars.fsyncs);
  await signer.stop();
}

/**
 * Batches one after another on kept TLS connections. A request that is lost ends the run (`measure`): node:http lost
 * them here, and no other load sends bodies of several TLS records behind large answers (docs/decisions/0010).
 */
export async function batchesOverTls(): Promise<void> {
  const keys = testKeys(KEYS);
  const votes = new Votes(keys);
  const signer = await startMeasured(keys, core);
  const load = (): Load => ({
    requests: Array.from({ length: 3 }, () => votes.batches()).flat(),
    connections: 2,
    tls: true,
  });
  for (let round = 0; round < Number(values['warm-up']); round++) await generator.run(signer, load());
  const figures = await measure(signer, load, rounds, GROUP);
  say(`batches of ${GROUP} keys over TLS, 2 connections, none lost`);
  sayMedian('CPU / S', figures, (figure) => figure.cpuPerS);
  sayMedian('throughput / R2', figures, (figure) => figure.ratePerR2);
  await signer.stop();
}
