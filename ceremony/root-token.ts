// The root token in the ROOT_TOKEN_BOOTSTRAP row: age-encrypted to the ceremony's recipients, and armored, so that `age
// -d` opens the row's `value` (specification/authorization.md#root-token). age does not authenticate the sender:
// whoever may write the row can put another text there. So a decrypted text that does not have the form of a management
// token is refused.

import { type Decrypted, decryptWithIdentities, encryptToRecipients } from './age.ts';

/** specification/authorization.md#tokens: `sr_mgmt_` and 32 bytes in base64url. */
const ROOT_TOKEN = /^sr_mgmt_[A-Za-z0-9_-]{43}$/;

/** @param token stays the caller's to wipe */
export async function sealRootToken(token: Buffer, recipients: readonly string[]): Promise<string> {
  if (!ROOT_TOKEN.test(token.toString('latin1'))) throw new Error('a root token is a management token');
  return encryptToRecipients(token, recipients);
}

export type OpenedRootToken =
  | { readonly ok: true; readonly token: string }
  | { readonly ok: false; readonly refusal: 'not_armored' | 'not_for_identity' | 'damaged' | 'not_a_root_token' };

/** @param identities age X25519 identities, any one of which may be a recipient's */
export async function openRootToken(armored: string, identities: readonly string[]): Promise<OpenedRootToken> {
  return readRootToken(await decryptWithIdentities(armored, identities));
}

/** @param decrypted what an identity made of the row, whoever opened it; it is wiped */
export function readRootToken(decrypted: Decrypted): OpenedRootToken {
  if (!decrypted.ok) return decrypted;
  const token = decrypted.plaintext.toString('latin1');
  decrypted.plaintext.fill(0);
  return ROOT_TOKEN.test(token) ? { ok: true, token } : { ok: false, refusal: 'not_a_root_token' };
}
