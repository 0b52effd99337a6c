// Choices that a seed decides, for the model of fleets.

import { randomNumbers } from '../fault-proxy.ts';

export interface Random {
  below(limit: number): number;
  chance(probability: number): boolean;
  pick<Element>(list: readonly Element[]): Element;
  /** Independent of what is drawn here afterwards: for work that goes on beside the steps. */
  fork(): Random;
}

export function randomChoices(seed: number): Random {
  const next = randomNumbers(seed);
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    below,
    chance: (probability) => next() < probability,
    pick(list) {
      const element = list[below(list.length)];
      if (element === undefined) throw new Error('nothing to pick from');
      return element;
    },
    fork: () => randomChoices(below(2 ** 32)),
  };
}
