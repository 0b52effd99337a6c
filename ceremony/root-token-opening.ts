// The root token, opened by a recipient. age does not authenticate the sender, so a decrypted text that does not have
// the form of a management token is refused. It is apart from root-token.ts because no enclave opens one.

import { type Decrypted, decryptWithIdentities } from './age-identity.ts';
import { ROOT_TOKEN } from './root-token.ts';

export type OpenedRootToken =
  | { readonly ok: true; readonly token: string }
  | { readonly ok: false; readonly refusal: 'not_armored' | 'not_for_identity' | 'damaged' | 'not_a_root_token' };

export async function openRootToken(armored: string, identities: readonly string[]): Promise<OpenedRootToken> {
  return readRootToken(await decryptWithIdentities(armored, identities));
}

/** @param decrypted what an identity made of the row; this function wipes it */
export function readRootToken(decrypted: Decrypted): OpenedRootToken {
  if (!decrypted.ok) return decrypted;
  const token = decrypted.plaintext.toString('latin1');
  decrypted.plaintext.fill(0);
  return ROOT_TOKEN.test(token) ? { ok: true, token } : { ok: false, refusal: 'not_a_root_token' };
}
