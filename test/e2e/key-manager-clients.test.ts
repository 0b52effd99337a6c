// The Key Manager API as others' software uses it: Lodestar's client of the standard, and keystores that ChainSafe's
// EIP-2335 library made.

import { create } from '@chainsafe/bls-keystore';
import { getClient } from '@lodestar/api/keymanager';
import { createChainForkConfig } from '@lodestar/config';
import { mainnetChainConfig } from '@lodestar/config/networks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { deploy } from '../support/deployment.ts';
import { attestation, rootOf, signCall, TEST_TOKEN, testKey } from '../support/requests.ts';

const PASSWORD = 'TEST password with \u{1F511} and n\u0303';
const imported = testKey(40);
let signer: RunningSigner;
beforeAll(async () => {
  const everything = {
    policies: [{ name: 'all', rules: [{ effect: 'allow' }] }],
    tokens: [{ secret: TEST_TOKEN, policies: ['all'] }],
  };
  signer = await deploy(1).start({ config: { static_auth: everything, http: { key_manager_api: { enabled: true } } } });
});
afterAll(() => signer.stop());

async function keystoreOf({ secret, publicKey }: { secret: string; publicKey: string }): Promise<string> {
  const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex.slice(2), 'hex'));
  const kdf = {
    function: 'pbkdf2' as const,
    params: { dklen: 32, c: 1000, prf: 'hmac-sha256' as const, salt: 'ab'.repeat(32) },
  };
  return JSON.stringify(
    await create(PASSWORD, bytes(secret), bytes(publicKey), 'm/12381/3600/0/0/0', 'a test key', kdf),
  );
}

describe("Lodestar's Key Manager client", () => {
  it('imports, lists and deletes a keystore that ChainSafe made, with its slashing data both ways', async () => {
    const config = createChainForkConfig(mainnetChainConfig);
    const client = getClient({ baseUrl: signer.url, globalInit: { bearerToken: TEST_TOKEN } }, { config });

    const files = await client.listKeys();
    files.assertOk();
    expect(files.value()).toEqual([expect.objectContaining({ readonly: true })]);

    const slashingProtection = JSON.stringify({
      metadata: {
        interchange_format_version: '5',
        genesis_validators_root: '0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95',
      },
      data: [
        {
          pubkey: imported.publicKey,
          signed_blocks: [],
          signed_attestations: [{ source_epoch: '100', target_epoch: '101' }],
        },
      ],
    });
    const keystores = [await keystoreOf(imported)];
    const importing = await client.importKeystores({ keystores, passwords: [PASSWORD], slashingProtection });
    importing.assertOk();
    expect(importing.value()).toEqual([{ status: 'imported' }]);

    const conflicting = attestation({ source: 100, target: 101, head: rootOf(4) });
    expect((await signCall(signer.url, imported.publicKey, conflicting)).status).toBe(412);
    expect((await signCall(signer.url, imported.publicKey, attestation({ source: 101, target: 102 }))).status).toBe(
      200,
    );

    const list = await client.listKeys();
    list.assertOk();
    expect(list.value().map(({ validatingPubkey }) => validatingPubkey)).toContain(imported.publicKey);

    const deleting = await client.deleteKeys({ pubkeys: [imported.publicKey] });
    deleting.assertOk();
    const { statuses, slashingProtection: exported } = deleting.value();
    expect(statuses).toEqual([{ status: 'deleted' }]);
    expect(
      JSON.parse(exported).data[0].signed_attestations.map((vote: { target_epoch: string }) => vote.target_epoch),
    ).toContain('102');
    expect((await signCall(signer.url, imported.publicKey, attestation({ source: 102, target: 103 }))).status).toBe(
      404,
    );
  });
});
