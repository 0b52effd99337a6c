// What was signed at a slot, as the signing path asks it: through the floor of an enclave's start, which hides no root
// that the store holds, and never while something keeps checks from the store, or with a record that fails its code.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../common/observe/clock.ts';
import { SlashingProtection } from '../../signer/slashing/protection.ts';
import { type RestrainedStore, sealedStore } from '../../signer/slashing/restraints.ts';
import { openSqliteBackend } from '../../signer/slashing/sqlite/backend.ts';
import type { SlashingBackend } from '../../signer/slashing/types.ts';
import { MAINNET_ROOT } from '../support/messages.ts';
import { behindLocalFloor, unrestrained } from '../support/restrained.ts';
import { block, checkOne, publicKeyOf, quietLog, rootOf } from '../support/slashing.ts';

const NEVER = new AbortController().signal;
const FLOOR = { slot: 3200, sourceEpoch: 99, targetEpoch: 100 };

let folder: string;
let store: SlashingBackend;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-signed-'));
  store = await open();
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(): Promise<SlashingBackend> {
  const options = { path: join(folder, 'slashing.sqlite'), genesisValidatorsRoot: MAINNET_ROOT };
  return openSqliteBackend(options, { log: quietLog });
}

function protectionOf(backend: SlashingBackend, hindrance?: () => 'slashing_unbound' | undefined): SlashingProtection {
  return protectionBehind(unrestrained(backend, hindrance));
}

function protectionBehind(restrained: RestrainedStore): SlashingProtection {
  return new SlashingProtection(restrained, {}, { clock: systemClock, log: quietLog });
}

it('a root below the floor of a start is known: the block was signed, and its envelope comes after the restart', async () => {
  await checkOne(store, block(1, 3100, 'a'));
  const behind = behindLocalFloor(store, { floor: FLOOR, latest: () => FLOOR });
  const root = await protectionOf(behind).signedBlockRoot(publicKeyOf(1), 3100, NEVER);
  expect(Buffer.from(root ?? [])).toEqual(rootOf('a'));
});

it('nothing is said while checks are kept from the store', async () => {
  await checkOne(store, block(1, 10, 'a'));
  let hindrance: 'slashing_unbound' | undefined = 'slashing_unbound';
  const protection = protectionOf(store, () => hindrance);
  const asked = () => protection.signedBlockRoot(publicKeyOf(1), 10, NEVER);
  await expect(asked()).rejects.toMatchObject({ reason: 'slashing_unbound' });
  hindrance = undefined;
  expect(await asked()).not.toBeNull();
});

it('nor by a replica that started sealed, nor for a request that was given up', async () => {
  await expect(
    protectionBehind(sealedStore('sqlite')).signedBlockRoot(publicKeyOf(1), 10, NEVER),
  ).rejects.toMatchObject({
    reason: 'sealed',
  });
  const gone = AbortSignal.abort(new Error('the client went away'));
  await expect(protectionOf(store).signedBlockRoot(publicKeyOf(1), 10, gone)).rejects.toThrow('went away');
});

it('a root that was put into the file is not believed', async () => {
  await checkOne(store, block(1, 10, 'a'));
  await store.close();
  const file = new DatabaseSync(join(folder, 'slashing.sqlite'));
  file.prepare('UPDATE blocks SET signing_root = ?').run(rootOf('b'));
  file.close();
  store = await open();
  await expect(store.signedBlockRoot(publicKeyOf(1), 10)).rejects.toMatchObject({ reason: 'slashing_integrity' });
});
