// What clients send wrongly, through the real program on sepolia (test/expected/client-faults.json): what is signed
// is the root that the consensus rules ask for, computed and verified here without the signer's code, and what is
// refused says why. Healed requests are counted, and their audit line names the fault.

import { PublicKey, Signature, verify } from '@chainsafe/blst';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { clientFaults } from '../expected/client-faults.ts';
import { type Chain, expectedRoot } from '../expected/expected-root.ts';
import { deployKeys } from '../support/deployment.ts';
import { chainOf } from '../support/networks.ts';
import { batchCall, call, signCall } from '../support/requests.ts';

const json = { headers: { accept: 'application/json' } };
const { key, vectors } = clientFaults();
const sepolia = chainOf(publicNetwork('sepolia'));
/** A fork that no table has, from the epoch of the vectors that are of it. */
const chain: Chain = {
  ...sepolia,
  forks: [...sepolia.forks, { name: 'heze', version: '0x90000077', epoch: 354_000 }],
};
const keys = [{ secret: key.secret, publicKey: key.pubkey }];

function isSigned(root: Uint8Array, signature: unknown): boolean {
  const bytes = (hex: string) => Buffer.from(hex.slice(2), 'hex');
  return verify(root, PublicKey.fromBytes(bytes(key.pubkey)), Signature.fromBytes(bytes(String(signature))));
}

describe('faults of clients', () => {
  let signer: RunningSigner;
  beforeAll(async () => {
    signer = await deployKeys(keys, { network: 'sepolia' }).start();
  });
  afterAll(() => signer.stop());

  it.each(vectors)('$name ($client)', async ({ request, reason, status, signature, signing_root, client_fault }) => {
    const answer = await signCall(signer.url, key.pubkey, request, json);
    const line = await signer.logged('request', { request_id: answer.headers.get('x-request-id') });
    if (reason !== undefined) {
      expect(answer.json).toMatchObject({ code: status, reason });
      expect(line).not.toHaveProperty('client_fault');
      return;
    }
    expect(answer.json).toEqual({ signature });
    const root = expectedRoot(request, chain);
    expect(encodeHex(root)).toBe(signing_root);
    expect(isSigned(root, signature)).toBe(true);
    expect(line).toMatchObject({ signing_root });
    expect(line['client_fault']).toBe(client_fault);
  });

  it('that were healed are counted by what was wrong', async () => {
    const counts = Map.groupBy(
      vectors.filter(({ client_fault }) => client_fault !== undefined),
      ({ client_fault }) => client_fault,
    );
    const metrics = async () => (await call(signer.metricsUrl, { token: null })).text;
    for (const [fault, healed] of counts) {
      const line = `svc_healed_requests_total{client_fault="${fault}"} ${healed.length}\n`;
      await expect.poll(metrics).toContain(line);
    }
    expect([...counts.keys()].sort()).toEqual(['earlier_fork', 'later_fork', 'stated_version', 'unknown_fork']);
  });

  it('are healed in a batch, too, each key counted', async () => {
    const healed = vectors.find(
      ({ client_fault, request }) => client_fault && request.type === 'SYNC_COMMITTEE_MESSAGE',
    );
    const answer = await batchCall(signer.url, [key.pubkey], healed?.request, json);
    expect(answer.json).toEqual([{ identifier: key.pubkey, signature: healed?.signature }]);
    const line = await signer.logged('request', { request_id: answer.headers.get('x-request-id') });
    expect(line).toMatchObject({ client_fault: healed?.client_fault, signed: 1 });
  });
});
