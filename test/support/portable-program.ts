// What startSigner runs for a signer with the portable BLS core, also where the native one is built.

import { join } from 'node:path';
import type { SignerOptions } from '../../rehearsal/signer.ts';

export const PORTABLE_PROGRAM: NonNullable<SignerOptions['program']> = [
  join(import.meta.dirname, '../../bin/pinned-node'),
  '--heap-growing-percent=200', // as service/main.ts sets it
  join(import.meta.dirname, 'portable-signer.ts'),
];
