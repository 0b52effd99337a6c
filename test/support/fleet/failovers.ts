// A database that loses commits under the signers of the model: a standby that lags is promoted, or a copy of the files
// comes back. Signers live through it and go on by themselves, as docs/security.md promises. What it does not promise
// the administrator does before a signer comes: the marks of keys that left meanwhile, and the jump where nobody lived
// through.

import { setTimeout as pause } from 'node:timers/promises';
import { SignerError } from '../../../signer/api/errors.ts';
import { rootOf } from '../slashing.ts';
import { openTestBackend } from '../slashing-postgres.ts';
import type { FleetCluster } from './cluster.ts';
import { byHand, markByHand } from './losses.ts';
import type { Random } from './random.ts';
import type { FleetSigner } from './signer.ts';
import { type Site, startSigner } from './sites.ts';
import type { FleetWorld } from './world.ts';

/** A key that nobody has: to look at the database as a signer does. */
const STRANGER = `0x${'ee'.repeat(48)}`;
const MAX_TRIES = 500;
const PAUSE_MS = 10;

export function loseCommits(world: FleetWorld, site: Site, random: Random): Promise<void> {
  const { cluster } = site;
  if (cluster === undefined) throw new Error('the site has no cluster');
  return site.exclusive(async () => {
    const hasLost = cluster.hasStandby || cluster.hasCopy;
    // Without the jump after a copy that came back, copies are what the world has most of: the pair is there sooner.
    if (world.missing === 'restored_jump') {
      if (cluster.hasCopy && random.chance(0.6)) await restoreUnderSigners(world, site, cluster, random);
      else await saveFiles(world, cluster);
    } else if (cluster.hasStandby && random.chance(0.5)) await failOver(world, site, cluster, random);
    else if (cluster.hasCopy && random.chance(0.5)) await restoreUnderSigners(world, site, cluster, random);
    else if (cluster.hasCopy && random.chance(0.3)) await restoreStopped(world, site, cluster);
    else if (!cluster.hasStandby && (hasLost || random.chance(0.6))) {
      await cluster.leaveBehind();
      world.note('cluster: a standby receives nothing more');
    } else {
      await saveFiles(world, cluster);
    }
  });
}

async function saveFiles(world: FleetWorld, cluster: FleetCluster): Promise<void> {
  await cluster.saveFiles();
  world.note('cluster: the files are copied aside');
}

async function failOver(world: FleetWorld, site: Site, cluster: FleetCluster, random: Random): Promise<void> {
  const restarted = site.signers.filter(() => random.chance(0.3));
  for (const signer of restarted) await (random.chance(0.5) ? signer.kill() : signer.stop());
  await cluster.failOver(() => markAgain(world, site, cluster));
  world.note(`cluster: the standby is promoted, ${restarted.length} signers start afterwards`);
  for (const signer of restarted) await startSigner(site, signer, world.keys, world.step);
}

/** Both signers know how far the log had come, and look before one that starts afterwards does, without its memory. */
async function restoreUnderSigners(
  world: FleetWorld,
  site: Site,
  cluster: FleetCluster,
  random: Random,
): Promise<void> {
  if (site.signers.some((signer) => !signer.isRunning || signer.isFrozen)) return;
  await Promise.all(site.signers.map((signer) => signer.hold()));
  try {
    for (const signer of site.signers) await lookAround(world, signer);
    await cluster.doOtherWork();
    for (const { running } of site.signers) await running.backend.checkHealth(new AbortController().signal);
    await cluster.restoreFiles(() => markAgain(world, site, cluster));
    world.note('cluster: an older copy of the files comes back under its signers');
    for (const signer of site.signers) await lookAround(world, signer);
  } finally {
    for (const signer of site.signers) signer.letGo();
  }
  for (const signer of site.signers.filter(() => random.chance(0.3))) {
    await (random.chance(0.5) ? signer.kill() : signer.stop());
    await startSigner(site, signer, world.keys, world.step);
    world.note(`${signer.name} starts again after it`);
  }
}

async function restoreStopped(world: FleetWorld, site: Site, cluster: FleetCluster): Promise<void> {
  for (const signer of site.signers) await signer.stop();
  await cluster.restoreFiles(async () => undefined);
  world.note('cluster: an older copy of the files comes back, with all signers stopped');
  for (const store of site.stores) await byHand(world, site, store);
  for (const signer of site.signers) await startSigner(site, signer, world.keys, world.step);
}

/** docs/guides/postgres.md: the mark of a key that left may be among what was lost, so it is deleted again. */
async function markAgain(world: FleetWorld, site: Site, { ownUrl }: FleetCluster): Promise<void> {
  const backend = await openTestBackend(ownUrl, { poolSize: 1 });
  try {
    await markByHand(world, site, backend);
  } finally {
    await backend.close();
  }
}

/** A check of a key that nobody moves, until it is decided: connections that broke are found one by one. */
async function lookAround(world: FleetWorld, signer: FleetSigner): Promise<void> {
  const { running } = signer;
  const slot = Math.min(world.time.latest().slot, signer.latest().slot); // its clock may be behind
  const message = { kind: 'block', publicKey: STRANGER, slot, signingRoot: rootOf('stranger') } as const;
  let fault: unknown;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    try {
      await running.slashing.check(message);
      return;
    } catch (error) {
      if (!(error instanceof SignerError)) throw error;
      if (error.reason === 'slashing_rollback') return; // the database answers, and nothing has raised it
      fault = error;
      await pause(PAUSE_MS);
    }
  }
  throw new Error('the database does not come back', { cause: fault });
}
