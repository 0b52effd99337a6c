// Scenario of `make bench`: the resident memory that a key costs.

import type { TestKey } from '../../test/support/requests.ts';
import { row } from './bars.ts';
import { residentBytes, startMeasured } from './measured-signer.ts';
import { bars, core, say, testKeys } from './signing-figures.ts';

/** V8 gives its young generation back some 10 seconds after the load, 60 MB at once. */
const SETTLING_SECONDS = 20;
/** Options of Node for a signer that collects its garbage each second. */
const COLLECTING = '--expose-gc --import=data:text/javascript,setInterval(gc,1000).unref()';

/** The difference of two signers that have loaded their keys and collected their garbage. */
export async function memoryPerKey(): Promise<void> {
  const few = 1000;
  const many = 61_000;
  const keys = testKeys(many);
  const [small, large] = [await residentAfterLoading(keys.slice(0, few)), await residentAfterLoading(keys)];
  say(`resident memory of ${many} keys beside that of ${few}`);
  say(row('per key', (large - small) / (many - few), bars.bytesPerKey));
}

async function residentAfterLoading(keys: readonly TestKey[]): Promise<number> {
  const signer = await startMeasured(keys, core, {}, { nodeOptions: COLLECTING });
  let least = Number.POSITIVE_INFINITY;
  for (let second = 0; second < SETTLING_SECONDS; second++) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    least = Math.min(least, residentBytes(signer));
  }
  await signer.stop();
  return least;
}
