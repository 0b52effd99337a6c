// An enclave takes no shares of distributed keys yet, and has none of their routes: its attested status does not say
// for whom a share would be.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SHARE_REFUSALS } from '../../signer/keys/loaded-key.ts';
import { addonForTests } from '../support/addon.ts';
import { type AttestedClient, attested, registersOf } from '../support/attested-client.ts';
import { SHARE_PASSWORD, shareKeystore, testShare } from '../support/distributed.ts';
import type { Parent } from '../support/enclave-parent.ts';
import { type EnclaveWorld, startEnclaveWorld } from '../support/enclave-world.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { attestation } from '../support/requests.ts';

describe.skipIf(!addonForTests())('an enclave', () => {
  let world: EnclaveWorld;
  let parent: Parent;
  let client: AttestedClient;
  let token: string;
  beforeAll(async () => {
    world = await startEnclaveWorld();
    parent = await world.startParent();
    const { nsm } = await world.startEnclave();
    await parent.readyToSign();
    client = await attested(parent.tlsUrl, world.pki, registersOf(nsm));
    const root = await world.custody.rootToken(world.stateTable);
    await client.call('/api/v1/auth/policies', { token: root, body: { name: 'all', rules: [{ effect: 'allow' }] } });
    const created = await client.call('/api/v1/auth/tokens', { token: root, body: { policies: ['all'] } });
    token = String(created.json['token']);
  });
  afterAll(async () => {
    await client?.close();
    await parent?.close();
    await world.close();
  });

  it.each([false, true])(
    'imports no share (persist: %s), and the whole keys of the request as ever',
    async (persist) => {
      const whole = testSecret(persist ? 2 : 3);
      const keystores = [shareKeystore(testShare(1, 1)), encryptKeystore(whole, SHARE_PASSWORD)];
      const body = { keystores, passwords: [SHARE_PASSWORD, SHARE_PASSWORD], storage: { persist } };
      const { json } = await client.call('/api/v1/chamber/keys', { token, body });
      const message = persist ? expect.stringContaining('holds no shares') : SHARE_REFUSALS.share_unsupported;
      expect(json['data']).toEqual([
        { pubkey: publicKeyOf(testSecret(1)), status: 'error', message },
        { pubkey: publicKeyOf(whole), status: 'imported' },
      ]);
    },
  );

  it('has no routes of shares', async () => {
    for (const path of ['accounts', `accounts/${publicKeyOf(testSecret(1))}`]) {
      const answer = await client.call(`/api/v1/eth2/distributed/${path}`, { token });
      expect([answer.status, answer.json['reason']]).toEqual([404, 'not_found']);
    }
    for (const path of ['sign', `sign/${publicKeyOf(testSecret(1))}`]) {
      const answer = await client.call(`/api/v1/eth2/distributed/${path}`, { token, body: attestation() });
      expect([answer.status, answer.json['reason']]).toEqual([404, 'not_found']);
    }
  });
});
