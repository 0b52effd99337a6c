// The CMS message (RFC 5652) in which KMS gives bytes to an enclave (specification/enclave.md#kms): exactly the
// structure that KMS sends. The content carries no MAC: its opener verifies what came out
// (specification/custody.md#share-binding).

import { constants, createDecipheriv, createHash, generateKeyPair, type KeyObject, privateDecrypt } from 'node:crypto';
import { promisify } from 'node:util';
import * as asn1js from 'asn1js';
import { isStrictBer } from '../../common/formats/ber.ts';
import type { Nsm } from '../../signer/tee/nsm.ts';
import { CmsError, type CmsProblem, type KmsRecipient, MAX_CMS_BYTES } from '../../signer/tee/recipient.ts';

interface CmsMessage {
  /** SHA-256 of the recipient's SubjectPublicKeyInfo, as it was in the attestation document. */
  readonly keyIdentifier: Buffer;
  /** 256 bytes: the content key under the recipient's. */
  readonly encryptedKey: Buffer;
  readonly iv: Buffer;
  readonly ciphertext: Buffer;
}

export function parseCms(bytes: Uint8Array): CmsMessage {
  const [contentType, content] = members(fromBer(bytes), SEQUENCE, 2, 'not_enveloped_data');
  demand(isOid(contentType, OID.envelopedData), 'not_enveloped_data');
  const [data] = members(content, context(0), 1, 'not_enveloped_data');
  // RFC 5652 §6.1: neither originatorInfo nor unprotectedAttrs.
  const [version, recipients, encryptedContent] = members(data, SEQUENCE, 3, 'not_enveloped_data');
  demand(isVersion2(version), 'version');
  const [recipient] = members(recipients, SET, 1, 'recipients');
  return { ...parseRecipient(recipient), ...parseContent(encryptedContent) };
}

interface RecipientKey {
  readonly privateKey: KeyObject;
  readonly keyIdentifier: Buffer;
}

/** @returns the plaintext, the caller's to wipe @throws CmsError */
export function openCms(bytes: Uint8Array, { privateKey, keyIdentifier }: RecipientKey): Buffer {
  const message = parseCms(bytes);
  demand(message.keyIdentifier.equals(keyIdentifier), 'other_recipient');
  // One name for every way in which decryption fails.
  const contentKey = attempt('undecryptable', () => privateDecrypt({ key: privateKey, ...OAEP }, message.encryptedKey));
  try {
    demand(contentKey.length === AES_KEY_BYTES, 'undecryptable');
    return attempt('undecryptable', () => decryptContent(contentKey, message));
  } finally {
    contentKey.fill(0);
  }
}

const OID = {
  envelopedData: '1.2.840.113549.1.7.3', // RFC 5652 §6.1
  data: '1.2.840.113549.1.7.1', // RFC 5652 §4
  rsaesOaep: '1.2.840.113549.1.1.7', // RFC 8017 appendix C
  mgf1: '1.2.840.113549.1.1.8',
  sha256: '2.16.840.1.101.3.4.2.1',
  aes256Cbc: '2.16.840.1.101.3.4.1.42', // RFC 3565 §4.1
} as const;

/** OpenSSL takes the hash of OAEP for MGF1 as well. */
const OAEP = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' };
const AES_KEY_BYTES = 32;
const AES_BLOCK_BYTES = 16;
const RSA_BYTES = 256;
const KEY_IDENTIFIER_BYTES = 32;
const LIMITS = { maxDepth: 16, maxNodes: 64, maxContentLength: MAX_CMS_BYTES, parseEmbedded: false };

interface Identity {
  readonly tagClass: number;
  readonly tagNumber: number;
}

/** X.690 §8.1.2: universal is class 1 of asn1js, context-specific class 3. */
const SEQUENCE: Identity = { tagClass: 1, tagNumber: 16 };
const SET: Identity = { tagClass: 1, tagNumber: 17 };
const INTEGER: Identity = { tagClass: 1, tagNumber: 2 };
const OBJECT_IDENTIFIER: Identity = { tagClass: 1, tagNumber: 6 };
const OCTET_STRING: Identity = { tagClass: 1, tagNumber: 4 };

function context(tagNumber: number): Identity {
  return { tagClass: 3, tagNumber };
}

type Node = asn1js.BaseBlock | undefined;

function fromBer(bytes: Uint8Array): Node {
  demand(bytes.length <= MAX_CMS_BYTES, 'too_large');
  const { offset, result } = attempt('not_ber', () => asn1js.fromBER(bytes, LIMITS));
  demand(offset !== -1 && result.error === '', 'not_ber');
  demand(offset === bytes.length, 'trailing_bytes');
  demand(isStrictBer(bytes), 'not_ber');
  return result;
}

/** RFC 5652 §6.2.1, KeyTransRecipientInfo of version 2. */
function parseRecipient(node: Node): Pick<CmsMessage, 'keyIdentifier' | 'encryptedKey'> {
  const [version, identifier, algorithm, key] = members(node, SEQUENCE, 4, 'recipients');
  demand(isVersion2(version), 'version');
  const keyIdentifier = octets(identifier, context(0), 'recipients');
  demand(keyIdentifier.length === KEY_IDENTIFIER_BYTES, 'recipients');
  demandOaep(algorithm);
  const encryptedKey = octets(key, OCTET_STRING, 'key_encryption');
  demand(encryptedKey.length === RSA_BYTES, 'key_encryption');
  return { keyIdentifier, encryptedKey };
}

