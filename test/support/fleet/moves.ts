// How keys go from place to place, in the ways that the documentation describes and no others: a key leaves by DELETE
// (Key Manager or chamber) or by `slashing retire` and export; its file is imported at the next place before the key is
// loaded there; what failed half way is finished where it was begun.

import { setImmediate } from 'node:timers/promises';
import { doubtOfFile } from '../../../signer/boot/slashing-protection/start-doubts.ts';
import { exportInterchangeText } from '../../../signer/http/bodies/interchange.ts';
import { deleteKeys } from '../../../signer/keys/management/delete.ts';
import { changeStatus } from '../../../signer/keys/management/status.ts';
import { readInterchange } from '../../../signer/slashing/interchange/file.ts';
import type { MergeStrategy, SlashingBackend, ValidatorHistory } from '../../../signer/slashing/types.ts';
import { MAIN_ROOT, reinstate } from '../slashing.ts';
import { Killed, withoutProtection } from './gate.ts';
import type { FleetKey } from './keys.ts';
import { jumpAfterDoubt, raiseByHand, startAgain } from './losses.ts';
import type { Random } from './random.ts';
import type { FleetSigner } from './signer.ts';
import { post, type Site } from './sites.ts';
import type { FleetWorld } from './world.ts';

/** Begin a move, or go on with one. The caller holds the key. */
export async function move(world: FleetWorld, key: FleetKey, random: Random): Promise<void> {
  const site = world.sites.find(({ name }) => name === key.site);
  // What leaves an enclave comes back when its parent rolls the tables back (docs/security.md): keys only come there.
  if (site?.isEnclave === true) return;
  key.next ??= destination(world, key, random);
  if (site !== undefined) {
    const file = await leave(world, key, site, random);
    if (file === undefined) return;
    world.note(`${nameOf(world, key)} left ${site.name}; its file says ${summaryOf(file)}`);
    key.leftAt.set(site.name, world.step);
    key.file = file;
    key.site = undefined;
  }
  const target = world.sites.find(({ name }) => name === key.next);
  if (target === undefined || key.file === undefined) return;
  if (!(await arrive(world, key, target, random))) return;
  world.note(`${nameOf(world, key)} came to ${target.name}`);
  key.oldFiles.push(key.file);
  key.site = target.name;
  key.leftAt.delete(target.name);
  key.next = undefined;
  key.file = undefined;
}

/** Back to where it was, at times. */
function destination(world: FleetWorld, key: FleetKey, random: Random): string {
  const others = world.sites.filter(({ name, isEnclave }) => name !== key.site && (!isEnclave || random.chance(0.1)));
  const known = others.filter(({ name }) => key.leftAt.has(name));
  return random.pick(known.length > 0 && random.chance(0.5) ? known : others).name;
}

export const nameOf = (world: FleetWorld, key: FleetKey) => `key ${world.keys.indexOf(key)}`;

async function leave(world: FleetWorld, key: FleetKey, site: Site, random: Random): Promise<string | undefined> {
  const isCommand = site.fileKeys.has(key.publicKey) || (site.binding === undefined && random.chance(0.3));
  if (isCommand) return leaveByCommand(world, key, site, random);
  const signers = site.signers.filter(({ mayManage }) => mayManage);
  if (signers.length === 0) return undefined;
  const signer = random.pick(signers);
  world.note(`${nameOf(world, key)}: DELETE at ${signer.name}`);
  const { running } = signer;
  const { parts } = running;
  if (site.binding !== undefined && random.chance(0.2)) {
    await changeStatus([{ publicKey: key.publicKey, status: 'inactive' }], parts);
  }
  const request = { publicKeys: [key.publicKey], fromTable: site.binding !== undefined };
  const answer = deleteKeys(request, parts);
  answer.catch(() => undefined);
  if (random.chance(0.3)) await freezeMeanwhile(world, signer, random);
  const { results, slashingProtection } = await answer;
  if (!signer.isRunning || signer.running !== running) throw new Killed('nobody got the answer');
  const [result] = results;
  return result?.status === 'deleted' || result?.recorded === true ? slashingProtection : undefined;
}

/** Somewhere between the steps of what it does. */
export async function freezeMeanwhile(world: FleetWorld, signer: FleetSigner, random: Random): Promise<void> {
  for (let turns = random.below(40); turns > 0; turns--) await setImmediate();
  world.freeze(signer, random);
}

function leaveByCommand(world: FleetWorld, key: FleetKey, site: Site, random: Random): Promise<string> {
  return withStore(world, site, async (backend) => {
    world.note(`${nameOf(world, key)}: slashing retire and export at ${site.name}`);
    await backend.endTenures([key.publicKey]);
    // The command refuses the export of a store in doubt, and says what to do first.
    if (doubtOfFile(backend, site.binding !== undefined) !== undefined) await raiseByHand(world, site, backend);
    const { file } = await exportInterchangeText([key.publicKey], { backend, genesisValidatorsRoot: MAIN_ROOT });
    if (random.chance(0.5)) site.fileKeys.delete(key.publicKey);
    return file;
  });
}

