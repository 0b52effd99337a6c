// Whether a text is an age X25519 recipient (C2SP age v1). Apart from age.ts, so that reading a configuration, or the
// help of its options, loads no cryptography.

import { bech32 } from '@scure/base';

const RECIPIENT_BYTES = 32;
const RECIPIENT = /^age1[02-9ac-hj-np-z]{58}$/;

export function isAgeRecipient(text: string): boolean {
  if (!RECIPIENT.test(text)) return false;
  try {
    const { prefix, bytes } = bech32.decodeToBytes(text);
    return prefix === 'age' && bytes.length === RECIPIENT_BYTES;
  } catch {
    return false;
  }
}
