// A suite and the guests it boots, one after another.

import type { GuestEnd, GuestOptions } from './boot-guest.ts';
import type { GuestPackages } from './packages.ts';

export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

export interface GuestSuite {
  readonly name: string;
  /**
   * @param folder build/guest, for what is worth keeping
   * @param tell says what is made now, where that takes long
   */
  prepare(packages: GuestPackages, folder: string, tell?: (line: string) => void): Promise<readonly GuestBoot[]>;
}

/** A suite whose checks run on this side, beside a machine of its own. */
export interface OutsideSuite {
  readonly name: string;
  /**
   * @param folder build/guest
   * @param show prints a result
   * @throws GuestUnavailable when this machine cannot run it: that counts as one skipped
   */
  run(folder: string, show: (line: string) => void): Promise<Tally>;
}

/** Everything but the kernel and the console. */
export interface GuestBoot extends Omit<GuestOptions, 'kernel' | 'console' | 'onLine'> {
  /** Where a suite has several. */
  readonly name?: string;
  /** Results that are found from outside, in what the guest has said, when it has ended. */
  readonly outside?: readonly OutsideCheck[];
  /** No program in it says GUEST_DONE: all its results are found from outside. */
  readonly withoutProgram?: true;
}

export interface OutsideCheck {
  readonly name: string;
  /** Throws when it is not so, and NotApplicable when this guest cannot show it. @param lines the console's */
  check(lines: readonly string[], end: GuestEnd): void;
}

/** The check says nothing about this guest: it counts as skipped, with the reason. */
export class NotApplicable extends Error {}
