// A key store on a real BLS core, both new for every test, and forty TEST keys by their number.

import { afterEach, beforeEach } from 'vitest';
import type { BlsCore } from '../../signer/bls/bls.ts';
import { openBlsCore } from '../../signer/bls/open-either.ts';
import { KeyStore } from '../../signer/keys/store.ts';
import { publicKeyOf, testSecret } from '../support/keys.ts';
import { recordingLog } from '../support/recording-log.ts';

export const ROOT = Buffer.alloc(32, 5);
export const clock = { now: () => 1_700_000_000_000, monotonic: () => 0 };
export const publicKeys = Array.from({ length: 40 }, (_, number) => publicKeyOf(testSecret(number)));
export const publicKey = (number: number) => publicKeys[number] ?? '';
export const ascending = (...numbers: number[]) => numbers.map(publicKey).sort();

export let core: BlsCore;
export let store: KeyStore;

beforeEach(async () => {
  core = await openBlsCore({ prefer: 'portable', cores: 1, log: recordingLog() });
  store = new KeyStore({}, { vault: core, clock });
});

afterEach(async () => {
  await core.close();
});
