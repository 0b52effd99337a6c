// The root token in the ROOT_TOKEN_BOOTSTRAP row (specification/authorization.md#root-token), as an enclave writes it.

import { encryptToRecipients } from './age.ts';

export const ROOT_TOKEN = /^sr_mgmt_[A-Za-z0-9_-]{43}$/;

export async function encryptRootToken(token: Buffer, recipients: readonly string[]): Promise<string> {
  if (!ROOT_TOKEN.test(token.toString('latin1'))) throw new Error('a root token is a management token');
  return encryptToRecipients(token, recipients);
}
