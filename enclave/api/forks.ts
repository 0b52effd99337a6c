// The forks of the consensus layer that the signer knows containers of, in their order, and how a request states one
// (`version`). A request may state a fork; which one its signature is for follows from its fork version
// (signing/message-fork.ts).

import { z } from 'zod';
import { refuse, upperCaseWord } from './primitives.ts';

export const FORK_NAMES = ['phase0', 'altair', 'bellatrix', 'capella', 'deneb', 'electra', 'fulu', 'gloas'] as const;

export type ForkName = (typeof FORK_NAMES)[number];

/** The fork that a message says it is of, in any case. A fork that we do not know is `unsupported_fork`. */
export function statedFork(...known: readonly ForkName[]) {
  const names = known.map((fork) => fork.toUpperCase());
  return z
    .unknown()
    .transform((value, context): ForkName => {
      if (value === undefined) return refuse(context, value, 'is missing');
      const name = upperCaseWord(value);
      if (name === undefined) return refuse(context, value, 'expected the name of a fork');
      const fork = known[names.indexOf(name)];
      return fork ?? refuse(context, value, 'no fork known here', 'unsupported_fork');
    })
    .meta({ type: 'string', description: `${names.join(', ')}, in any case`, examples: [names.at(-1)] });
}

export const anyStatedFork = statedFork(...FORK_NAMES);
