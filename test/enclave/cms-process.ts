// A process that opens CMS messages for cms-wiping.test.ts, which searches its memory: sends the public key that they
// are to be made for, opens what comes, keeps what came out until it is told to wipe it.

import { createHash, generateKeyPairSync } from 'node:crypto';
import { openCms } from '../../enclave/kms/cms.ts';

export type CmsRequest =
  | { readonly kind: 'open'; readonly messages: readonly Uint8Array[] }
  | { readonly kind: 'wipe' };

if (import.meta.main) {
  process.once('disconnect', () => process.exit());
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const keyIdentifier = createHash('sha256').update(spki).digest();
  let opened: Buffer[] = [];
  process.on('message', (request: CmsRequest) => {
    if (request.kind === 'open') opened = request.messages.map((one) => openCms(one, { privateKey, keyIdentifier }));
    else for (const plaintext of opened) plaintext.fill(0);
    process.send?.(opened.length);
  });
  process.send?.(spki);
}
