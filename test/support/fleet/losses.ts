// How stores of the model lose commits, and what is done about it: by themselves where the documentation says so, by
// hand where it asks for that. And signers that are killed and start again.

import { openDoubts } from '../../../signer/slashing/doubt/doubts.ts';
import { floorAt } from '../../../signer/slashing/jump.ts';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import { quietLog, reinstate } from '../slashing.ts';
import { withoutProtection } from './gate.ts';
import type { FleetKey } from './keys.ts';
import type { Random } from './random.ts';
import type { FleetSigner } from './signer.ts';
import { type Site, startSigner } from './sites.ts';
import { type FleetStore, isFile, isKept, type KeptStore, MOST_AWAY_MS, mixedCopy, type StoreCopy } from './stores.ts';
import { CHAIN } from './time.ts';
import type { FleetWorld } from './world.ts';

const MAX_COPIES = 4;

/** Killed, or stopped in order, and started again; a copy of the store is kept at times. */
export function restart(world: FleetWorld, site: Site, random: Random): Promise<void> {
  return site.exclusive(async () => {
    const signer = random.pick(site.signers);
    await (random.chance(0.5) ? signer.kill() : signer.stop());
    world.note(`${signer.name} starts again`);
    // Key files of keys that live elsewhere are cleared away, sooner or later.
    for (const key of world.keys) {
      if (key.site !== site.name && key.next !== site.name && random.chance(0.3)) site.fileKeys.delete(key.publicKey);
    }
    const { store } = signer.options;
    if (store.kind === 'sqlite' && isKept(store)) await keepCopy(world, site, store);
    await startAgain(world, site, signer);
  });
}

export async function startAgain(world: FleetWorld, site: Site, signer: FleetSigner): Promise<void> {
  await jumpAfterDoubt(world, site, signer.options.store);
  await startSigner(site, signer, world.keys, world.step);
}

/** A process that starts cannot have the doubt of those that run: somebody jumps by hand first (docs/security.md). */
export async function jumpAfterDoubt(world: FleetWorld, site: Site, store: FleetStore): Promise<void> {
  if (site.olderItems.delete(store)) await byHand(world, site, store);
}

export async function keepCopy(world: FleetWorld, site: Site, store: KeptStore): Promise<void> {
  const copies = site.copies.get(store);
  copies?.push(await store.copy(world.step));
  if (copies !== undefined && copies.length > MAX_COPIES) copies.shift();
  world.note(`a copy of ${store.name}`);
}

/** An older copy comes in the place of a store. */
export function rollBack(world: FleetWorld, site: Site, random: Random): Promise<void> {
  return site.exclusive(async () => {
    const store = random.pick(site.stores.filter(isKept));
    const copies = site.copies.get(store) ?? [];
    if (copies.length === 0) return;
    const copy = random.pick(copies);
    const signers = site.signers.filter(({ options }) => options.store === store);
    const how = random.pick(['in_place', 'replaced'] as const);
    if (site.isEnclave) return parentRollsBack(world, site, random);
    if (store.kind === 'sqlite' && random.chance(0.3)) {
      world.note(`the file of ${store.name} is replaced while it is in use, by the copy of step ${copy.step}`);
      await store.restore(copy, 'replaced');
      await world.burst();
    }
    for (const signer of signers) await (random.chance(0.5) ? signer.kill() : signer.stop());
    world.note(`${store.name} is as it was in step ${copy.step}, ${how}`);
    await store.restore(copy, how);
    dropLaterCopies(site, store, copy);
    if (!noticesItself(site, store)) await byHand(world, site, store);
    site.olderItems.delete(store);
    for (const signer of signers) await startSigner(site, signer, world.keys, world.step);
  });
}

