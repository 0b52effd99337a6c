// A table of the model that somebody puts back while several replicas run, between their requests. What
// docs/security.md promises of it and no more: a table that is older than its fleet noted is noticed at the next
// heartbeat; single items that are older, or gone, are noticed by every replica that has read or signed the newer ones.
// Keys that left are none of them.

import type { SlashableMessage } from '../../../signer/slashing/types.ts';
import { rootOf } from '../slashing.ts';
import type { FleetKey } from './keys.ts';
import { dropLaterCopies, markByHand } from './losses.ts';
import type { Random } from './random.ts';
import type { FleetSigner } from './signer.ts';
import { type Site, startSigner } from './sites.ts';
import { isKept, type KeptStore, type StoreCopy } from './stores.ts';
import type { FleetWorld } from './world.ts';

type Replicas = {
  readonly store: KeptStore;
  readonly signers: readonly FleetSigner[];
  readonly copy: StoreCopy & { readonly items: readonly object[] };
};

/** The whole table, its record included, under replicas that are bound to it, or that have renewed its number. */
export function tableComesBack(world: FleetWorld, site: Site, random: Random): Promise<void> {
  return withReplicas(world, site, random, async ({ store, signers, copy }) => {
    // Its signers have renewed the number of the store since, and seen that.
    for (const signer of signers) await signer.look();
    const present = site.binding === undefined ? (await store.copy(world.step)).held[0] : undefined;
    const noted = present ?? (await site.binding?.read())?.row?.incarnation;
    const isKnown = noted === undefined || copy.held.includes(noted);
    if (isKnown && (site.binding !== undefined || world.missing !== 'renewal')) return;
    await store.restore(copy, 'in_place');
    dropLaterCopies(site, store, copy);
    world.note(`${store.name} is as it was in step ${copy.step}, under its replicas`);
    const backend = await store.open();
    try {
      await markByHand(world, site, backend);
    } finally {
      await backend.close();
    }
    // One may be under way that read what was there before.
    for (let looks = 0; looks < 2; looks++) await Promise.all(signers.map((signer) => signer.look()));
  });
}

/** Items of keys that are at home there; the record of the table is left as it is. */
export function itemsComeBack(world: FleetWorld, site: Site, random: Random): Promise<void> {
  return withReplicas(world, site, random, async ({ store, signers, copy }) => {
    const keys = world.keys.filter((key) => key.site === site.name && key.next === undefined);
    const isOfThem = (item: object) => keys.some(({ publicKey }) => JSON.stringify(item).includes(publicKey));
    const now = await store.copy(world.step);
    if (!('items' in now)) throw new Error('a table has items');
    for (const signer of signers) for (const key of keys) await read(signer, key);
    const items = [...now.items.filter((item) => !isOfThem(item)), ...copy.items.filter(isOfThem)] as typeof now.items;
    await store.restore({ ...now, items }, 'in_place');
    world.note(`items of ${store.name} are as they were in step ${copy.step}, under its replicas`);
    if (world.missing !== 'memory') {
      site.olderItems.add(store);
      return;
    }
    for (const signer of signers) {
      await signer.stop();
      await startSigner(site, signer, world.keys, world.step);
    }
  });
}

async function withReplicas(
  world: FleetWorld,
  site: Site,
  random: Random,
  work: (replicas: Replicas) => Promise<void>,
): Promise<void> {
  const keys = world.keys.filter((key) => key.site === site.name || key.next === site.name);
  const store = site.stores.filter(isKept).find(({ kind }) => kind === 'dynamodb');
  if (store === undefined || keys.some(({ isBusy }) => isBusy)) return;
  for (const key of keys) key.isBusy = true;
  const signers = site.signers.filter(({ options }) => options.store === store);
  try {
    await site.exclusive(async () => {
      const copies = (site.copies.get(store) ?? []).filter((copy) => 'items' in copy);
      if (copies.length === 0 || signers.some((signer) => !signer.isRunning || signer.isFrozen)) return;
      await Promise.all(signers.map((signer) => signer.hold()));
      await work({ store, signers, copy: random.pick(copies) });
    });
  } finally {
    for (const signer of signers) signer.letGo();
    for (const key of keys) key.isBusy = false;
  }
}

/** Both items of the key, by messages that are below every mark. */
async function read({ running }: FleetSigner, { publicKey }: FleetKey): Promise<void> {
  const signingRoot = rootOf('low');
  const messages: readonly SlashableMessage[] = [
    { kind: 'block', publicKey, slot: 0, signingRoot },
    { kind: 'attestation', publicKey, sourceEpoch: 0, targetEpoch: 0, signingRoot },
  ];
  for (const message of messages) await running.slashing.check(message).catch(() => undefined);
}
