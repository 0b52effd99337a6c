// Questions about a network's forks: which of them a fork version names, and which of them can be in force at an epoch.
// Pure, from the network's table alone. Where the table does not say (an epoch that is not announced, a version that it
// does not have) the answer says so, and never guesses.

import type { Fork, Network } from './networks.ts';

export type ForkSchedule = Pick<Network, 'forks' | 'unknownFork'>;

/** Undefined: the network's table does not have this version, or has it for more than one fork. */
export function forkOfVersion({ forks }: ForkSchedule, version: Uint8Array): Fork | undefined {
  const named = forks.filter((fork) => Buffer.compare(fork.version, version) === 0);
  return named.length === 1 ? named[0] : undefined;
}

/**
 * The forks that can be in force at an epoch, in their order: one where the schedule is known, more where a fork's
 * epoch is not announced. None from the first epoch of a fork that we do not know.
 */
export function possibleForksAt({ forks, unknownFork }: ForkSchedule, epoch: number): readonly Fork[] {
  if (unknownFork !== undefined && epoch >= unknownFork.epoch) return [];
  const latest = forks.findLastIndex(({ epoch: first }) => first !== null && first <= epoch);
  const onwards = forks.slice(Math.max(0, latest));
  const end = onwards.findIndex(({ epoch: first }) => first !== null && first > epoch);
  return end === -1 ? onwards : onwards.slice(0, end);
}

/** The version names a fork that is not in force at that epoch. */
export interface Contradiction {
  readonly kind: 'contradicts';
  readonly fork: Fork;
  /** Those that can be; the name of one that we do not know is as the network's file has it. */
  readonly possible: readonly { readonly name: string }[];
}

export type ScheduleVerdict =
  /** The version names this fork, and the schedule has nothing against it at that epoch. */
  { readonly kind: 'agrees'; readonly fork: Fork } | Contradiction | { readonly kind: 'unknown_version' };

/** What the schedule says of a message of this epoch that is to be signed with this version. */
export function judgeForkVersion(schedule: ForkSchedule, version: Uint8Array, epoch: number): ScheduleVerdict {
  const fork = forkOfVersion(schedule, version);
  if (fork === undefined) return { kind: 'unknown_version' };
  const possible = possibleForksAt(schedule, epoch);
  if (possible.includes(fork)) return { kind: 'agrees', fork };
  const { unknownFork } = schedule;
  return { kind: 'contradicts', fork, possible: possible.length === 0 && unknownFork ? [unknownFork] : possible };
}
