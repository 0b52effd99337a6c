// The image file: what is written is read again, the numbers are where AWS's format has them, measurements equal an
// independent computation, and a file that was cut, padded or edited is refused.

import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type EnclaveImage, ImageFormatError, readImage, writeImage } from '../../../eif/format/format.ts';
import { measureImage } from '../../../eif/measure.ts';

const IMAGE: EnclaveImage = {
  architecture: 'x86_64',
  defaultMemoryBytes: 2n ** 30n,
  defaultCpus: 2n,
  kernel: Buffer.from('kernel'),
  cmdline: Buffer.from('reboot=k'),
  ramdisks: [Buffer.from('init ramdisk'), Buffer.from('application')],
  metadata: Buffer.from('{}'),
  signature: undefined,
};

/** With the CRC put right, so that the check behind it is met. */
function edited(change: (file: Buffer) => void): Buffer {
  const file = Buffer.from(writeImage(IMAGE));
  change(file);
  file.writeUInt32BE(crc32(file.subarray(548), crc32(file.subarray(0, 544))), 544);
  return file;
}

describe('writing and reading', () => {
  it('what was written is read again', () => {
    expect(readImage(writeImage(IMAGE))).toEqual(IMAGE);
    const signed: EnclaveImage = {
      ...IMAGE,
      architecture: 'aarch64',
      signature: Buffer.from('s'),
      metadata: undefined,
    };
    expect(readImage(writeImage(signed))).toEqual(signed);
  });

  it('header and sections lie where the format has them', () => {
    const file = writeImage(IMAGE);
    expect(file.toString('latin1', 0, 4)).toBe('.eif');
    expect([file.readUInt16BE(4), file.readUInt16BE(6), file.readUInt16BE(26)]).toEqual([4, 0, 5]);
    expect([file.readBigUInt64BE(8), file.readBigUInt64BE(16)]).toEqual([2n ** 30n, 2n]);
    const types = [0, 1, 2, 3, 4].map((at) => {
      const offset = Number(file.readBigUInt64BE(28 + 8 * at));
      const size = Number(file.readBigUInt64BE(284 + 8 * at));
      expect(Number(file.readBigUInt64BE(offset + 4))).toBe(size);
      return [file.readUInt16BE(offset), file.toString('latin1', offset + 12, offset + 12 + size)];
    });
    expect(types).toEqual([
      [1, 'kernel'],
      [2, 'reboot=k'],
      [5, '{}'],
      [3, 'init ramdisk'],
      [3, 'application'],
    ]);
  });
});

describe('measurements', () => {
  it('are SHA-384 of 48 zeros and the SHA-384 of the sections', () => {
    const sha384 = (...parts: (string | Buffer)[]): Buffer =>
      createHash('sha384')
        .update(Buffer.concat(parts.map((part) => Buffer.from(part as string))))
        .digest();
    const pcr = (digest: Buffer): string => sha384(Buffer.alloc(48), digest).toString('hex');
    const ceremonyDigest = sha384('ceremony');
    expect(
      measureImage(IMAGE, {
        configuration: Buffer.from('network: mainnet'),
        ceremonyDigest,
        signingCertificate: Buffer.from('DER'),
      }),
    ).toEqual({
      PCR0: pcr(sha384('kernel', 'reboot=k', 'init ramdisk', 'application')),
      PCR1: pcr(sha384('kernel', 'reboot=k', 'init ramdisk')),
      PCR2: pcr(sha384('application')),
      PCR8: pcr(sha384('DER')),
      PCR16: pcr(sha384('network: mainnet')),
      PCR17: pcr(ceremonyDigest),
    });
  });

  it('PCR2 of a known image', () => {
    // printf application | sha384sum, then 48 zero bytes and those 48 bytes through sha384sum.
    expect(measureImage(IMAGE).PCR2).toBe(KNOWN_PCR2);
  });
});

const KNOWN_PCR2 = '8a45599e5e77b24c4b6472869c24e10490c4d5df715fbd0811fc4b33d370276cf00bb24871d3a1987587d6b9283d4f42';

describe('reading refuses', () => {
  it('a file cut off at any byte, or with one more', () => {
    const file = writeImage(IMAGE);
    for (let length = 0; length < file.length; length++) {
      expect(() => readImage(file.subarray(0, length)), `${length} bytes`).toThrow(ImageFormatError);
    }
    expect(() => readImage(Buffer.concat([file, Buffer.alloc(1)]))).toThrow('1 bytes behind its last section');
  });

  it('any changed byte', () => {
    const file = writeImage(IMAGE);
    fc.assert(
      fc.property(fc.nat(file.length - 1), fc.integer({ min: 1, max: 255 }), (at, difference) => {
        const changed = Buffer.from(file);
        changed[at] = (file[at] ?? 0) ^ difference;
        expect(() => readImage(changed)).toThrow(ImageFormatError);
      }),
    );
  });

  it.each<[string, readonly number[]]>([
    ['the command line before the kernel', [2, 1, 5, 3, 3]],
    ['a ramdisk before the command line', [1, 3, 5, 2, 3]],
    ['a ramdisk before the kernel', [3, 2, 5, 1, 3]],
  ])('sections that would be measured in another order: %s', (_, types) => {
    const retyped = edited((file) => {
      for (const [at, type] of types.entries()) file.writeUInt16BE(type, Number(file.readBigUInt64BE(28 + 8 * at)));
    });
    expect(() => readImage(retyped)).toThrow('kernel, command line and ramdisks are not in this order');
  });

  it.each<[string, (file: Buffer) => void, string]>([
    ['another version', (file) => file.writeUInt16BE(3, 4), 'version is 3'],
    ['unknown flags', (file) => file.writeUInt16BE(2, 6), 'flags are not known'],
    ['reserved bytes that are set', (file) => file.writeUInt16BE(1, 24), 'reserved bytes'],
    ['unused bytes that are set', (file) => file.writeUInt8(1, 543), 'reserved bytes'],
    ['more sections than a header can list', (file) => file.writeUInt16BE(33, 26), '33 sections'],
    ['a section that is listed and not counted', (file) => file.writeUInt16BE(4, 26), 'does not count'],
    ['an offset elsewhere', (file) => file.writeBigUInt64BE(600n, 28 + 8), 'not where its header says'],
    ['a size beyond the end', (file) => file.writeBigUInt64BE(2n ** 63n, 284), 'cut off'],
    ['two sizes of one section', (file) => file.writeUInt8(7, 548 + 11), 'two sizes'],
    ['an unknown type', (file) => file.writeUInt16BE(6, 548), 'unknown type 6'],
    ['flags of a section', (file) => file.writeUInt16BE(1, 550), 'flags that are not known'],
    ['two kernels', (file) => file.writeUInt16BE(1, 548 + 12 + 6), '2 kernel sections'],
    ['no command line', (file) => file.writeUInt16BE(3, 548 + 12 + 6), 'no command line'],
  ])('%s', (_, change, reason) => {
    expect(() => readImage(edited(change))).toThrow(reason);
  });
});
