// The backup of a generated key: its mnemonic, age-encrypted and armored to the configured recipients, so that `age -d`
// gives the words back. What is stored and returned is this text; the signer itself can never open it.

import { encryptToRecipients } from '../../../ceremony/age.ts';

/** @param recipients `chamber.keys.backup.recipients`, at least one */
export async function encryptMnemonic(mnemonic: string, recipients: readonly string[]): Promise<string> {
  const plaintext = Buffer.from(mnemonic, 'utf8');
  try {
    return await encryptToRecipients(plaintext, recipients);
  } finally {
    plaintext.fill(0);
  }
}