async function arrive(world: FleetWorld, key: FleetKey, site: Site, random: Random): Promise<boolean> {
  if (site.binding === undefined && !site.isEnclave && random.chance(0.35)) {
    return arriveByCommand(world, key, site, random);
  }
  const signers = site.signers.filter(({ mayManage }) => mayManage);
  const [first, ...others] = random.chance(0.5) ? signers : signers.toReversed();
  if (first === undefined) return false;
  world.note(`${nameOf(world, key)}: POST at ${first.name}`);
  const answer = await post(first, key, key.file, site.binding !== undefined);
  // A copy of it was loaded all the time, and was refused: whoever runs the place takes the mark back.
  if (answer === 'duplicate') await reinstate(first.running.parts.slashing, [key.publicKey]);
  else if (answer !== 'imported') return false;
  if (site.binding === undefined) for (const other of others) await post(other, key, key.file, false);
  return true;
}

async function arriveByCommand(world: FleetWorld, key: FleetKey, site: Site, random: Random): Promise<boolean> {
  const { file = '' } = key;
  const histories = await Array.fromAsync(historiesOf(file));
  await withStore(world, site, async (backend, store) => {
    const strategies: MergeStrategy[] = ['by_key', 'by_key', 'minimal'];
    if (listsEverything(key, histories, store)) strategies.push('complete', 'complete');
    const strategy = random.pick(strategies);
    world.note(`${nameOf(world, key)}: slashing import (${strategy}) at ${site.name}`);
    await backend.importHistories(historiesOf(file), { strategy });
    await reinstate(backend, [key.publicKey]);
    site.fileKeys.add(key.publicKey);
  });
  return true;
}

/**
 * What `strongroom slashing` works on: signers of a SQLite file are stopped meanwhile, those of a table start again
 * after it.
 */
export function withStore<T>(
  world: FleetWorld,
  site: Site,
  work: (backend: SlashingBackend, store: string) => Promise<T>,
): Promise<T> {
  return site.exclusive(async () => {
    const [store] = site.stores;
    if (store === undefined) throw new Error('a site has a store');
    const isStopped = store.kind === 'sqlite';
    await jumpAfterDoubt(world, site, store);
    if (isStopped) for (const signer of site.signers) await signer.stop();
    const backend = withoutProtection(await store.open(), world.missing);
    let result: T;
    try {
      result = await work(backend, store.name);
    } finally {
      await backend.close();
    }
    for (const signer of site.signers) {
      await signer.stop();
      await startAgain(world, site, signer);
    }
    return result;
  });
}

/** An older file is merged once more where the key is: it never weakens what is there. */
export async function mergeOldFile(world: FleetWorld, key: FleetKey, random: Random): Promise<void> {
  const site = world.sites.find(({ name }) => name === key.site);
  const signer = site?.signers.find(({ mayManage }) => mayManage);
  if (signer === undefined || key.oldFiles.length === 0) return;
  world.note(`${nameOf(world, key)}: an older file once more at ${signer.name}`);
  await signer.running.parts.slashing.merge(random.pick(key.oldFiles), () => true);
}

/** Inactive and active again, at any replicas of the fleet. */
export async function pauseKey(world: FleetWorld, key: FleetKey, random: Random): Promise<void> {
  const site = world.sites.find(({ name }) => name === key.site);
  if (site?.binding === undefined) return;
  for (const status of ['inactive', 'active'] as const) {
    const signers = site.signers.filter(({ mayManage }) => mayManage);
    if (signers.length === 0) return;
    await changeStatus([{ publicKey: key.publicKey, status }], random.pick(signers).running.parts);
  }
}

function historiesOf(file: string): AsyncGenerator<ValidatorHistory> {
  const source = (async function* () {
    yield Buffer.from(file);
  })();
  return readInterchange(source, MAIN_ROOT);
}

/** What `--complete` asks its user to know: the file has every signature that was made over other stores. */
function listsEverything(key: FleetKey, histories: readonly ValidatorHistory[], store: string): boolean {
  const listed = new Set<string>();
  for (const { blocks, attestations } of histories) {
    for (const { slot, signingRoot } of blocks) listed.add(`${slot} ${hex(signingRoot)}`);
    for (const vote of attestations) listed.add(`${vote.sourceEpoch} ${vote.targetEpoch} ${hex(vote.signingRoot)}`);
  }
  return key.released
    .filter((one) => one.store !== store)
    .every(({ message }) =>
      listed.has(
        message.kind === 'block'
          ? `${message.slot} ${hex(message.signingRoot)}`
          : `${message.sourceEpoch} ${message.targetEpoch} ${hex(message.signingRoot)}`,
      ),
    );
}

function hex(root: Uint8Array | null): string {
  return root === null ? 'none' : Buffer.from(root).toString('hex');
}

function summaryOf(file: string): string {
  const [history] = (
    JSON.parse(file) as {
      data: {
        signed_blocks: { slot: string }[];
        signed_attestations: { source_epoch: string; target_epoch: string }[];
      }[];
    }
  ).data;
  const blocks = history?.signed_blocks.map(({ slot }) => slot) ?? [];
  const votes = history?.signed_attestations.map((vote) => `${vote.source_epoch}>${vote.target_epoch}`) ?? [];
  return `blocks ${blocks.slice(-3).join(' ') || 'none'} (${blocks.length}), votes ${votes.slice(-3).join(' ') || 'none'} (${votes.length})`;
}
