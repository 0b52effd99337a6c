// What attackers of fleets obtained slashable pairs with, as events of the model: a PATCH beside a DELETE, or long
// after it was sent; an import that fails half-way; clocks that step; the row of the fleet's store put back from a
// backup; and copies of a store that start beside each other. Each obtained pairs while a mark, a row or a file had no
// identity.

import { SignerError } from '../../../signer/api/errors.ts';
import { importKeys } from '../../../signer/keys/management/import.ts';
import type { KeyManagementParts } from '../../../signer/keys/management/management.ts';
import { changeStatus } from '../../../signer/keys/management/status.ts';
import { isEndedTenure } from '../../../signer/tenure.ts';
import { type FleetKey, KEYSTORE_PASSWORD } from './keys.ts';
import { dropLaterCopies, startAgain } from './losses.ts';
import { freezeMeanwhile, nameOf } from './moves.ts';
import type { Random } from './random.ts';
import type { FleetSigner } from './signer.ts';
import type { Site } from './sites.ts';
import { isFile } from './stores.ts';
import type { FleetWorld } from './world.ts';

/** Milliseconds that a wall clock is off; a jump by a clock that is nearly right is believed. */
const CLOCKS = [0, 0, 0, -8_000, -11_000, -60_000, -300_000, 5_000, 60_000];
/** Without a state table nothing tells a clock that was ahead when it signed from one that is right afterwards. */
const SLOW_CLOCKS = [0, 0, 0, 0, -8_000, -60_000];
const MAX_ROWS = 6;
/** Beats show in between: a row that is put back again and again is what nothing notices (docs/security.md). */
const BETWEEN_ROWS_MS = 30_000;

export function randomAttack(world: FleetWorld, random: Random): Promise<void> {
  const fleet = world.sites.find(({ binding }) => binding !== undefined);
  if (fleet === undefined) throw new Error('one of the places is a fleet');
  const attacks = [
    () => latePatch(world, fleet, random),
    () => latePatch(world, fleet, random),
    () => failedImport(world, random),
    () => setClock(world, fleet, random, CLOCKS),
    () => setClock(world, random.pick(world.sites.filter(({ isEnclave }) => !isEnclave)), random, SLOW_CLOCKS),
    () => rowComesBack(world, fleet, random),
    () => cloneOf(world, fleet, random),
  ];
  return random.pick(attacks)();
}

/** Of any key, beside whatever is done to it, at a signer that may stand still between its steps. */
async function latePatch(world: FleetWorld, site: Site, random: Random): Promise<void> {
  const signers = site.signers.filter(({ mayManage }) => mayManage);
  const leaving = world.keys.filter((key) => key.isBusy && key.site === site.name);
  const key = random.pick(leaving.length > 0 ? leaving : world.keys);
  if (signers.length === 0) return;
  const signer = random.pick(signers);
  world.note(`${nameOf(world, key)}: PATCH active at ${signer.name}`);
  const answer = changeStatus([{ publicKey: key.publicKey, status: 'active' }], signer.running.parts);
  answer.catch(() => undefined);
  if (random.chance(0.5)) await freezeMeanwhile(world, signer, random);
  const [result] = await answer;
  world.note(`${nameOf(world, key)}: that PATCH was answered ${result?.status}`);
}

