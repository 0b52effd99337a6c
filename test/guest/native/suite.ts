// Suite "native": the addon where it belongs, on a kernel with vsock and a Nitro Secure Module (CUSE), in one process
// that is its own peer.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CpioEntry, writeCpio } from '../../../eif/format/cpio.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { baseEntries } from '../base-ramdisk.ts';
import { programEntries } from '../bundle.ts';
import type { GuestSuite } from '../suite.ts';
import { TLS_FILES } from './settings.ts';

/** A minute on a quiet machine of two cores. */
const TIME_LIMIT_MS = 240_000;

export const nativeSuite: GuestSuite = {
  name: 'native',
  async prepare(packages) {
    const programs = await programEntries({
      checks: 'test/guest/native/checks.ts',
      'few-descriptors': 'test/guest/native/few-descriptors.ts',
      'short-lived-peer': 'test/guest/native/short-lived-peer.ts',
      'nsm-cuse': 'test/support/nsm-cuse.ts',
    });
    const init: CpioEntry = {
      type: 'file',
      path: 'init',
      data: readFileSync(join(import.meta.dirname, 'init.sh')),
      mode: 0o755,
    };
    const ramdisks = [writeCpio(baseEntries(packages)), writeCpio([init, ...certificateEntries(), ...programs])];
    return [{ ramdisks, timeLimitMs: TIME_LIMIT_MS }];
  },
};

function certificateEntries(): CpioEntry[] {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-guest-tls-'));
  try {
    const { cert, key } = makeCertificate(folder, 'guest');
    return [
      { type: 'file', path: TLS_FILES.certificate.slice(1), data: readFileSync(cert) },
      { type: 'file', path: TLS_FILES.key.slice(1), data: readFileSync(key), mode: 0o600 },
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}
