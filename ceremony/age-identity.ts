// The identities of age that people hold: made, recognised and used to decrypt. No enclave has one. It tells "not for
// this identity" apart from "not an age file".

import { armor, Decrypter, generateX25519Identity, identityToRecipient } from 'age-encryption';

const IDENTITY = /^AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}$/;

export function isAgeIdentity(text: string): boolean {
  if (!IDENTITY.test(text)) return false;
  try {
    new Decrypter().addIdentity(text);
    return true;
  } catch {
    return false;
  }
}

export async function generateAgeIdentity(): Promise<{ readonly identity: string; readonly recipient: string }> {
  const identity = await generateX25519Identity();
  return { identity, recipient: await identityToRecipient(identity) };
}

export type Decrypted =
  | { readonly ok: true; readonly plaintext: Buffer }
  | { readonly ok: false; readonly refusal: 'not_armored' | 'not_for_identity' | 'damaged' };

export async function decryptWithIdentities(armored: string, identities: readonly string[]): Promise<Decrypted> {
  const decrypter = new Decrypter();
  for (const identity of identities) decrypter.addIdentity(identity);
  let file: Uint8Array;
  try {
    file = armor.decode(armored);
  } catch {
    return { ok: false, refusal: 'not_armored' };
  }
  try {
    const { buffer, byteOffset, byteLength } = await decrypter.decrypt(file);
    return { ok: true, plaintext: Buffer.from(buffer, byteOffset, byteLength) };
  } catch (error) {
    const notOurs = error instanceof Error && error.message.startsWith('no identity matched');
    return { ok: false, refusal: notOurs ? 'not_for_identity' : 'damaged' };
  }
}