/** By mistake, of a key that is elsewhere, and that may have been here: it fails between two of its steps. */
async function failedImport(world: FleetWorld, random: Random): Promise<void> {
  const key = random.pick(world.keys);
  const sites = world.sites.filter(({ name, isEnclave }) => !isEnclave && name !== key.site);
  const site = random.pick(sites);
  const signers = site.signers.filter(({ mayManage }) => mayManage);
  if (key.isBusy || signers.length === 0 || site.fileKeys.has(key.publicKey)) return;
  key.isBusy = true;
  try {
    const signer = random.pick(signers);
    const step = random.pick(['write', 'begin'] as const);
    const parts = failingAt(step, key, signer, site.binding !== undefined);
    const items = [{ keystore: key.keystore, password: Buffer.from(KEYSTORE_PASSWORD) }];
    const request = {
      items,
      slashingProtection: key.oldFiles.at(-1),
      persist: site.binding !== undefined,
      allows: () => true,
    };
    const [result] = await importKeys(request, parts, new AbortController().signal);
    world.note(`${nameOf(world, key)}: POST at ${signer.name} fails at ${step}: ${result?.status}`);
    if (result?.status === 'imported') throw new Error('an import that fails was answered as imported');
  } finally {
    key.isBusy = false;
  }
}

function failingAt(
  step: 'write' | 'begin',
  key: FleetKey,
  { running: { parts } }: FleetSigner,
  isTable: boolean,
): KeyManagementParts {
  const unavailable = () => new SignerError('slashing_unavailable');
  if (step === 'write') {
    if (!isTable)
      return { ...parts, imported: { keep: () => Promise.reject(new Error('ENOSPC')), remove: async () => {} } };
    if (parts.table === undefined) throw new Error('this place has a table');
    const create = () => Promise.reject(new SignerError('key_table_unavailable'));
    return { ...parts, table: { ...parts.table, rows: { ...parts.table.rows, create } } };
  }
  const { slashing } = parts;
  return {
    ...parts,
    slashing: {
      ...slashing,
      async tenures(publicKeys) {
        const tenures = await slashing.tenures(publicKeys);
        // A key that never left signs as soon as it is loaded, and nothing of its import can fail after that.
        if (!isEndedTenure(tenures.get(key.publicKey) ?? 0)) throw unavailable();
        return tenures;
      },
      beginTenures: () => Promise.reject(unavailable()),
    },
  };
}

async function setClock(world: FleetWorld, site: Site, random: Random, clocks: readonly number[]): Promise<void> {
  const signer = random.pick(site.signers);
  const offMs = random.pick(clocks);
  signer.setClock(offMs);
  world.note(`the clock of ${signer.name} is off by ${offMs / 1000} s`);
}

async function rowComesBack(world: FleetWorld, site: Site, random: Random): Promise<void> {
  const { bindingRow, earlierRows } = site;
  const now = await bindingRow?.read();
  if (bindingRow === undefined || now === undefined) return;
  const isDue = world.time.now() - site.rowPutBackAt >= BETWEEN_ROWS_MS;
  if (earlierRows.length > 0 && isDue && random.chance(0.5)) {
    site.rowPutBackAt = world.time.now();
    const row = random.pick(earlierRows);
    await bindingRow.put(row);
    world.note(`the row of the fleet's store is again that of binding ${row['binding']?.N}`);
    return;
  }
  earlierRows.push(now);
  if (earlierRows.length > MAX_ROWS) earlierRows.splice(random.below(MAX_ROWS), 1);
}

/** The file of one signer in place of another's, and both start. */
function cloneOf(world: FleetWorld, site: Site, random: Random): Promise<void> {
  return site.exclusive(async () => {
    const withFiles = site.signers.filter(({ options }) => isFile(options.store));
    const [one, other] = random.chance(0.5) ? withFiles : withFiles.toReversed();
    if (one === undefined || other === undefined) throw new Error('two signers of the fleet have files');
    const [from, to] = [one.options.store, other.options.store];
    if (!isFile(from) || !isFile(to)) throw new Error('they have files');
    for (const signer of [other, one]) await (random.chance(0.3) ? signer.kill() : signer.stop());
    const copy = from.bytes(world.step);
    await to.restore(copy, random.pick(['in_place', 'replaced']));
    dropLaterCopies(site, to, { ...copy, step: -1 });
    world.note(`${to.name} is a copy of ${from.name}`);
    for (const signer of random.chance(0.5) ? [one, other] : [other, one]) await startAgain(world, site, signer);
  });
}
