// A file of the model that gets a second name, as it has for a container that mounts it alone: its write-ahead log and
// its lock lie beside another name. The start refuses it. A log that is lost with such a name costs a jump alone,
// because the file has no mark that it was closed; the refusal is for two signers at once
// (slashing/sqlite/files.test.ts).

import { linkSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SignerError } from '../../../signer/api/errors.ts';
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
    linkSync(path, other);
    store.openAs(other);
    try {
      await startSigner(site, signer, world.keys, world.step);
      throw new Error(`the file of ${store.name} was opened under a second name`);
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
