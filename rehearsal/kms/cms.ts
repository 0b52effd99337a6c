// The sending side of KMS's CMS message, written from RFC 5652 and from captured ones, without a line of the code
// that reads it.

import { constants, createCipheriv, createHash, createPublicKey, publicEncrypt, randomBytes } from 'node:crypto';

/** As KMS sends them: indefinite lengths, the content in segments or in one piece; and the same in definite lengths. */
type CmsShape = 'segmented' | 'one_piece' | 'definite';

export const CMS_SHAPES: readonly CmsShape[] = ['segmented', 'one_piece', 'definite'];

interface CmsParts {
  readonly shape: CmsShape;
  readonly contentType: Buffer;
  readonly version: Buffer;
  readonly recipients: readonly Buffer[];
  readonly dataType: Buffer;
  readonly contentAlgorithm: Buffer;
  readonly ciphertext: Buffer;
  readonly more: Buffer;
}

interface RecipientParts {
  readonly version: Buffer;
  readonly identifier: Buffer;
  readonly algorithm: Buffer;
  readonly encryptedKey: Buffer;
}

export function cmsFor(
  spki: Uint8Array,
  plaintext: Uint8Array,
  parts: Partial<CmsParts> & { readonly recipient?: Partial<RecipientParts>; readonly contentKey?: Buffer } = {},
): Buffer {
  const contentKey = parts.contentKey ?? randomBytes(32);
  const iv = randomBytes(16);
  const cipher = createCipheriv('aes-256-cbc', contentKey.length === 32 ? contentKey : randomBytes(32), iv);
  return writeCms({
    recipients: [recipientInfo(spki, contentKey, parts.recipient)],
    contentAlgorithm: tlv(0x30, AES_256_CBC, tlv(0x04, iv)),
    ciphertext: Buffer.concat([cipher.update(plaintext), cipher.final()]),
    ...parts,
  });
}

export function recipientInfo(spki: Uint8Array, contentKey: Buffer, parts: Partial<RecipientParts> = {}): Buffer {
  const key = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
  const {
    version = VERSION_2,
    identifier = tlv(0x80, createHash('sha256').update(spki).digest()),
    algorithm = OAEP_SHA_256,
    encryptedKey = tlv(
      0x04,
      publicEncrypt({ key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' }, contentKey),
    ),
  } = parts;
  return tlv(0x30, version, identifier, algorithm, encryptedKey);
}

function writeCms(parts: Partial<CmsParts> & Pick<CmsParts, 'recipients' | 'contentAlgorithm' | 'ciphertext'>): Buffer {
  const { shape = 'segmented', version = VERSION_2, contentType = ENVELOPED_DATA, dataType = DATA } = parts;
  const open = shape === 'definite' ? tlv : indefinite;
  const content = shape === 'segmented' ? indefinite(0xa0, ...segments(parts.ciphertext)) : tlv(0x80, parts.ciphertext);
  const encryptedContent = open(0x30, dataType, parts.contentAlgorithm, content);
  const data = open(0x30, version, tlv(0x31, ...parts.recipients), encryptedContent, parts.more ?? Buffer.alloc(0));
  return open(0x30, contentType, open(0xa0, data));
}

/** Bouncy Castle, which KMS was seen to use, writes segments of 1000 bytes. */
function segments(ciphertext: Buffer): Buffer[] {
  const SEGMENT_BYTES = 1000;
  const count = Math.ceil(ciphertext.length / SEGMENT_BYTES);
  return Array.from({ length: count }, (_, at) =>
    tlv(0x04, ciphertext.subarray(at * SEGMENT_BYTES, (at + 1) * SEGMENT_BYTES)),
  );
}

/** X.690 §8.1.3: definite lengths, shortest form. */
export function tlv(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  const length = content.length;
  const head = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...head]), content]);
}

function indefinite(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  return Buffer.concat([Buffer.from([tag, 0x80]), ...contents, Buffer.from([0, 0])]);
}

const VERSION_2 = Buffer.from('020102', 'hex');
const ENVELOPED_DATA = Buffer.from('06092a864886f70d010703', 'hex');
export const DATA = Buffer.from('06092a864886f70d010701', 'hex');
export const AES_256_CBC = Buffer.from('060960864801650304012a', 'hex');
export const RSAES_OAEP = Buffer.from('06092a864886f70d010107', 'hex');
export const MGF1 = Buffer.from('06092a864886f70d010108', 'hex');
export const SHA_256 = tlv(0x30, Buffer.from('0609608648016503040201', 'hex'), tlv(0x05));
export const OAEP_SHA_256 = tlv(0x30, RSAES_OAEP, tlv(0x30, tlv(0xa0, SHA_256), tlv(0xa1, tlv(0x30, MGF1, SHA_256))));
