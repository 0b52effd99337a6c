// The steps of a deletion: the key signs no more, its records are answered, its row goes; and whatever fails between
// leaves it whole or can be repeated. On a real key table and slashing protection on SQLite.

import { describe, expect, it } from 'vitest';
import { changeOne, deleteOne, importOne, type ManagedSigner } from '../../support/managed-signer.ts';
import { attestation, randaoReveal, rootOf } from '../../support/messages.ts';
import { checkOne, reinstate, retiredKeys, verdictName, vote } from '../../support/slashing.ts';
import { publicKey, secretKey, statusOfRow, world } from './managed-world.ts';

describe('the steps of a deletion', () => {
  it('the key signs no more here, then nowhere; its records are read, its row goes after them, and then both once more', async () => {
    const signer = await world.start();
    await importOne(signer.parts, secretKey, { persist: true });
    expect(await signer.ask(publicKey, attestation({ source: 10, target: 11 }))).toBe('signed');
    const seen: unknown[] = [];
    const watched = async (step: string) => {
      await signer.loader.refresh();
      const retired = await retiredKeys(signer.backend, [publicKey]);
      seen.push([step, await signer.ask(publicKey, randaoReveal()), await statusOfRow(signer), retired.length]);
    };
    const { slashing } = signer.parts;
    const watching = {
      ...slashing,
      endTenures: async (publicKeys: readonly string[]) => {
        const ended = await slashing.endTenures(publicKeys);
        await watched('retired');
        return ended;
      },
      export: async (publicKeys: readonly string[]) => {
        await watched('export');
        return slashing.export(publicKeys);
      },
    };
    const deleted = await deleteOne({ ...signer.parts, slashing: watching }, publicKey, true);
    expect(seen).toEqual([
      ['retired', 'unknown_key', 'active', 1],
      ['export', 'unknown_key', 'active', 1],
      ['retired', 'unknown_key', undefined, 1],
      ['export', 'unknown_key', undefined, 1],
    ]);
    expect(deleted).toMatchObject({ status: 'deleted', records: { data: [{ pubkey: publicKey }] } });
    expect(await statusOfRow(signer)).toBeUndefined();
  });

  it('a deletion that ends after the retirement leaves a key that nobody signs with, and can be repeated', async () => {
    const signer = await world.start();
    await importOne(signer.parts, secretKey, { persist: true });
    expect(await signer.ask(publicKey, attestation({ source: 10, target: 11 }))).toBe('signed');
    const failing = { ...signer.parts.slashing, export: () => Promise.reject(new Error('the disk is gone')) };
    await expect(deleteOne({ ...signer.parts, slashing: failing }, publicKey, true)).rejects.toThrow(
      'the disk is gone',
    );
    expect(await statusOfRow(signer)).toBe('active');
    await signer.loader.refresh();
    expect(await signer.ask(publicKey, attestation({ source: 11, target: 12 }))).toBe('key_retired');
    expect(await deleteOne(signer.parts, publicKey, true)).toMatchObject({ status: 'deleted' });
  });

  it('a key that was deleted and is imported again signs, and its old records stay', async () => {
    const signer = await world.start();
    await importOne(signer.parts, secretKey, { persist: true });
    expect(await signer.ask(publicKey, attestation({ source: 10, target: 11 }))).toBe('signed');
    expect(await deleteOne(signer.parts, publicKey, true)).toMatchObject({ status: 'deleted' });
    expect(await importOne(signer.parts, secretKey, { persist: true })).toMatchObject({ status: 'imported' });
    expect(await signer.ask(publicKey, attestation({ source: 10, target: 11, head: rootOf(7) }))).toBe('double_vote');
    expect(await signer.ask(publicKey, attestation({ source: 11, target: 12 }))).toBe('signed');
  });

  it('a key made inactive is refused by every signer of the store before its row says so and once more after it, and signs when it is active again', async () => {
    const signer = await world.start();
    await importOne(signer.parts, secretKey, { persist: true });
    const { slashing } = signer.parts;
    const statuses: unknown[] = [];
    const watching = {
      ...slashing,
      endTenures: async (publicKeys: readonly string[]) => {
        const ended = await slashing.endTenures(publicKeys);
        statuses.push(await statusOfRow(signer));
        return ended;
      },
    };
    await changeOne({ ...signer.parts, slashing: watching }, publicKey, 'inactive');
    expect(statuses).toEqual(['active', 'inactive']);
    expect(await retiredKeys(signer.backend)).toEqual([publicKey]);
    expect(await changeOne(signer.parts, publicKey, 'active')).toMatchObject({ status: 'updated' });
    expect(await retiredKeys(signer.backend)).toEqual([]);
    expect(await signer.ask(publicKey, attestation({ source: 10, target: 11 }))).toBe('signed');
  });

  it('a deletion whose key cannot be retired leaves the key whole, and can be repeated', async () => {
    const signer = await world.start();
    await importOne(signer.parts, secretKey, { persist: true });
    const slashing = { ...signer.parts.slashing, endTenures: () => Promise.reject(new Error('the disk is gone')) };
    await expect(deleteOne({ ...signer.parts, slashing }, publicKey, true)).rejects.toThrow('the disk is gone');
    expect(await statusOfRow(signer)).toBe('active');
    await signer.loader.refresh();
    expect(await signer.ask(publicKey, randaoReveal())).toBe('signed');
    expect(await deleteOne(signer.parts, publicKey, true)).toMatchObject({ status: 'deleted' });
  });

  /** A failover loses the answered mark so many times, while another replica signs. */
  const losingMarks = (signer: ManagedSigner, losses: number) => {
    const { slashing } = signer.parts;
    let exports = 0;
    return {
      ...slashing,
      export: async (publicKeys: readonly string[]) => {
        const answer = await slashing.export(publicKeys);
        exports += 1;
        if (exports > losses) return answer;
        await reinstate(signer.backend, [publicKey]);
        const tenure = (await signer.backend.tenures([publicKey])).get(publicKey) ?? 0;
        const message = { ...vote(0, 20 + exports, 21 + exports, 'other replica'), publicKey, tenure };
        expect(verdictName(await checkOne(signer.backend, message))).toBe('safe');
        return answer;
      },
    };
  };

  it('a store that loses the mark before the file is answered: what others signed meanwhile is in the file', async () => {
    const signer = await world.start();
    await importOne(signer.parts, secretKey, { persist: true });
    const slashing = losingMarks(signer, 1);
    const deleted = await deleteOne({ ...signer.parts, slashing }, publicKey, true);
    expect(deleted).toMatchObject({ status: 'deleted' });
    expect(JSON.stringify(deleted.records)).toContain('"target_epoch":"22"');
    expect(await retiredKeys(signer.backend, [publicKey])).toEqual([publicKey]);
  });

  it('a store that loses every mark gets no file answered, and the row stays', async () => {
    const signer = await world.start();
    await importOne(signer.parts, secretKey, { persist: true });
    const slashing = losingMarks(signer, Number.POSITIVE_INFINITY);
    await expect(deleteOne({ ...signer.parts, slashing }, publicKey, true)).rejects.toMatchObject({
      reason: 'slashing_unavailable',
    });
    expect(await statusOfRow(signer)).toBe('active');
  });
});
