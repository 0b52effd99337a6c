// The steps of a deletion: the key signs no more, its records are answered, its row goes; and whatever fails between
// leaves it whole or can be repeated. On a real key table and slashing protection on SQLite.

import { describe, expect, it } from 'vitest';
import { SignerError } from '../../../signer/api/errors.ts';
import type { KeyManagementParts, SlashingFiles } from '../../../signer/keys/management/management.ts';
import type { KeyTable } from '../../../signer/keys/table/types.ts';
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

describe('a change that fails', () => {
  const AWAY = new SignerError('slashing_unavailable');
  const failing = (signer: ManagedSigner, changes: Partial<SlashingFiles>): KeyManagementParts => ({
    ...signer.parts,
    slashing: { ...signer.parts.slashing, ...changes },
  });
  const withRows = (signer: ManagedSigner, changes: Partial<KeyTable>): KeyManagementParts => {
    const { table } = signer.parts;
    if (table === undefined) throw new Error('this world has a table');
    return { ...signer.parts, table: { ...table, rows: { ...table.rows, ...changes } } };
  };
  const away = () => Promise.reject(AWAY);
  const tableIsAway = () => Promise.reject(new SignerError('key_table_unavailable'));
  const onSecond = <T>(call: (publicKeys: readonly string[]) => Promise<T>) => {
    let calls = 0;
    return (publicKeys: readonly string[]): Promise<T> => (++calls === 2 ? away() : call(publicKeys));
  };
  /** By the step that fails, and what is true of the key then. */
  const STEPS: Readonly<Record<string, [(signer: ManagedSigner) => KeyManagementParts, 'signs' | 'has left']>> = {
    'the end of the tenure': [(signer) => failing(signer, { endTenures: away }), 'signs'],
    'the first file': [(signer) => failing(signer, { export: away }), 'has left'],
    'the second end': [
      (signer) => failing(signer, { endTenures: onSecond(signer.parts.slashing.endTenures) }),
      'has left',
    ],
    'the second file': [(signer) => failing(signer, { export: onSecond(signer.parts.slashing.export) }), 'has left'],
    'the right to sign': [
      (signer) =>
        failing(signer, {
          assertInForce: () => {
            throw new SignerError('slashing_unbound');
          },
        }),
      'has left',
    ],
  };
  const BY = {
    'the Key Manager API': [false, false],
    'the chamber, in memory': [false, true],
    'the chamber': [true, true],
  } as const;

  describe.each(Object.entries(BY))('a deletion by %s', (_, [persist, fromTable]) => {
    it.each(Object.keys(STEPS))(
      'at %s keeps the copy, says how far it came, and is finished by repeating it',
      async (step) => {
        const [broken, state] = STEPS[step] ?? [];
        const signer = await world.start();
        await importOne(signer.parts, secretKey, { persist });
        expect(await signer.ask(publicKey, attestation({ source: 10, target: 11 }))).toBe('signed');
        const fault = deleteOne(broken?.(signer) ?? signer.parts, publicKey, fromTable);
        await expect(fault).rejects.toMatchObject({
          status: 503,
          hint: expect.stringMatching(state === 'signs' ? /keeps its copies.*repeat/ : /have left.*repeat/),
        });
        expect(signer.changeLines.filter(({ message }) => /keeps its copies/.test(message))).toHaveLength(1);
        expect(signer.store.publicKeys()).toEqual([publicKey]);
        expect(await signer.ask(publicKey, randaoReveal())).toBe(state === 'signs' ? 'signed' : 'key_retired');
        const vote = attestation({ source: 11, target: 12 });
        expect(await signer.ask(publicKey, vote)).toBe(state === 'signs' ? 'signed' : 'key_retired');
        const again = await deleteOne(signer.parts, publicKey, fromTable);
        expect(again).toMatchObject({ status: 'deleted', records: { data: [{ pubkey: publicKey }] } });
        expect(signer.store.publicKeys()).toEqual([]);
        expect(await statusOfRow(signer)).toBeUndefined();
      },
    );
  });

  it('with the table away removes no key that may have a row, and one of memory alone all the same', async () => {
    const signer = await world.start();
    const broken = withRows(signer, { existing: tableIsAway, get: tableIsAway, delete: tableIsAway });
    await importOne(signer.parts, secretKey, { persist: true });
    for (const fromTable of [true, false]) {
      await expect(deleteOne(broken, publicKey, fromTable)).rejects.toMatchObject({ reason: 'key_table_unavailable' });
      expect(await signer.ask(publicKey, randaoReveal())).toBe('signed');
    }
    expect(await deleteOne(signer.parts, publicKey, true)).toMatchObject({ status: 'deleted' });
    for (const fromTable of [true, false]) {
      await importOne(signer.parts, secretKey, { persist: false });
      expect(await deleteOne(broken, publicKey, fromTable)).toMatchObject({ status: 'deleted' });
      expect(signer.store.publicKeys()).toEqual([]);
    }
  });

  it.each([
    ['the end of the tenure', (signer: ManagedSigner) => failing(signer, { endTenures: away }), 'signed'],
    ['the row', (signer: ManagedSigner) => withRows(signer, { setStatus: tableIsAway }), 'key_retired'],
  ] as const)('a change of status at %s keeps the copy, and is finished by repeating it', async (_, broken, answer) => {
    const signer = await world.start();
    await importOne(signer.parts, secretKey, { persist: true });
    await expect(changeOne(broken(signer), publicKey, 'inactive')).rejects.toMatchObject({
      hint: expect.stringContaining('keeps its copies'),
    });
    expect(await signer.ask(publicKey, randaoReveal())).toBe(answer);
    expect(await changeOne(signer.parts, publicKey, 'inactive')).toMatchObject({ status: 'updated' });
    expect(signer.store.find(publicKey)).toBeUndefined();
  });

  it('an import whose row is written, and nothing after it, is finished by repeating it; another says what to do', async () => {
    const signer = await world.start();
    await importOne(signer.parts, secretKey, { persist: true });
    await deleteOne(signer.parts, publicKey, true);
    // As a process does that is killed when its row is written.
    await signer.table.create([{ publicKey, secretKey, status: 'active', backup: undefined, deposit: undefined }]);
    await signer.loader.refresh();
    expect(await signer.ask(publicKey, randaoReveal())).toBe('key_retired');
    expect(await importOne(signer.parts, secretKey, { persist: false })).toMatchObject({
      status: 'error',
      message: expect.stringMatching(/make it active/),
    });
    expect(await importOne(signer.parts, secretKey, { persist: true })).toMatchObject({ status: 'imported' });
    expect(await signer.ask(publicKey, attestation({ source: 10, target: 11 }))).toBe('signed');
    expect(await importOne(signer.parts, secretKey, { persist: true })).toMatchObject({ status: 'duplicate' });
    await changeOne(signer.parts, publicKey, 'inactive');
    expect(await importOne(signer.parts, secretKey, { persist: true })).toMatchObject({
      status: 'duplicate',
      message: expect.stringMatching(/inactive/),
    });
  });
});
