// Armored files of age (C2SP age v1) for X25519 recipients, and no other kind. age-identity.ts opens them.

import { armor, Encrypter } from 'age-encryption';
import { isAgeRecipient } from './age-recipient.ts';

/** @returns the armored file; each recipient alone can open it */
export async function encryptToRecipients(plaintext: Uint8Array, recipients: readonly string[]): Promise<string> {
  if (recipients.length === 0) throw new Error('an age file needs a recipient');
  const encrypter = new Encrypter();
  for (const recipient of recipients) {
    if (!isAgeRecipient(recipient)) throw new Error('a recipient that no schema has checked');
    encrypter.addRecipient(recipient);
  }
  return armor.encode(await encrypter.encrypt(plaintext));
}