/** A folder is set aside, with a copy in its place that goes on; later, when it is old, it is renamed back. */
export function folderComesBack(world: FleetWorld, site: Site): Promise<void> {
  return site.exclusive(async () => {
    const [store] = site.stores;
    const [signer] = site.signers;
    if (!isFile(store) || signer === undefined) return;
    const aside = world.asideSince;
    const isOld = aside !== undefined && world.time.now() - aside > MOST_AWAY_MS;
    if (aside !== undefined && !isOld) return;
    await signer.stop();
    if (isOld && store.renameBack()) {
      world.note(`${store.name}: the older folder is renamed back`);
      world.asideSince = undefined;
      site.copies.set(store, []);
      await markOf(world, site, store);
    } else {
      store.setAside();
      world.asideSince = world.time.now();
      world.note(`${store.name}: the folder is set aside, and a copy goes on`);
    }
    await startSigner(site, signer, world.keys, world.step);
  });
}

/** Keys that left since are retired again, by a command that opens the store and settles nothing. */
async function markOf(world: FleetWorld, site: Site, store: FleetStore): Promise<void> {
  const backend = withoutProtection(await store.open(), world.missing);
  try {
    await markByHand(world, site, backend);
  } finally {
    await backend.close();
  }
}

/** A copy of a store from after it went back is of another life. */
export function dropLaterCopies(site: Site, store: KeptStore, copy: StoreCopy): void {
  site.copies.set(
    store,
    (site.copies.get(store) ?? []).filter(({ step }) => step <= copy.step),
  );
}

/** A start knows: by the state table what the last signers left in it, by the mark beside it which file was closed. */
function noticesItself(site: Site, store: FleetStore): boolean {
  return site.binding !== undefined || store.kind === 'sqlite';
}

/**
 * `strongroom slashing jump`; the keys that left after the copy was made are retired again, those that came are taken
 * back.
 */
export async function byHand(world: FleetWorld, site: Site, store: FleetStore): Promise<void> {
  const backend = withoutProtection(await store.open(), world.missing);
  try {
    await raiseByHand(world, site, backend);
    await markByHand(world, site, backend);
  } finally {
    await backend.close();
  }
}

export async function raiseByHand(world: FleetWorld, { name }: Site, store: SlashingBackend): Promise<void> {
  world.note(`slashing jump at ${name} by hand`);
  const present = async () => floorAt(world.time.now(), CHAIN);
  const doubts = openDoubts({ store, present, onJump: () => undefined, log: quietLog });
  await doubts.settleNow({ cause: 'by_hand' });
}

/** The keys that are leaving, or that left, are retired again; those that are there are taken back. */
export async function markByHand(world: FleetWorld, { name }: Site, backend: SlashingBackend): Promise<void> {
  const isGone = ({ site, next }: FleetKey) => (site === name ? next !== undefined : next !== name);
  await backend.endTenures(world.keys.filter(isGone).map(({ publicKey }) => publicKey));
  const here = world.keys.filter(({ site, next }) => site === name && next === undefined);
  await reinstate(
    backend,
    here.map(({ publicKey }) => publicKey),
  );
}

/** The parent of an enclave writes all its tables and restarts it, as it likes. */
async function parentRollsBack(world: FleetWorld, site: Site, random: Random): Promise<void> {
  const [store] = site.stores;
  const [enclave] = site.signers;
  const copies =
    (store !== undefined && isKept(store) ? site.copies.get(store) : undefined)?.filter((copy) => 'items' in copy) ??
    [];
  const [oldest] = copies;
  if (store === undefined || !isKept(store) || enclave === undefined || oldest === undefined) return;
  const isMixed = random.chance(0.4);
  const copy = isMixed
    ? mixedCopy(copies, random)
    : random.chance(0.2)
      ? { ...oldest, items: [] }
      : random.pick(copies);
  const isRunning = random.chance(0.4) && copy.items.length > 0;
  world.note(`the parent puts ${copy.items.length} older items back${isRunning ? ' under the running enclave' : ''}`);
  if (!isRunning) await enclave.kill();
  await store.restore(copy, 'in_place');
  if (!isRunning) await startSigner(site, enclave, world.keys, world.step);
}
