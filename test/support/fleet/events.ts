// What happens in a world of the model beside its clients: one event at a time is drawn, and goes on beside the steps.

import { PRUNE_STEP_ENTRIES } from '../../../signer/slashing/operations/prune-loop.ts';
import { randomAttack } from './attacks.ts';
import { loseCommits } from './failovers.ts';
import type { FleetKey } from './keys.ts';
import { secondName } from './links.ts';
import { folderComesBack, keepCopy, restart, rollBack, startAgain } from './losses.ts';
import { mergeOldFile, move, pauseKey } from './moves.ts';
import type { Random } from './random.ts';
import { isAtHome, postAgain, type Site } from './sites.ts';
import { isKept } from './stores.ts';
import { itemsComeBack, tableComesBack } from './tables.ts';
import type { FleetWorld } from './world.ts';

/** What there is most of in a world; the seed decides which. */
const EMPHASES = [
  { moves: 40, losses: 2, place: undefined },
  { moves: 8, losses: 4, place: undefined },
  { moves: 4, losses: 6, place: 'enclave' },
  { moves: 8, losses: 5, place: 'fleet' },
  { moves: 4, losses: 6, place: 'cluster' },
  { moves: 8, losses: 5, place: 'lone' },
  { moves: 6, losses: 6, place: 'replicas' },
] as const;
const PRUNE_STEPS = 10;
/** Of all events. */
const ATTACKS = 0.15;

export function randomEvent(world: FleetWorld, drawing: Random): Promise<void> {
  const random = drawing.fork();
  // What the seeds of the protections find, they find without these.
  if (world.missing === undefined && random.chance(ATTACKS)) return randomAttack(world, random);
  const { moves, losses, place } = EMPHASES[world.seed % EMPHASES.length] ?? EMPHASES[0];
  const site = world.sites.find(({ name }) => name === place && random.chance(0.6)) ?? random.pick(world.sites);
  const chances: readonly (readonly [weight: number, work: () => Promise<void>])[] = [
    [moves, () => withKey(world, random, moveOne)],
    [losses, () => restart(world, site, random)],
    [losses, () => lose(world, site, random)],
    [losses, () => keepTableCopy(world, site, random)],
    [2, () => prune(world, site, random)],
    [1, () => withKey(world, random, mergeOldFile)],
    [1, () => withKey(world, random, pauseKey)],
    [2, () => putRight(world, site, random)],
  ];
  let left = random.below(chances.reduce((sum, [weight]) => sum + weight, 0));
  for (const [weight, work] of chances) {
    left -= weight;
    if (left < 0) return work();
  }
  throw new Error('one of them was drawn');
}

/** What can befall the stores of the place. */
function lose(world: FleetWorld, site: Site, random: Random): Promise<void> {
  if (site.cluster !== undefined) return loseCommits(world, site, random);
  // Without the renewal, tables that come back are what the world has most of: the pair is there sooner.
  const isLive = !site.isEnclave && (world.missing === 'renewal' || random.chance(0.5));
  if (!isLive) return rollBack(world, site, random);
  if (site.name === 'lone') {
    const isMissed = world.missing === 'end_time';
    return random.chance(isMissed ? 0.9 : 0.5) ? folderComesBack(world, site) : secondName(world, site, random);
  }
  const isRenewed = site.binding !== undefined || world.missing === 'renewal' || random.chance(0.5);
  return isRenewed ? tableComesBack(world, site, random) : itemsComeBack(world, site, random);
}

type KeyEvent = (world: FleetWorld, key: FleetKey, random: Random) => Promise<void>;

async function withKey(world: FleetWorld, random: Random, work: KeyEvent): Promise<void> {
  // What was begun goes on first, more often than not.
  const waiting = world.keys.filter(({ next, isBusy }) => next !== undefined && !isBusy);
  const key = random.pick(waiting.length > 0 && random.chance(0.8) ? waiting : world.keys);
  if (key.isBusy) return;
  key.isBusy = true;
  try {
    await work(world, key, random);
  } finally {
    key.isBusy = false;
  }
}

async function moveOne(world: FleetWorld, key: FleetKey, random: Random): Promise<void> {
  await move(world, key, random);
  if (key.next === undefined) world.moves += 1;
}

async function keepTableCopy(world: FleetWorld, site: Site, random: Random): Promise<void> {
  const tables = site.stores.filter(isKept).filter(({ kind }) => kind === 'dynamodb');
  if (tables.length > 0) await keepCopy(world, site, random.pick(tables));
}

async function prune(world: FleetWorld, site: Site, random: Random): Promise<void> {
  const signer = random.pick(site.signers);
  if (!signer.isRunning || signer.isFrozen) return;
  const { backend } = signer.running;
  for (let steps = 0; steps < PRUNE_STEPS; steps++) {
    const pruned = await backend.pruneStep(PRUNE_STEP_ENTRIES);
    if (pruned === 0) return;
    world.note(`${signer.name} prunes ${pruned} entries`);
  }
}

/** Signers that lost keys of memory get them back; those that could not start are started. */
function putRight(world: FleetWorld, site: Site, random: Random): Promise<void> {
  return site.exclusive(async () => {
    for (const signer of site.signers) {
      if (!signer.isRunning) await startAgain(world, site, signer);
      else if (!signer.isFrozen && site.binding === undefined && random.chance(0.5)) {
        for (const key of world.keys) {
          const isThere = signer.running.store.find(key.publicKey) !== undefined;
          if (isAtHome(key, site) && !isThere) await postAgain(signer, key);
        }
      }
    }
  });
}
