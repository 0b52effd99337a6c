// The system's CSPRNG with the NSM's bytes mixed in. Fails when the NSM does.

import { randomFillSync } from 'node:crypto';
import type { Nsm } from './nsm.ts';

export async function nsmRandomBytes(nsm: Nsm, lengthBytes: number): Promise<Buffer> {
  const bytes = Buffer.from(new ArrayBuffer(lengthBytes));
  for (let filled = 0; filled < lengthBytes; ) {
    const given = await nsm.random();
    if (given.length === 0) throw new Error('the NSM gave no random bytes');
    filled += given.copy(bytes, filled);
    given.fill(0);
  }
  return bytes;
}

export async function fillMixedRandom(nsm: Nsm, buffer: Buffer): Promise<void> {
  const mix = await nsmRandomBytes(nsm, buffer.length);
  randomFillSync(buffer);
  for (const [at, byte] of mix.entries()) buffer[at] = (buffer[at] ?? 0) ^ byte;
  mix.fill(0);
}