/** RFC 8017 appendix A.2.1: hash and mask generation are stated, for their defaults are SHA-1. */
function demandOaep(node: Node): void {
  const [algorithm, parameters] = members(node, SEQUENCE, 2, 'key_encryption');
  demand(isOid(algorithm, OID.rsaesOaep), 'key_encryption');
  const [hash, maskGeneration] = members(parameters, SEQUENCE, 2, 'key_encryption');
  demandSha256(members(hash, context(0), 1, 'key_encryption')[0]);
  const [mask] = members(maskGeneration, context(1), 1, 'key_encryption');
  const [mgf1, mgf1Hash] = members(mask, SEQUENCE, 2, 'key_encryption');
  demand(isOid(mgf1, OID.mgf1), 'key_encryption');
  demandSha256(mgf1Hash);
}

function demandSha256(node: Node): void {
  const [hash, parameters] = members(node, SEQUENCE, 2, 'key_encryption');
  demand(isOid(hash, OID.sha256) && parameters instanceof asn1js.Null, 'key_encryption');
}

/** RFC 5652 §6.1, EncryptedContentInfo. */
function parseContent(node: Node): Pick<CmsMessage, 'iv' | 'ciphertext'> {
  const [contentType, algorithm, content] = members(node, SEQUENCE, 3, 'not_enveloped_data');
  demand(isOid(contentType, OID.data), 'not_enveloped_data');
  const [cipher, parameters] = members(algorithm, SEQUENCE, 2, 'content_encryption');
  demand(isOid(cipher, OID.aes256Cbc), 'content_encryption');
  const iv = octets(parameters, OCTET_STRING, 'content_encryption');
  demand(iv.length === AES_BLOCK_BYTES, 'content_encryption');
  const ciphertext = encryptedContent(content);
  demand(ciphertext.length > 0 && ciphertext.length % AES_BLOCK_BYTES === 0, 'content_size');
  return { iv, ciphertext };
}

function encryptedContent(node: Node): Buffer {
  if (!(node instanceof asn1js.Constructed)) return octets(node, context(0), 'not_enveloped_data');
  const segments = membersOf(node, context(0), 'not_enveloped_data');
  return Buffer.concat(segments.map((segment) => octets(segment, OCTET_STRING, 'not_enveloped_data')));
}

function decryptContent(contentKey: Buffer, { iv, ciphertext }: CmsMessage): Buffer {
  const decipher = createDecipheriv('aes-256-cbc', contentKey, iv);
  const parts: Buffer[] = [];
  try {
    parts.push(decipher.update(ciphertext));
    parts.push(decipher.final());
    const content = Buffer.from(new ArrayBuffer(parts.reduce((total, part) => total + part.length, 0)));
    let at = 0;
    for (const part of parts) at += part.copy(content, at);
    return content;
  } finally {
    for (const part of parts) part.fill(0);
  }
}

function members(node: Node, identity: Identity, count: number, problem: CmsProblem): readonly Node[] {
  const found = membersOf(node, identity, problem);
  demand(found.length === count, problem);
  return found;
}

function membersOf(node: Node, identity: Identity, problem: CmsProblem): readonly Node[] {
  demand(node instanceof asn1js.Constructed && is(node, identity) && node.idBlock.isConstructed, problem);
  return node.valueBlock.value;
}

function octets(node: Node, identity: Identity, problem: CmsProblem): Buffer {
  const isPrimitive = node instanceof asn1js.OctetString || node instanceof asn1js.Primitive;
  demand(isPrimitive && is(node, identity) && !node.idBlock.isConstructed, problem);
  demand(!node.lenBlock.isIndefiniteForm, problem);
  const view = node.valueBlock.valueHexView;
  return Buffer.from(view.buffer, view.byteOffset, view.byteLength);
}

function is({ idBlock }: asn1js.BaseBlock, { tagClass, tagNumber }: Identity): boolean {
  return idBlock.tagClass === tagClass && idBlock.tagNumber === tagNumber;
}

function isOid(node: Node, oid: string): boolean {
  return node instanceof asn1js.ObjectIdentifier && is(node, OBJECT_IDENTIFIER) && node.getValue() === oid;
}

function isVersion2(node: Node): boolean {
  // An ENUMERATED is an Integer for asn1js.
  if (!(node instanceof asn1js.Integer) || !is(node, INTEGER)) return false;
  return Buffer.from(node.valueBlock.valueHexView).equals(VERSION_2);
}

const VERSION_2 = Buffer.of(2);

function demand(condition: boolean, problem: CmsProblem): asserts condition {
  if (!condition) throw new CmsError(problem);
}

function attempt<Result>(problem: CmsProblem, run: () => Result): Result {
  try {
    return run();
  } catch {
    throw new CmsError(problem);
  }
}

/** The private key stays in OpenSSL's memory; no copy of it is ever on the JavaScript heap. */
export async function createKmsRecipient({ nsm }: { readonly nsm: Pick<Nsm, 'attest'> }): Promise<KmsRecipient> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: MODULUS_BITS });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const keyIdentifier = createHash('sha256').update(spki).digest();
  return {
    attest: () => nsm.attest({ publicKey: spki }),
    open: (ciphertextForRecipient) => openCms(ciphertextForRecipient, { privateKey, keyIdentifier }),
  };
}

/** KMS takes RSA of 2048 to 4096 bits. */
const MODULUS_BITS = 2048;
