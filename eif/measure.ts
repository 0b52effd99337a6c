// What the platform measures of an image, and what the signer adds once it runs (specification/evidence.md#registers).
// A measurement says which bytes were started; only a person who read and built the sources can say that they are good.

import { createHash, hash } from 'node:crypto';
import { extendedOnce } from '../common/formats/register.ts';
import type { EnclaveImage } from './format/format.ts';

export type ImageMeasurements = Readonly<Record<string, string>>;

interface MeasuredLater {
  readonly configuration?: Uint8Array | undefined;
  readonly ceremonyDigest?: Uint8Array | undefined;
  readonly signingCertificate?: Uint8Array | undefined;
}

export function measureImage(image: EnclaveImage, later: MeasuredLater = {}): ImageMeasurements {
  const [init, ...application] = image.ramdisks;
  const { kernel, cmdline } = image;
  const hex = (value: Buffer): string => value.toString('hex');
  return {
    PCR0: hex(extendedOnce(sha384(kernel, cmdline, ...image.ramdisks))),
    PCR1: hex(extendedOnce(sha384(kernel, cmdline, ...(init === undefined ? [] : [init])))),
    PCR2: hex(extendedOnce(sha384(...application))),
    ...(later.signingCertificate === undefined ? {} : { PCR8: hex(extendedOnce(sha384(later.signingCertificate))) }),
    ...(later.configuration === undefined ? {} : { PCR16: hex(extendedOnce(sha384(later.configuration))) }),
    ...(later.ceremonyDigest === undefined ? {} : { PCR17: hex(extendedOnce(later.ceremonyDigest)) }),
  };
}

function sha384(...parts: readonly Uint8Array[]): Buffer {
  const digest = createHash('sha384');
  for (const part of parts) digest.update(part);
  return digest.digest();
}

export function sha256Hex(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'hex');
}
