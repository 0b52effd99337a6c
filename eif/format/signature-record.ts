// The CBOR of the signature section (specification/image.md#signature): anything of another shape is refused.

import type { CoseSign1 } from '../../common/attestation/document.ts';

const MAX_CERTIFICATE_BYTES = 16 * 1024;
const MAX_COSE_BYTES = 16 * 1024;
const PCR_BYTES = 48;

interface SignatureRecord {
  readonly certificate: Buffer;
  readonly cose: CoseSign1;
}

export class SignatureShapeError extends Error {
  constructor(problem: string) {
    super(`the signature section ${problem}`);
    this.name = 'SignatureShapeError';
  }
}

/** RFC 9053 §2.1: ECDSA with SHA-384. `{1: -35}`. */
export const ES384_HEADER = Buffer.from('a1013822', 'hex');

export function writeSignatureRecord({ certificate, cose }: SignatureRecord): Buffer {
  const sign1 = Buffer.concat([
    head(ARRAY, 4),
    bytes(cose.protectedHeader),
    head(MAP, 0),
    bytes(cose.payload),
    bytes(cose.signature),
  ]);
  const entry = [text('signing_certificate'), integers(certificate), text('signature'), integers(sign1)];
  return Buffer.concat([head(ARRAY, 1), head(MAP, 2), ...entry]);
}

export function readSignatureRecord(section: Buffer): SignatureRecord {
  const reader = new Reader(section);
  reader.expect(head(ARRAY, 1));
  reader.expect(head(MAP, 2));
  reader.expect(text('signing_certificate'));
  const certificate = reader.integers(MAX_CERTIFICATE_BYTES);
  reader.expect(text('signature'));
  const sign1 = reader.integers(MAX_COSE_BYTES);
  reader.end();
  return { certificate, cose: readCose(sign1) };
}

export function registerPayload(pcr0: Buffer): Buffer {
  return Buffer.concat([
    head(MAP, 2),
    text('register_index'),
    head(UNSIGNED, 0),
    text('register_value'),
    integers(pcr0),
  ]);
}

export function readRegisterPayload(payload: Buffer): Buffer {
  const reader = new Reader(payload);
  reader.expect(head(MAP, 2));
  reader.expect(text('register_index'));
  reader.expect(head(UNSIGNED, 0));
  reader.expect(text('register_value'));
  const pcr0 = reader.integers(PCR_BYTES);
  reader.end();
  if (pcr0.length !== PCR_BYTES) throw new SignatureShapeError('signs something that is no PCR');
  return pcr0;
}

/** RFC 9052 §4.4: the bytes that the key signs. */
export function signedBytes(protectedHeader: Buffer, payload: Buffer): Buffer {
  return Buffer.concat([
    head(ARRAY, 4),
    text('Signature1'),
    bytes(protectedHeader),
    bytes(Buffer.alloc(0)),
    bytes(payload),
  ]);
}

function readCose(sign1: Buffer): CoseSign1 {
  const reader = new Reader(sign1);
  reader.expect(head(ARRAY, 4));
  const protectedHeader = reader.bytes();
  reader.expect(head(MAP, 0));
  const payload = reader.bytes();
  const signature = reader.bytes();
  reader.end();
  return { protectedHeader, payload, signature };
}

/** RFC 8949 §3.1: the major types that occur. */
const UNSIGNED = 0;
const BYTES = 2;
const TEXT = 3;
const ARRAY = 4;
const MAP = 5;

/** The shortest head (RFC 8949 §4.2.1); no length here needs more than two bytes. */
function head(major: number, argument: number): Buffer {
  const initial = major << 5;
  if (argument < 24) return Buffer.from([initial | argument]);
  if (argument < 0x100) return Buffer.from([initial | 24, argument]);
  if (argument < 0x1_0000) return Buffer.from([initial | 25, argument >> 8, argument & 0xff]);
  throw new SignatureShapeError('would be too long');
}

function text(value: string): Buffer {
  return Buffer.concat([head(TEXT, value.length), Buffer.from(value, 'ascii')]);
}

function bytes(value: Buffer): Buffer {
  return Buffer.concat([head(BYTES, value.length), value]);
}

function integers(value: Buffer): Buffer {
  return Buffer.concat([head(ARRAY, value.length), ...Array.from(value, (byte) => head(UNSIGNED, byte))]);
}

class Reader {
  readonly #input: Buffer;
  #at = 0;

  constructor(input: Buffer) {
    this.#input = input;
  }

  expect(wanted: Buffer): void {
    if (!this.#take(wanted.length).equals(wanted))
      throw new SignatureShapeError('is not of the shape of an image’s signature');
  }

  bytes(): Buffer {
    return this.#take(this.#argument(BYTES, MAX_COSE_BYTES));
  }

  integers(maxLength: number): Buffer {
    const length = this.#argument(ARRAY, maxLength);
    return Buffer.from(Array.from({ length }, () => this.#argument(UNSIGNED, 0xff)));
  }

  end(): void {
    if (this.#at !== this.#input.length) throw new SignatureShapeError('has bytes left over');
  }

  #argument(major: number, max: number): number {
    const [initial = 0] = this.#take(1);
    if (initial >> 5 !== major) throw new SignatureShapeError('is not of the shape of an image’s signature');
    const low = initial & 0x1f;
    if (low > 25) throw new SignatureShapeError('has a length that is not allowed');
    const value = low < 24 ? low : this.#take(low - 23).readUIntBE(0, low - 23);
    if (value > max) throw new SignatureShapeError('has a length or a value that is too large');
    return value;
  }

  #take(length: number): Buffer {
    if (this.#at + length > this.#input.length) throw new SignatureShapeError('is cut off');
    this.#at += length;
    return this.#input.subarray(this.#at - length, this.#at);
  }
}
