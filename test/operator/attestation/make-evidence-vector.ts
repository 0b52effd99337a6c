// Writes test/vectors/evidence-v1.json, which is what this prints: `bin/pinned-node` with the name of this file. The
// keys in it are new each time, so it is made once for a form and kept; a change of the form is a new version with a
// file of its own. The test authority signs it: nothing in it proves anything about a real enclave.

import { createHash, X509Certificate } from 'node:crypto';
import { connectionNonce, keyBinding } from '../../../common/attestation/contract.ts';
import { extendedOnce } from '../../../common/formats/register.ts';
import { createNsm } from '../../../enclave/nsm/client.ts';
import { createIdentity } from '../../../enclave/ratls/identity.ts';
import { createNsmEmulator, testPcr } from '../../../rehearsal/nsm/emulator.ts';
import { createNsmPki } from '../../../rehearsal/nsm/pki.ts';

const NOW = Date.parse('2026-11-22T12:00:00Z');
const SHOWN_PCRS = [0, 1, 2, 8, 16, 17];
const CONFIGURATION = 'network: mainnet\n';

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

const configurationDigest = createHash('sha384').update(CONFIGURATION).digest();
const ceremonyDigest = createHash('sha384').update('the canonical bytes of a ceremony').digest();
const clock = { now: () => NOW };
const pki = await createNsmPki({ at: NOW });
const nsm = createNsm((await createNsmEmulator({ pki, clock })).exchange);
await nsm.extendPcr(16, configurationDigest);
await nsm.lockPcr(16);
await nsm.extendPcr(17, ceremonyDigest);
await nsm.lockPcr(17);
const identity = await createIdentity({ nsm, clock, validitySeconds: 3600 });

const exported = createHash('sha256').update('what a TLS connection exports').digest();
const clientNonce = createHash('sha256').update('what a client chooses').digest();
const nonce = connectionNonce(clientNonce, exported);
const fresh = await nsm.attest({ userData: keyBinding(identity.spki), nonce });
const pcrValues: Readonly<Record<number, Uint8Array>> = {
  16: extendedOnce(configurationDigest),
  17: extendedOnce(ceremonyDigest),
};

console.log(
  JSON.stringify(
    {
      comment:
        'Evidence of an emulated enclave (docs/specification/evidence.md), made by test/operator/attestation/make-evidence-vector.ts. Bytes are hex.',
      judged_at: new Date(NOW).toISOString(),
      test_root_sha256: pki.rootFingerprint,
      registers: Object.fromEntries(SHOWN_PCRS.map((index) => [index, hex(pcrValues[index] ?? testPcr(index))])),
      configuration: {
        text: CONFIGURATION,
        sha384: hex(configurationDigest),
        pcr16: hex(extendedOnce(configurationDigest)),
      },
      ceremony: { sha384: hex(ceremonyDigest), pcr17: hex(extendedOnce(ceremonyDigest)) },
      certificate: {
        der: hex(new X509Certificate(identity.cert).raw),
        spki: hex(identity.spki),
        user_data: hex(keyBinding(identity.spki)),
        document: hex(identity.document),
      },
      connection: { client_nonce: hex(clientNonce), exported: hex(exported), nonce: hex(nonce), document: hex(fresh) },
    },
    null,
    2,
  ),
);
