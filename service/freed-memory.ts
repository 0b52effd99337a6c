// Gives back to the system what was freed: loads, bursts and V8's compilers leave tens of megabytes behind that the C
// library would keep. Giving much back takes milliseconds, so it waits for a moment in which the signer signs nothing.
// Not of an enclave, whose parent could not use the memory. Alone, because main.ts only wires.

import type { BlsCore } from '../signer/bls/bls.ts';
import { loadAddon } from '../signer/native/load.ts';

const TURN_MS = 1000;
const [AFTER_TURNS, AT_LATEST_TURNS] = [10, 60];

/** For as long as the process runs. @throws TypeError when the addon was built from other sources than these */
export function returnFreedMemory(core: Pick<BlsCore, 'kind' | 'load'>): void {
  const addon = core.kind === 'native' ? loadAddon() : undefined;
  if (addon === undefined) return;
  addon.returnFreedMemory();
  const isBusy = (): boolean => core.load().running > 0;
  setInterval(betweenVotes(isBusy, addon.returnFreedMemory), TURN_MS).unref();
}

export function betweenVotes(isBusy: () => boolean, giveBack: () => void): () => void {
  let turns = 0;
  return () => {
    turns += 1;
    if (turns < AFTER_TURNS || (turns < AT_LATEST_TURNS && isBusy())) return;
    turns = 0;
    giveBack();
  };
}
