// The forks that the signer knows containers of, in their order. A name that is not here is kept as text: a signer that
// was not upgraded still signs what a later fork leaves as it is.

import { z } from 'zod';
import { refuseValue, upperCaseWord } from './primitives.ts';

export const FORK_NAMES = ['phase0', 'altair', 'bellatrix', 'capella', 'deneb', 'electra', 'fulu', 'gloas'] as const;

export type ForkName = (typeof FORK_NAMES)[number];

export type StatedFork = string;

export function isForkName(name: string): name is ForkName {
  return (FORK_NAMES as readonly string[]).includes(name);
}

export function isSince(first: ForkName, fork: ForkName): boolean {
  return FORK_NAMES.indexOf(fork) >= FORK_NAMES.indexOf(first);
}

/** Another fork is `unsupported_fork`. */
export function statedFork(...known: readonly ForkName[]) {
  const names = known.map((fork) => fork.toUpperCase());
  return z
    .unknown()
    .transform((value, context): ForkName => {
      if (value === undefined) return refuseValue(context, value, 'is missing');
      const name = upperCaseWord(value);
      if (name === undefined) return refuseValue(context, value, 'expected the name of a fork');
      const fork = known[names.indexOf(name)];
      return fork ?? refuseValue(context, value, 'no fork known here', 'unsupported_fork');
    })
    .meta({ type: 'string', description: `${names.join(', ')}, in any case`, examples: [names.at(-1)] });
}

/** The fork version of an earlier or a later fork, a version that is none of the network's, or only the name. */
export const CLIENT_FAULTS = ['earlier_fork', 'later_fork', 'unknown_fork', 'stated_version'] as const;

export type ClientFault = (typeof CLIENT_FAULTS)[number];

export const anyStatedFork = z
  .unknown()
  .transform((value, context): StatedFork => {
    if (value === undefined) return refuseValue(context, value, 'is missing');
    return upperCaseWord(value)?.toLowerCase() ?? refuseValue(context, value, 'expected the name of a fork');
  })
  .meta({
    type: 'string',
    pattern: '^[A-Za-z0-9_]{1,64}$',
    description: `${FORK_NAMES.map((fork) => fork.toUpperCase()).join(', ')}, or the name of a later fork; in any case`,
    examples: [FORK_NAMES.at(-1)?.toUpperCase()],
  });
