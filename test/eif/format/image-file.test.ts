// `image.yaml` by architecture: the command line that an image has when none is given, and kernels that the Nitro
// loader could not start.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Architecture } from '../../../eif/format/format.ts';
import { readImageFile } from '../../../eif/format/image-file.ts';
import { BuildError } from '../../../eif/inputs.ts';

const folder = mkdtempSync(join(tmpdir(), 'strongroom-image-file-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** An arm64 Image's header (the kernel's Documentation/arch/arm64/booting.rst). */
function arm64Image(textOffset: bigint): Buffer {
  const header = Buffer.alloc(4096);
  header.writeBigUInt64LE(textOffset, 8);
  header.write('ARM\x64', 56, 'latin1');
  return header;
}

function read(kernel: Buffer, architecture: Architecture) {
  const sha256 = createHash('sha256').update(kernel).digest('hex');
  writeFileSync(join(folder, 'Image'), kernel);
  writeFileSync(join(folder, 'image.yaml'), `kernel: { path: Image, sha256: ${sha256} }\n`);
  return readImageFile(join(folder, 'image.yaml'), architecture);
}

describe('the command line, when none is given', () => {
  it('is that of AWS’s images (aws-nitro-enclaves-cli 1.5.0, blobs/<architecture>/cmdline)', () => {
    const both = 'reboot=k panic=30 pci=off nomodules console=ttyS0';
    expect(read(Buffer.from('kernel'), 'x86_64').cmdline).toBe(
      `${both} i8042.noaux i8042.nomux i8042.nopnp i8042.dumbkbd random.trust_cpu=on`,
    );
    expect(read(Buffer.from('kernel'), 'aarch64').cmdline).toBe(`${both} random.trust_cpu=on root=/dev/ram0`);
  });
});

describe('an aarch64 kernel', () => {
  it('with text_offset 0 is refused, with the command that corrects it', () => {
    let refusal: unknown;
    try {
      read(arm64Image(0n), 'aarch64');
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(BuildError);
    const { message, details } = refusal as BuildError;
    expect(message).toContain('text_offset 0');
    const command = /: (printf .*?);/.exec(details.join())?.[1] ?? 'false';
    execFileSync('sh', ['-c', command], { cwd: folder, stdio: 'ignore' });
    const corrected = readFileSync(join(folder, 'Image'));
    expect(corrected).toEqual(arm64Image(2n ** 21n));
    expect(read(corrected, 'aarch64').kernel).toEqual(corrected);
  });

  it('of another form, or for x86-64, is not looked into', () => {
    expect(read(Buffer.alloc(4096), 'aarch64').kernel).toHaveLength(4096);
    expect(read(arm64Image(0n), 'x86_64').kernel).toHaveLength(4096);
  });
});
