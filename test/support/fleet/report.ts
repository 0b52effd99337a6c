// What is said of a slashable pair: the two signatures, and the steps that led there.

import { type SlashablePair, slashablePairs } from '../slashing-checker.ts';
import type { FleetKey } from './keys.ts';
import type { FleetWorld } from './world.ts';

const STEPS_SHOWN = 60;

/** Empty when nobody could be slashed. */
export function violationsIn(world: FleetWorld): string[] {
  return world.keys.flatMap((key) =>
    slashablePairs(key.released.map(({ message }) => message)).map((pair) => report(world, key, pair)),
  );
}

function report({ seed, keys, notes }: FleetWorld, key: FleetKey, { offence, one, other }: SlashablePair): string {
  const name = `key ${keys.indexOf(key)}`;
  const signatures = key.released.filter(({ message }) => message === one || message === other).map(({ note }) => note);
  const about = notes.filter((note) => !note.includes(': key ') || note.includes(`: ${name}`));
  return [`seed ${seed}, ${name}: ${offence}`, ...signatures, ...about.slice(-STEPS_SHOWN)].join('\n  ');
}
