// Keystores of shares: what the member `distributed` has to be, and that a keystore with a bad one is refused whole.

import { describe, expect, it } from 'vitest';
import { parseKeystore } from '../../../signer/keys/keystores/keystore.ts';
import { addonForTests } from '../../support/addon.ts';
import { shareKeystore, testShare } from '../../support/distributed.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../../support/keys.ts';

describe.skipIf(!addonForTests())('the keystore of a share', () => {
  const given = addonForTests() ? testShare(1, 2) : undefined;
  const keystore = () => {
    if (given === undefined) throw new Error('no addon');
    return shareKeystore(given);
  };
  const withMember = (name: string, value: unknown) => {
    const whole = keystore();
    return parseKeystore({ ...whole, distributed: { ...whole.distributed, [name]: value } });
  };

  it('is of the composite key, and says which share it holds', () => {
    const parsed = parseKeystore(keystore());
    expect(parsed).toMatchObject({ publicKey: publicKeyOf(testSecret(1)), share: given?.share });
  });

  it('names the public key of the share', () => {
    for (const pubkey of [undefined, '']) {
      const refused = parseKeystore({ ...keystore(), pubkey });
      expect(refused).toMatchObject({ reason: 'pubkey: the keystore of a share names the public key of the share' });
    }
  });

  it.each<[string, unknown, RegExp]>([
    ['participant_id', 2, /^distributed\.participant_id: /],
    ['participant_id', '02', /^distributed\.participant_id: expected a decimal number/],
    ['participant_id', '5', /^distributed: participant_id is above the number of participants$/],
    ['signing_threshold', '2', /^distributed: 2 of 4 could sign two slashable messages/],
    ['signing_threshold', '4', /^distributed: there is one commitment for each of the threshold$/],
    ['participants', '33', /^distributed\.participants: expected at most 32$/],
    ['set', '0', /^distributed\.set: expected a decimal number/],
    ['composite_public_key', '0x00', /^distributed\.composite_public_key: expected 48 bytes of hex$/],
    ['composite_public_key', `0x${'ab'.repeat(48)}`, /^distributed: the first commitment is the composite public key$/],
    ['commitments', [], /^distributed\.commitments: /],
    ['signing_thresold', '3', /^distributed: /],
  ])('with %s %j is refused, with the place', (name, value, reason) => {
    const parsed = withMember(name, value);
    expect(parsed).toMatchObject({ refused: 'malformed_keystore' });
    expect('reason' in parsed ? parsed.reason : '').toMatch(reason);
  });

  it.each([null, 'share', []])('with a member %j is refused', (distributed) => {
    expect(parseKeystore({ ...keystore(), distributed })).toMatchObject({ refused: 'malformed_keystore' });
  });
});

it('a keystore without the member holds a whole key', () => {
  const parsed = parseKeystore(encryptKeystore(testSecret(1), 'password'));
  expect(parsed).toMatchObject({ publicKey: publicKeyOf(testSecret(1)), share: undefined });
});
