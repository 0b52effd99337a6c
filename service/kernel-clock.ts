// The kernel's word on the clock of this machine, through the native addon: whether a time service sets it right. A
// clock that is not synchronised can contradict, when this process was given another time, and confirms nothing.
// Without the addon, on other systems, and where the call is refused, it says nothing.

import type { Witness } from '../common/observe/clock.ts';
import { loadAddon } from '../signer/native/load.ts';

export const kernelClock: Witness = {
  name: 'the kernel of this machine',
  async ask() {
    const said = loadAddon()?.kernelClock();
    return said && { time: said.milliseconds, confirms: said.isSynchronised };
  },
};
