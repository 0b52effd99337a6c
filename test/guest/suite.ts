// One guest and what it tests.

import type { GuestOptions } from './boot-guest.ts';
import type { GuestPackages } from './packages.ts';

export interface GuestSuite {
  readonly name: string;
  /** Everything but the kernel and the console. @param folder build/guest, for what is worth keeping */
  prepare(packages: GuestPackages, folder: string): Promise<Omit<GuestOptions, 'kernel' | 'console' | 'onLine'>>;
}
