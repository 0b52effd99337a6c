// The epochs of forks: what a table or a file knows, and what the configuration adds. What contradicts is refused.

import { FORK_NAMES, type ForkName } from '../api/forks.ts';
import type { Fork } from './networks.ts';

type ForkEpochs = { readonly [Name in Exclude<ForkName, 'phase0'>]?: number | undefined };

interface ScheduleProblem {
  readonly fork: ForkName;
  /** Completes "the epoch of FORK …". */
  readonly problem: string;
  readonly remedy: string;
}

type ExtendedSchedule = { readonly forks: readonly Fork[] } | { readonly problems: readonly ScheduleProblem[] };

export function extendSchedule(forks: readonly Fork[], added: ForkEpochs): ExtendedSchedule {
  const problems: ScheduleProblem[] = [];
  const known = new Map(forks.map((fork) => [fork.name, fork]));
  for (const name of FORK_NAMES) {
    const epoch = name === 'phase0' ? undefined : added[name];
    const fork = known.get(name);
    if (epoch === undefined) continue;
    if (fork === undefined) problems.push({ fork: name, ...NO_VERSION });
    else if (fork.epoch !== null && fork.epoch !== epoch) problems.push({ fork: name, ...contradiction(fork.epoch) });
    else known.set(name, { ...fork, epoch });
  }
  const extended = [...known.values()];
  const wrong = problems.length > 0 ? problems : orderProblems(extended);
  return wrong.length > 0 ? { problems: wrong } : { forks: extended };
}

export function orderProblems(forks: readonly Fork[]): readonly ScheduleProblem[] {
  let latest: Fork | undefined;
  return forks.flatMap((fork) => {
    if (fork.epoch === null) return [];
    const before = latest;
    if (before?.epoch != null && fork.epoch < before.epoch) {
      const problem = `is ${fork.epoch}, before ${before.name} begins (${before.epoch})`;
      return [{ fork: fork.name, problem, remedy: 'correct it: forks begin in their order' }];
    }
    latest = fork;
    return [];
  });
}

const NO_VERSION = {
  problem: 'is given, and the version of this fork is not known',
  remedy: 'give the version in custom_network.fork_versions, or remove the epoch',
};

function contradiction(known: number) {
  return {
    problem: `contradicts the known one, ${known}: with it the signer would sign what nobody accepts`,
    remedy: 'remove it, or correct it',
  };
}
