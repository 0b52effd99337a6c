// Whether a text is an age X25519 recipient (C2SP age v1). Apart from age.ts, so that reading a configuration, or the
// help of its options, loads no cryptography.

import { bech32 } from '@scure/base';

const RECIPIENT_BYTES = 32;
const RECIPIENT = /^age1[02-9ac-hj-np-z]{58}$/;

const OTHERS = [
  [/^age1pq1/, 'this is a post-quantum key'],
  [/^age1[a-z]+1/, 'this is the key of a plugin'],
  [/^ssh-/, 'this is a key of SSH'],
  [/^AGE-/i, 'this is a SECRET key: make another one, and give its public key'],
] as const;

export function notARecipient(text: string): string {
  const [, kind] = OTHERS.find(([form]) => form.test(text)) ?? [];
  const problem = 'must be an age X25519 public key, age1…, with a valid checksum';
  return kind === undefined ? problem : `${problem}: ${kind}`;
}

export function isAgeRecipient(text: string): boolean {
  if (!RECIPIENT.test(text)) return false;
  try {
    const { prefix, bytes } = bech32.decodeToBytes(text);
    return prefix === 'age' && bytes.length === RECIPIENT_BYTES;
  } catch {
    return false;
  }
}
