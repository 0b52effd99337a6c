// Of any number of keystores that the key cache asks for, so many are held with their passwords as the limit says.

import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { KeystoreFile } from '../../../signer/keys/files/keystore-file.ts';
import { MOST_HELD, ReadAhead } from '../../../signer/keys/files/read-ahead.ts';
import { testSecret, writeKeystore } from '../../support/keys.ts';
import { at, directory } from './key-folder.ts';

const passwordOf = (file: KeystoreFile) => ('refused' in file ? file.refused : Buffer.from(file.password).toString());

it('the last one within the limit is as it was read; the first one beyond it is read once more', async () => {
  writeKeystore(directory.path, 'one', testSecret(0), 'TEST before');
  const place = { keystoreFile: at('one.json'), passwordFile: at('one.password'), file: at('one.yaml'), document: 1 };
  const places = Array.from({ length: MOST_HELD + 1 }, (_, order) => ({ ...place, order }));
  const ahead = new ReadAhead();
  const digests = await ahead.passwords(places, undefined);
  expect(digests.size).toBe(1);
  writeFileSync(at('one.password'), 'TEST after\n');
  const orders = await Promise.all(places.map(async (one) => passwordOf(await ahead.take(one))));
  expect(orders.filter((password) => password === 'TEST before')).toHaveLength(MOST_HELD);
  expect(orders.filter((password) => password === 'TEST after')).toHaveLength(1);
});
