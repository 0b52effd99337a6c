// Hex on the wire: with or without 0x, in any case; out in lower case with 0x.

const HEX = /^(?:0x|0X)?(?:[0-9a-fA-F]{2})*$/;

export function decodeHex(text: string, length?: number): Uint8Array | undefined {
  const digits = digitsOf(text);
  if (digits === undefined || (length !== undefined && digits.length !== length * 2)) return undefined;
  return Buffer.from(digits, 'hex');
}

/** For texts of megabytes, which a regular expression would not get through. */
export function decodeLongHex(text: string): Uint8Array | undefined {
  const digits = text[1] === 'x' || text[1] === 'X' ? text.slice(2) : text;
  if (digits.length !== text.length && text[0] !== '0') return undefined;
  // Buffer.from ends at the first pair that is no hex.
  const bytes = Buffer.from(digits, 'hex');
  return bytes.length * 2 === digits.length ? bytes : undefined;
}

export function encodeHex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`;
}

/** The one spelling of a validator public key: 48 bytes of hex. Says nothing about the curve. */
export function canonicalPublicKey(text: string): string | undefined {
  const digits = digitsOf(text);
  return digits?.length === 96 ? `0x${digits.toLowerCase()}` : undefined;
}

/** A match with its groups would cost more than the decoding. */
function digitsOf(text: string): string | undefined {
  if (!HEX.test(text)) return undefined;
  return text[1] === 'x' || text[1] === 'X' ? text.slice(2) : text;
}
