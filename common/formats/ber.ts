// The form of BER, byte by byte (ITU-T X.690 §8), for asn1js is lenient where a reader of foreign bytes must not be.

const MAX_DEPTH = 16;

const CONSTRUCTED = 0x20;
const TAG_NUMBER = 0x1f;
const INDEFINITE = 0x80;
/** X.690 §8.2, §8.3, §8.8, §8.19: always primitive. */
const PRIMITIVE = { boolean: 1, integer: 2, null: 5, oid: 6 } as const;
/** §8.9, §8.11: always constructed. */
const SEQUENCE = 16;
const SET = 17;

/** Every length in its shortest form, or indefinite; one form for each type; tags below 31. */
export function isStrictBer(bytes: Uint8Array): boolean {
  return valueEnd(bytes, 0, bytes.length, 0) === bytes.length;
}

function valueEnd(bytes: Uint8Array, start: number, limit: number, depth: number): number | undefined {
  const identifier = bytes[start];
  if (depth > MAX_DEPTH || identifier === undefined || !hasItsForm(identifier)) return undefined;
  const isConstructed = (identifier & CONSTRUCTED) !== 0;
  const contents = start + 2;
  if (bytes[start + 1] === INDEFINITE) {
    return isConstructed ? membersEnd(bytes, contents, limit, depth, 'marked') : undefined;
  }
  const length = shortestLength(bytes, start + 1);
  if (length === undefined) return undefined;
  const end = length.contents + length.bytes;
  if (end > limit) return undefined;
  if (isConstructed) return membersEnd(bytes, length.contents, end, depth, 'known');
  return hasItsContents(identifier, bytes.subarray(length.contents, end)) ? end : undefined;
}

/** @param end `marked` by end-of-contents octets, part of the value; or `known`: the limit itself */
function membersEnd(
  bytes: Uint8Array,
  start: number,
  limit: number,
  depth: number,
  end: 'marked' | 'known',
): number | undefined {
  let at = start;
  while (at < limit) {
    // §8.1.5. Their identifier, universal 0, is no value's.
    if (end === 'marked' && bytes[at] === 0) return bytes[at + 1] === 0 && at + 2 <= limit ? at + 2 : undefined;
    const next = valueEnd(bytes, at, limit, depth + 1);
    if (next === undefined) return undefined;
    at = next;
  }
  return end === 'known' ? at : undefined;
}

function hasItsForm(identifier: number): boolean {
  const number = identifier & TAG_NUMBER;
  if (number === TAG_NUMBER) return false; // §8.1.2.4: in more octets
  if (identifier >> 6 !== 0) return true; // another class than universal: its form is its type's
  if (number === 0) return false;
  const isConstructed = (identifier & CONSTRUCTED) !== 0;
  if (number === SEQUENCE || number === SET) return isConstructed;
  return !isConstructed || !Object.values<number>(PRIMITIVE).includes(number);
}

/** §8.1.3.5 leaves the number of octets to the sender; here it is the minimum, as in §10.1. Up to 65,535 bytes. */
function shortestLength(
  bytes: Uint8Array,
  at: number,
): { readonly bytes: number; readonly contents: number } | undefined {
  const [first, second, third] = bytes.subarray(at, at + 3);
  if (first === undefined) return undefined;
  if (first < 0x80) return { bytes: first, contents: at + 1 };
  if (first === 0x81 && second !== undefined && second >= 0x80) return { bytes: second, contents: at + 2 };
  if (first !== 0x82 || second === undefined || second === 0 || third === undefined) return undefined;
  return { bytes: second * 0x100 + third, contents: at + 3 };
}

function hasItsContents(identifier: number, contents: Uint8Array): boolean {
  if (identifier === PRIMITIVE.null) return contents.length === 0;
  if (identifier !== PRIMITIVE.oid) return true;
  // §8.19.2: a subidentifier does not begin with 0x80, and the last octet ends one.
  const ends = (at: number): boolean => at < 0 || (contents[at] ?? 0) < 0x80;
  return (
    contents.length > 0 && ends(contents.length - 1) && contents.every((byte, at) => byte !== 0x80 || !ends(at - 1))
  );
}
