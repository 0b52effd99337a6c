// The files that signing and verifying read: keys, and the files of the folder of a release.

import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { createReadStream, readFileSync } from 'node:fs';

export const PROVENANCE = 'provenance.json';
export const ENVELOPE = 'provenance.dsse.json';
/** It is written after the provenance, which cannot name it. */
export const SUMS = 'SHA256SUMS';

/** A file cannot be read, or is not what it has to be. */
export class FileRefused extends Error {}

/** @throws FileRefused */
export function readWhole(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new FileRefused(`cannot read ${path} (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** @throws FileRefused unless it is an Ed25519 key of that kind, in PEM */
export function readKey(path: string, kind: 'private' | 'public'): KeyObject {
  const pem = readWhole(path);
  const key = keyIn(pem, kind);
  if (key?.asymmetricKeyType === 'ed25519') return key;
  throw new FileRefused(`${path} is no ${kind} Ed25519 key in PEM`);
}

function keyIn(pem: Buffer, kind: 'private' | 'public'): KeyObject | undefined {
  // A public key comes out of a private one, too: nobody should verify with a file that signs.
  if (kind === 'public' && !pem.includes('BEGIN PUBLIC KEY')) return undefined;
  try {
    return kind === 'private' ? createPrivateKey(pem) : createPublicKey(pem);
  } catch {
    return undefined;
  }
}

/** Read in parts: an image may be large. @throws FileRefused */
export async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  try {
    for await (const part of createReadStream(path)) hash.update(part as Buffer);
  } catch (error) {
    throw new FileRefused(`cannot read ${path} (${(error as NodeJS.ErrnoException).code})`);
  }
  return hash.digest('hex');
}
