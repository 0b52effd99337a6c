// An image's signature: PCR0 under an ECDSA P-384 key whose certificate becomes PCR8. Nothing here decides whom to
// trust: PCR8 does.

import { createPrivateKey, type KeyObject, sign, verify, X509Certificate } from 'node:crypto';
import {
  ES384_HEADER,
  readRegisterPayload,
  readSignatureRecord,
  registerPayload,
  SignatureShapeError,
  signedBytes,
  writeSignatureRecord,
} from './signature-record.ts';

const CURVE = 'secp384r1';

export interface ImageSigner {
  readonly key: KeyObject;
  readonly certificate: X509Certificate;
}

export class ImageSignerError extends Error {
  constructor(problem: string) {
    super(problem);
    this.name = 'ImageSignerError';
  }
}

export function readSigner(keyPem: Buffer, certificatePem: Buffer): ImageSigner {
  const certificate = attempt(
    () => new X509Certificate(certificatePem),
    'the signing certificate is no X.509 certificate',
  );
  const key = attempt(() => createPrivateKey(keyPem), 'the signing key is no private key in PEM, or it is encrypted');
  if (key.asymmetricKeyDetails?.namedCurve !== CURVE)
    throw new ImageSignerError('the signing key is not of the curve P-384');
  if (!certificate.checkPrivateKey(key)) throw new ImageSignerError('the signing certificate is of another key');
  return { key, certificate };
}

/** The PEM is written again from the certificate, so that the text around it does not matter. */
export function signImage(pcr0: Buffer, { key, certificate }: ImageSigner): Buffer {
  const payload = registerPayload(pcr0);
  const signature = sign('sha384', signedBytes(ES384_HEADER, payload), { key, dsaEncoding: 'ieee-p1363' });
  const cose = { protectedHeader: ES384_HEADER, payload, signature };
  return writeSignatureRecord({ certificate: Buffer.from(certificate.toString()), cose });
}

export type SignatureCheck =
  | { readonly valid: true; readonly certificate: X509Certificate }
  | { readonly valid: false; readonly problem: string; readonly certificate?: X509Certificate };

/** Dates are for the reader: the platform ignores them. */
export function checkImageSignature(section: Buffer, pcr0: Buffer): SignatureCheck {
  try {
    const { certificate: pem, cose } = readSignatureRecord(section);
    const certificate = attempt(() => new X509Certificate(pem), 'the certificate of the signature cannot be read');
    const refuse = (problem: string): SignatureCheck => ({ valid: false, problem, certificate });
    const key = keyOf(certificate);
    if (key === undefined) return refuse('the key of its certificate cannot be read');
    if (key.asymmetricKeyDetails?.namedCurve !== CURVE || !cose.protectedHeader.equals(ES384_HEADER))
      return refuse('it is not ECDSA with P-384 and SHA-384');
    if (!readRegisterPayload(cose.payload).equals(pcr0)) return refuse('it signs another image');
    const signed = signedBytes(cose.protectedHeader, cose.payload);
    if (!verify('sha384', signed, { key, dsaEncoding: 'ieee-p1363' }, cose.signature))
      return refuse('it was not made by the key of its certificate');
    return { valid: true, certificate };
  } catch (error) {
    if (error instanceof SignatureShapeError || error instanceof ImageSignerError)
      return { valid: false, problem: error.message };
    throw error;
  }
}

function keyOf(certificate: X509Certificate): KeyObject | undefined {
  try {
    return certificate.publicKey;
  } catch {
    return undefined;
  }
}

function attempt<T>(action: () => T, problem: string): T {
  try {
    return action();
  } catch {
    throw new ImageSignerError(problem);
  }
}
