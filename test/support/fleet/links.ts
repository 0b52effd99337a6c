// A file of the model that gets a second name, as it has for a container that mounts it alone: its write-ahead log and
// its lock lie beside another name. The start refuses it; a signer that started all the same would lose its last
// commits when it is killed and the folder of the other name goes.

import { execFileSync } from 'node:child_process';
import { copyFileSync, linkSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SignerError } from '../../../enclave/api/errors.ts';
import type { Random } from './random.ts';
import { type Site, startSigner } from './sites.ts';
import { isFile } from './stores.ts';
import type { FleetWorld } from './world.ts';

export function secondName(world: FleetWorld, site: Site, random: Random): Promise<void> {
  return site.exclusive(async () => {
    const [signer] = site.signers;
    const [store] = site.stores;
    if (signer === undefined || !isFile(store)) throw new Error('a lone signer has a file');
    await (random.chance(0.5) ? signer.kill() : signer.stop());
    const { path } = store;
    const elsewhere = join(dirname(path), 'elsewhere');
    mkdirSync(elsewhere);
    const other = join(elsewhere, 'database.sqlite');
    // Without the protection: when the file is opened it has one name, and gets its second afterwards.
    const isUnprotected = world.missing === 'file_place';
    if (isUnprotected) renameSync(path, other);
    else linkSync(path, other);
    store.openAs(other);
    try {
      await startSigner(site, signer, world.keys, world.step);
      if (isUnprotected) linkSync(other, path);
      world.note(`the file of ${store.name} is open under a second name`);
      for (let bursts = 0; bursts < 4; bursts++) await world.burst();
      // Killed there: what is on the disk is the file without the log. Read by another process: closing a descriptor of
      // it here would drop the locks of the database.
      execFileSync('cp', [other, `${path}.killed`]);
      await signer.kill();
      copyFileSync(`${path}.killed`, path);
      rmSync(`${path}.killed`);
      world.note(`${signer.name} is killed, and the folder of the second name is gone`);
    } catch (error) {
      if (!(error instanceof SignerError)) throw error;
      world.note(`the file of ${store.name} is refused under its second name`);
    } finally {
      rmSync(elsewhere, { recursive: true });
      store.openAs(path);
    }
    await startSigner(site, signer, world.keys, world.step);
  });
}
