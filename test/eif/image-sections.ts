// An independent reader of images: sections, files and measurements by hand, with nothing of the builder's.

import { createHash, verify, type X509Certificate } from 'node:crypto';
import { Decoder, Encoder } from 'cbor-x';

export function sectionsOf(image: Buffer): [number, Buffer][] {
  const sections: [number, Buffer][] = [];
  for (let at = 548; at < image.length; ) {
    const size = Number(image.readBigUInt64BE(at + 4));
    sections.push([image.readUInt16BE(at), image.subarray(at + 12, at + 12 + size)]);
    at += 12 + size;
  }
  return sections;
}

export function fileIn(archive: Buffer, path: string): Buffer {
  const name = Buffer.from(`${path}\0`);
  const start = archive.indexOf(Buffer.concat([Buffer.from('00000000'), name])) + 8;
  const size = Number.parseInt(archive.toString('latin1', start - 110 + 54, start - 110 + 62), 16);
  const data = Math.ceil((start + name.length) / 4) * 4;
  return archive.subarray(data, data + size);
}

export const sha384 = (...parts: Buffer[]): Buffer => createHash('sha384').update(Buffer.concat(parts)).digest();
export const pcr = (digest: Buffer): string => sha384(Buffer.alloc(48), digest).toString('hex');

/** What stands in a line as `PCR16  4b8d…`, as somebody would find it who compares by hand. */
export function registersIn(stdout: string): Record<string, string> {
  return Object.fromEntries([...stdout.matchAll(/^ *(PCR\d+) +([0-9a-f]{96})$/gm)].map(([, name, hex]) => [name, hex]));
}

/** The register, in hex, that the last section signs (RFC 9052 §4.4), or what is wrong with the signature. */
export function signedRegister(image: Buffer, certificate: X509Certificate): string {
  const decoder = new Decoder({ mapsAsObjects: true });
  const [{ signature }] = decoder.decode(sectionsOf(image).at(-1)?.[1] ?? Buffer.alloc(0));
  const [header, , payload, bytes] = decoder.decode(Buffer.from(signature));
  const encoder = new Encoder({ tagUint8Array: false });
  const text = encoder.encode(['Signature1', Buffer.from(header), Buffer.alloc(0), Buffer.from(payload)]);
  const key = { key: certificate.publicKey, dsaEncoding: 'ieee-p1363' } as const;
  if (!verify('sha384', text, key, Buffer.from(bytes))) return 'the signature is not of this certificate';
  return Buffer.from(decoder.decode(payload).register_value).toString('hex');
}
