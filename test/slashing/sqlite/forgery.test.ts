// Somebody who can write the database, and has rows with codes that were good once: what was forgotten, retired, raised
// or counted stays so, or is noticed.

import { describe, expect, it } from 'vitest';
import { RETAINED_EPOCHS, RETAINED_SLOTS } from '../../../signer/slashing/history/prune.ts';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import { block, checkOne, collect, publicKeyOf, verdictName, vote } from '../../support/slashing.ts';
import { ownDatabase } from './own-database.ts';

const FAR_SLOT = RETAINED_SLOTS + 1000;
const FAR_EPOCH = RETAINED_EPOCHS + 1000;

const database = ownDatabase();
const { open, tamper } = database;

describe.each([
  ['checksums', undefined],
  ['a master key', new Uint8Array(32).fill(9)],
])('with %s', (_name, integrityKey) => {
  async function verdict(backend: SlashingBackend, message: Parameters<typeof checkOne>[1]): Promise<string> {
    return verdictName(await checkOne(backend, message));
  }

  it('rows that were pruned and are put back are noticed, also in the place of others', async () => {
    const backend = await open(integrityKey);
    for (const slot of [10, 20, 30, FAR_SLOT, FAR_SLOT + 10]) await checkOne(backend, block(1, slot, 'a'));
    for (const epoch of [4, 6, FAR_EPOCH, FAR_EPOCH + 4]) await checkOne(backend, vote(1, epoch - 1, epoch, 'a'));
    tamper('CREATE TABLE b AS SELECT * FROM blocks', 'CREATE TABLE a AS SELECT * FROM attestations');
    while ((await backend.pruneStep(100)) > 0);
    expect(await backend.status()).toMatchObject({ blocks: 2, attestations: 2 });
    tamper(
      `DELETE FROM blocks WHERE slot = ${FAR_SLOT}`,
      'INSERT INTO blocks SELECT * FROM b WHERE slot = 10',
      `DELETE FROM attestations WHERE target_epoch = ${FAR_EPOCH}`,
      'INSERT INTO attestations SELECT * FROM a WHERE target_epoch = 4',
    );
    expect(await verdict(backend, block(1, 10, 'a'))).toBe('slashing_integrity');
    expect(await verdict(backend, block(1, FAR_SLOT, 'x'))).toBe('block_below_low_water_mark');
    expect(await verdict(backend, block(1, FAR_SLOT + 5, 'x'))).toBe('slashing_integrity');
    expect(await verdict(backend, vote(1, 3, 4, 'a'))).toBe('slashing_integrity');
    expect(await verdict(backend, vote(1, FAR_EPOCH, FAR_EPOCH + 2, 'x'))).toBe('slashing_integrity');
    await expect(collect(backend.exportHistories())).rejects.toMatchObject({ reason: 'slashing_integrity' });
  });

  it('all rows of a key and its head deleted: the key is 503, and so is every key that is new', async () => {
    const backend = await open(integrityKey);
    for (const key of [1, 2]) await checkOne(backend, block(key, 10, 'a'));
    tamper('DELETE FROM validators WHERE id = 1', 'DELETE FROM blocks WHERE validator = 1');
    expect(await verdict(backend, block(1, 10, 'b'))).toBe('slashing_integrity');
    expect(await verdict(backend, block(3, 10, 'b'))).toBe('slashing_integrity');
    expect(await verdict(backend, block(2, 11, 'b'))).toBe('safe');
    await expect(backend.endTenures([publicKeyOf(1)])).rejects.toMatchObject({ reason: 'slashing_integrity' });
  });

  it('a row of nobody in the place of a deleted head does not make the number of keys right', async () => {
    const backend = await open(integrityKey);
    for (const key of [1, 2]) await checkOne(backend, block(key, 10, 'a'));
    tamper('UPDATE validators SET public_key = zeroblob(48) WHERE id = 1', 'DELETE FROM blocks WHERE validator = 1');
    expect(await verdict(backend, block(1, 10, 'b'))).toBe('slashing_integrity');
    expect(await verdict(backend, block(2, 11, 'b'))).toBe('safe');
  });

  it('a retired key is not freed by its flag', async () => {
    const backend = await open(integrityKey);
    await checkOne(backend, block(1, 10, 'a'));
    await backend.endTenures([publicKeyOf(1)]);
    tamper('UPDATE validators SET tenure = 0');
    expect(await verdict(backend, block(1, 20, 'b'))).toBe('slashing_integrity');
  });

  it.each([
    ['the floor lowered', 'UPDATE metadata SET floor_slot = 5'],
    ['the floor taken away', 'UPDATE metadata SET floor_slot = NULL'],
    ['another id', 'UPDATE metadata SET store_id = zeroblob(16)'],
    ['an incarnation', "UPDATE metadata SET incarnation = 'x'"],
    ['a number of keys', 'UPDATE metadata SET validator_count = 1'],
    ['the record deleted', 'DELETE FROM metadata'],
  ])('the record of the store, %s: nothing is signed, and it is not opened again', async (_change, statement) => {
    const backend = await open(integrityKey);
    await backend.jump({ slot: 100, sourceEpoch: 3, targetEpoch: 4 });
    tamper(statement);
    const damage = { reason: 'slashing_integrity' };
    await expect(checkOne(backend, block(1, 200, 'b'))).rejects.toMatchObject(damage);
    await expect(backend.identity()).rejects.toMatchObject(damage);
    await expect(backend.incarnate('', 'x')).rejects.toMatchObject(damage);
    await expect(collect(backend.exportHistories())).rejects.toThrow();
    await backend.close();
    await expect(open(integrityKey)).rejects.toThrow(/metadata/);
  });
});
