// Shares and the key table, which has none of them yet.

import { describe, expect, it } from 'vitest';
import { SHARE_REFUSALS } from '../../../signer/keys/loaded-key.ts';
import { importKeys } from '../../../signer/keys/management/import.ts';
import { addonForTests } from '../../support/addon.ts';
import { SHARE_PASSWORD, shareKeystore, testShare } from '../../support/distributed.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../../support/keys.ts';
import type { ManagedSigner } from '../../support/managed-signer.ts';
import { world } from './managed-world.ts';

function importAll({ parts }: ManagedSigner, keystores: readonly object[], persist: boolean) {
  const items = keystores.map((keystore) => ({ keystore, password: Buffer.from(SHARE_PASSWORD) }));
  const request = { items, slashingProtection: undefined, persist, allows: () => true };
  return importKeys(request, parts, new AbortController().signal);
}

describe.skipIf(!addonForTests())('a share and the key table', () => {
  const share = () => shareKeystore(testShare(1, 1));
  const whole = (number: number) => encryptKeystore(testSecret(number), SHARE_PASSWORD);

  it('is refused with storage.persist, which says where it may go; the others of the request are taken', async () => {
    const signer = await world.start();
    const answers = await importAll(signer, [share(), whole(2)], true);
    expect(answers).toMatchObject([{ status: 'error', publicKey: publicKeyOf(testSecret(1)) }, { status: 'imported' }]);
    expect(answers[0]?.message).toMatch(/no shares.*key files.*key_sources\.memory\.persist_dir/);
    const rows = await signer.table.get([1, 2].map((number) => publicKeyOf(testSecret(number))));
    expect([...rows.keys()]).toEqual([publicKeyOf(testSecret(2))]);
  });

  it.each(['active', 'inactive'] as const)('is refused beside a row of its key that is %s', async (status) => {
    const signer = await world.start();
    await signer.table.create([{ publicKey: publicKeyOf(testSecret(1)), secretKey: testSecret(1), status }]);
    const [answer] = await importAll(signer, [share()], false);
    expect(answer).toMatchObject({ status: 'error', message: SHARE_REFUSALS.held_otherwise });
  });
});
