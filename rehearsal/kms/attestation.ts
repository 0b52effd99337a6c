// What the KMS stand-in does with `Recipient`, as AWS KMS documents it: the document is verified, its registers are
// compared with the conditions of the key, and the plaintext leaves in a CMS message. And every way in which KMS could
// get that wrong.

import { generateKeyPairSync } from 'node:crypto';
import { readPayload } from '../../common/attestation/document.ts';
import { verifyDocument } from '../../common/attestation/verify.ts';
import { decodeCbor } from '../../common/formats/cbor.ts';
import { CMS_SHAPES, cmsFor } from './cms.ts';

export const DISCLOSURES = [
  'plaintext_beside', // Plaintext, and the envelope as well
  'plaintext_instead', // as if the Recipient had been taken out of the request
  'no_envelope', // neither of them
  'foreign_envelope', // an envelope for a key that is not the document's
  'swapped_envelope', // what the key gave that was asked last before it, of those that answer honestly
  'replayed_envelope', // the first envelope that this key ever gave
  'truncated_envelope',
] as const;

export type Disclosure = (typeof DISCLOSURES)[number];

/** AWS Nitro Enclaves: KMS takes no document that is older. */
const MAX_DOCUMENT_AGE_SECONDS = 300;

export interface AttestedRecipient {
  readonly pcrs: ReadonlyMap<number, Buffer>;
  readonly publicKey: Buffer;
}

/** @returns the reason, when the document is not one that KMS would take */
export function attestedBy(
  document: Buffer,
  rootSha256: string,
  at: number,
): AttestedRecipient | { readonly refused: string } {
  const verdict = verifyDocument(document, {
    provider: { name: 'test', rootSha256 },
    at,
    maxAgeSeconds: MAX_DOCUMENT_AGE_SECONDS,
  });
  if (!verdict.authentic) return { refused: verdict.failures.map(({ code }) => code).join() };
  const { pcrs, publicKey } = verdict.document;
  return publicKey === undefined ? { refused: 'the document has no public key' } : { pcrs, publicKey };
}

/** What an attestation document says; who signed it is not checked. @throws when it is no document */
export function saidBy(document: Buffer): AttestedRecipient {
  const [, , payload] = decodeCbor(document, { tag: 18 }) as readonly [unknown, unknown, Buffer];
  const { pcrs, publicKey } = readPayload(payload);
  if (publicKey === undefined) throw new Error('the document has no public key');
  return { pcrs, publicKey };
}

interface DiscloseOptions {
  readonly attested: AttestedRecipient | undefined;
  readonly arn: string;
  readonly behaviour: Disclosure | 'honest';
}

/** The members of an answer that carry the plaintext, one way or the other. */
export type Disclose = (plaintext: Buffer, options: DiscloseOptions) => object;

/** The one place where plaintext leaves the server. Honest envelopes take every shape in turn. */
export function createDisclosures(): Disclose {
  const firstEnvelopes = new Map<string, Buffer>();
  const lastPlaintexts = new Map<string, Buffer>();
  let count = 0;

  const sealed = (spki: Buffer, plaintext: Buffer): Buffer => {
    const shape = CMS_SHAPES[count++ % CMS_SHAPES.length] ?? 'segmented';
    return cmsFor(spki, plaintext, { shape });
  };

  return (plaintext, { attested, arn, behaviour }) => {
    const clear = { Plaintext: plaintext.toString('base64') };
    if (attested === undefined) return clear;
    const honest = sealed(attested.publicKey, plaintext);
    if (!firstEnvelopes.has(arn)) firstEnvelopes.set(arn, honest);
    const envelope = (bytes: Buffer) => ({ CiphertextForRecipient: bytes.toString('base64') });
    if (behaviour === 'plaintext_beside') return { ...clear, ...envelope(honest) };
    if (behaviour === 'plaintext_instead') return clear;
    if (behaviour === 'no_envelope') return {};
    if (behaviour === 'foreign_envelope') return envelope(sealed(strangersKey(), plaintext));
    if (behaviour === 'truncated_envelope') return envelope(honest.subarray(0, -20));
    if (behaviour === 'replayed_envelope') return envelope(firstEnvelopes.get(arn) ?? honest);
    if (behaviour === 'swapped_envelope') return envelope(sealed(attested.publicKey, anothers(lastPlaintexts, arn)));
    lastPlaintexts.delete(arn); // a Map keeps the first place of a name
    lastPlaintexts.set(arn, plaintext);
    return envelope(honest);
  };
}

function anothers(plaintexts: ReadonlyMap<string, Buffer>, arn: string): Buffer {
  for (const [other, plaintext] of [...plaintexts].toReversed()) if (other !== arn) return plaintext;
  throw new Error('no other key has decrypted anything so far');
}

function strangersKey(): Buffer {
  return generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ type: 'spki', format: 'der' });
}
