// Keys that come and go at the same time: whatever was answered last of a key is what it does. On a real key table,
// with slashing protection on SQLite.

import { describe, expect, it } from 'vitest';
import type { KeyManagementParts } from '../../../signer/keys/management/management.ts';
import { newTableKey } from '../../support/key-table.ts';
import { changeOne, deleteOne, importOne, type ManagedSigner } from '../../support/managed-signer.ts';
import { attestation, randaoReveal } from '../../support/messages.ts';
import { publicKey, secretKey, world } from './managed-world.ts';

const OTHER = newTableKey(2);

describe('beside a deletion', () => {
  /** The signer's own parts, with a table whose `create` answers only when it is let go, after its rows are durable. */
  function slowCreate({ parts, table, loader }: ManagedSigner) {
    const durable = Promise.withResolvers<void>();
    const letGo = Promise.withResolvers<void>();
    const create: typeof table.create = async (keys) => {
      const created = await table.create(keys);
      durable.resolve();
      await letGo.promise;
      return created;
    };
    const slow: KeyManagementParts = { ...parts, table: { rows: { ...table, create }, loader } };
    return { slow, durable: durable.promise, letGo: letGo.resolve };
  }

  it.each([
    ['deleted', (signer: ManagedSigner) => deleteOne(signer.parts, publicKey, true)],
    ['updated', (signer: ManagedSigner) => changeOne(signer.parts, publicKey, 'inactive')],
  ] as const)('an import whose row is durable does not load a key after it was answered %s', async (status, act) => {
    const signer = await world.start();
    const { slow, durable, letGo } = slowCreate(signer);
    const importing = importOne(slow, secretKey, { persist: true });
    await durable;
    let answered = false;
    const acting = act(signer).finally(() => {
      answered = true;
    });
    // Time for the second request to end, if nothing keeps it behind the first.
    for (let look = 0; look < 5; look++) await signer.loader.refresh();
    expect(answered).toBe(false);
    letGo();
    expect(await importing).toMatchObject({ status: 'imported' });
    expect(await acting).toMatchObject({ status });
    expect(await signer.ask(publicKey, randaoReveal())).toBe('unknown_key');
  });

  it('changes of other keys do not wait', async () => {
    const signer = await world.start();
    const { slow, durable, letGo } = slowCreate(signer);
    const importing = importOne(slow, secretKey, { persist: true });
    await durable;
    expect(await deleteOne(signer.parts, OTHER.publicKey, true)).toMatchObject({ status: 'not_found' });
    letGo();
    await importing;
  });

  it('looks at the table bring no deleted key back, over 60 keys that sign and are deleted meanwhile', async () => {
    const ROUNDS = 60;
    const signer = await world.start();
    const owner = await world.startLoading();
    const ended = new AbortController();
    const looking = (async () => {
      while (!ended.signal.aborted) await signer.loader.refresh().catch(() => ended.abort());
    })();
    let broughtIn = 0;
    let refused = 0;
    let signed = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const key = newTableKey(100 + round);
      await owner.table.create([key]);
      // In every second round the deletion is there before the key can have been brought in.
      if (round % 2 === 0) await expect.poll(() => signer.store.find(key.publicKey), { interval: 1 }).toBeDefined();
      if (signer.store.find(key.publicKey) !== undefined) broughtIn += 1;
      const votes = Array.from({ length: 4 }, (_, n) => ({ source: 10 + n, target: 11 + n }));
      const asked = votes.map((vote) => signer.ask(key.publicKey, attestation(vote)));
      await Promise.race(asked);
      const deleted = await deleteOne(signer.parts, key.publicKey, true);
      expect(deleted.status).toBe('deleted');
      const targets = deleted.records.data.flatMap((entry) =>
        entry.signed_attestations.map(({ target_epoch }) => Number(target_epoch)),
      );
      for (const [n, answer] of (await Promise.all(asked)).entries()) {
        if (answer !== 'signed') continue;
        expect(targets).toContain(11 + n);
        signed += 1;
      }
      for (let look = 0; look < 3; look++) {
        if ((await signer.ask(key.publicKey, randaoReveal())) === 'unknown_key') refused += 1;
        await signer.loader.refresh();
      }
    }
    ended.abort();
    await looking;
    expect(refused).toBe(3 * ROUNDS);
    // Otherwise nothing was raced.
    expect(signed).toBeGreaterThanOrEqual(ROUNDS / 4);
    expect(broughtIn).toBeGreaterThanOrEqual(ROUNDS / 2);
    expect(signer.store.publicKeys()).toEqual([]);
  });
});
