// A document, byte by byte, as docs/examples/attestation-document.txt shows one: every head of CBOR and, in the leaf,
// of DER on a line with its place and its meaning. It reads the bytes by itself, and stops at what the page does not
// describe.

const COLUMNS = 48;
const COLUMNS_BESIDE_MEANING = 28;
const BYTES_OF_HEAD: Readonly<Record<number, number>> = { 24: 1, 25: 2, 26: 4, 27: 8 };
/** By the place among the members of a TBSCertificate. */
const SIGNED_PARTS = [
  ...['version 3', 'serial number', 'AlgorithmIdentifier: ECDSA with SHA-384', 'issuer', 'validity', 'subject'],
  ...['SubjectPublicKeyInfo: a P-384 key', 'extensions'],
];
const EXTENSIONS: Readonly<Record<string, string>> = {
  '551d13': 'basicConstraints',
  '551d0f': 'keyUsage',
  '551d0e': 'subjectKeyIdentifier',
  '551d23': 'authorityKeyIdentifier',
};

interface Head {
  readonly major: number;
  readonly value: number;
  readonly end: number;
}

/** @throws when it is not a COSE_Sign1 of definite lengths */
export function annotated(document: Buffer): string {
  const lines: string[] = [];
  let at = 0;

  const show = (end: number, what: string): void => {
    const bytes = document.subarray(at, end);
    const meaning = what === '' ? '' : `  # ${what}`;
    const isLong = bytes.length > COLUMNS_BESIDE_MEANING && what !== '';
    if (isLong) lines.push(`${String(at).padStart(4)}${meaning}`);
    for (let from = 0; from < bytes.length; from += COLUMNS) {
      const hex = bytes.subarray(from, from + COLUMNS).toString('hex');
      lines.push(`${String(at + from).padStart(4)}  ${hex}${isLong ? '' : meaning}`);
    }
    at = end;
  };
  const headHere = (): Head => {
    const first = document.readUInt8(at);
    const [major, low] = [first >> 5, first & 31];
    const more = BYTES_OF_HEAD[low] ?? 0;
    if (low > 27) throw new Error(`byte ${at}: no head of definite length`);
    const value = more === 0 ? low : Number(BigInt(`0x${document.subarray(at + 1, at + 1 + more).toString('hex')}`));
    return { major, value, end: at + 1 + more };
  };
  const expect = (major: number, what: string): number => {
    const head = headHere();
    if (head.major !== major) throw new Error(`byte ${at}: ${what} is of another kind`);
    show(head.end, what);
    return head.value;
  };
  const bytes = (what: string, meaning = ''): void => {
    const { value } = headHere();
    expect(2, `${what}: ${value} bytes`);
    if (value > 0) show(at + value, meaning);
  };
  const name = (): string => {
    const { major, value, end } = headHere();
    if (major !== 3) throw new Error(`byte ${at}: a name is no text`);
    const text = document.toString('utf8', end, end + value);
    show(end + value, `"${text}"`);
    return text;
  };

  const tlv = (what: string, isWhole: boolean): number => {
    const long = document.readUInt8(at + 1);
    const more = long < 0x80 ? 0 : long & 0x7f;
    const length = more === 0 ? long : document.readUIntBE(at + 2, more);
    const body = at + 2 + more;
    show(isWhole ? body + length : body, what);
    return body + length;
  };
  const extensionsUntil = (end: number): void => {
    if (at >= end) return;
    const oid = document.subarray(at + 4, at + 4 + document.readUInt8(at + 3)).toString('hex');
    tlv(`        ${EXTENSIONS[oid] ?? 'an extension that is not read'}`, true);
    extensionsUntil(end);
  };
  const leaf = (): void => {
    tlv('Certificate', false);
    const endOfSigned = tlv('  TBSCertificate', false);
    for (const part of SIGNED_PARTS) {
      if (at >= endOfSigned) break;
      if (part !== 'extensions') tlv(`    ${part}`, true);
      else {
        tlv('    extensions', false);
        extensionsUntil(tlv('      as a list', false));
      }
    }
    tlv('  AlgorithmIdentifier: ECDSA with SHA-384', true);
    tlv('  signature, without unused bits', true);
  };

  expect(4, 'COSE_Sign1: an array of 4; no tag');
  bytes('protected header', '{1: -35}: ES384');
  expect(5, 'unprotected header: a map of 0');
  const payload = expect(2, 'payload: a byte string, the inside of which follows');
  const endOfPayload = at + payload;
  const members = expect(5, 'a map of its members');
  for (let member = 0; member < members; member += 1) {
    const of = name();
    if (of === 'pcrs') {
      const registers = expect(5, `a map of ${headHere().value}: the locked registers`);
      for (let register = 0; register < registers; register += 1) {
        const index = expect(0, `PCR${headHere().value}`);
        bytes(`of PCR${index}`);
      }
    } else if (of === 'cabundle') {
      const certificates = expect(4, `an array of ${headHere().value}, root first`);
      for (let each = 0; each < certificates; each += 1) bytes(each === 0 ? 'the root' : `below it, ${each}`);
    } else if (of === 'certificate') {
      expect(2, `the leaf: ${headHere().value} bytes of DER`);
      leaf();
    } else if (of === 'timestamp') expect(0, new Date(headHere().value).toISOString());
    else if (headHere().major === 3) name();
    else if (headHere().major === 7) expect(7, 'null');
    else bytes(of);
  }
  if (at !== endOfPayload) throw new Error('the payload does not end where it says');
  bytes('signature: r ‖ s');
  if (at !== document.length) throw new Error('something is behind the signature');
  return lines.join('\n');
}
