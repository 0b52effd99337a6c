// Execution addresses in text. Mixed case states a checksum (EIP-55); one that does not hold is refused as mistyped.

import { hash } from 'node:crypto';
import { decodeHex, encodeHex } from './hex.ts';

interface AddressRefused {
  readonly refused: 'not_an_address' | 'wrong_checksum';
}

const ADDRESS_BYTES = 20;

export function canonicalAddress(text: string): string | AddressRefused {
  const bytes = decodeHex(text, ADDRESS_BYTES);
  if (bytes === undefined) return { refused: 'not_an_address' };
  const digits = text.slice(-2 * ADDRESS_BYTES);
  const statesChecksum = /[a-f]/.test(digits) && /[A-F]/.test(digits);
  return statesChecksum && digits !== checksummed(digits.toLowerCase())
    ? { refused: 'wrong_checksum' }
    : encodeHex(bytes);
}

/** EIP-55: a letter is upper case where the digit of the Keccak-256 of the lower-case digits is 8 or more. */
function checksummed(digits: string): string {
  const nibbles = hash('keccak-256', digits, 'hex');
  return digits.replaceAll(/[a-f]/g, (letter, at: number) =>
    Number.parseInt(nibbles[at] ?? '', 16) >= 8 ? letter.toUpperCase() : letter,
  );
}
