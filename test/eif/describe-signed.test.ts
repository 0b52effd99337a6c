// What `eif describe` prints of a signed image whose certificate was changed, at every byte: a verdict, and never a
// fault of the program. The certificate is whatever the image's maker put there.

import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeCpio } from '../../eif/format/cpio.ts';
import { type EnclaveImage, writeImage } from '../../eif/format/format.ts';
import { readSigner, signImage } from '../../eif/format/signature.ts';
import { main } from '../../eif/main.ts';
import { measureImage } from '../../eif/measure.ts';
import { signingPair } from './signing-pair.ts';

const UNSIGNED: EnclaveImage = {
  architecture: 'x86_64',
  ...{ defaultMemoryBytes: 1n, defaultCpus: 1n, metadata: undefined, signature: undefined },
  ...{ kernel: Buffer.from('kernel'), cmdline: Buffer.from('reboot=k') },
  ramdisks: [writeCpio([])],
};
const FLIPS = [0x01, 0xff];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-describe-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function described(signature: Buffer, ...flags: readonly string[]) {
  const file = join(folder, 'image.eif');
  writeFileSync(file, writeImage({ ...UNSIGNED, signature }));
  const said = { stdout: '', stderr: '' };
  const into = (name: 'stderr' | 'stdout') => ({
    write(text: string) {
      said[name] += text;
    },
  });
  const code = await main(['describe', file, ...flags], { stdout: into('stdout'), stderr: into('stderr') });
  return { code, ...said };
}

it('a certificate that is changed anywhere is told of, and ends in no fault', async () => {
  const pair = signingPair();
  const signer = readSigner(pair.keyPem, pair.certificatePem);
  const { PCR0 = '' } = measureImage(UNSIGNED);
  const signed = (certificate: Buffer): Buffer =>
    signImage(Buffer.from(PCR0, 'hex'), {
      key: signer.key,
      certificate: { toString: () => pem(certificate) } as never,
    });
  expect(await described(signed(signer.certificate.raw))).toMatchObject({ code: 0, stderr: '' });
  let unreadable = 0;
  for (const at of signer.certificate.raw.keys()) {
    for (const flip of FLIPS) {
      const der = Buffer.from(signer.certificate.raw);
      der[at] = (der[at] ?? 0) ^ flip;
      if (keyOf(der) === undefined) unreadable += 1;
      const signature = signed(der);
      for (const flags of [[], ['--json']]) {
        const { code, stdout, stderr } = await described(signature, ...flags);
        expect({ at, flip, code: [0, 1].includes(code), stderr }).toEqual({
          ...{ at, flip, code: true },
          stderr: code === 0 ? '' : 'strongroom: the signature is not valid\n',
        });
        expect(stdout).not.toBe('');
      }
    }
  }
  expect(unreadable).toBeGreaterThan(0);
});

function keyOf(der: Buffer): unknown {
  try {
    return new X509Certificate(der).publicKey;
  } catch {
    return undefined;
  }
}

function pem(der: Buffer): string {
  const lines = der.toString('base64').replaceAll(/.{1,64}/g, '$&\n');
  return `-----BEGIN CERTIFICATE-----\n${lines}-----END CERTIFICATE-----\n`;
}
