// A folder of key files, and the real parts that load it: a portable BLS core, a store and a pool of workers. Whoever
// imports it has all of them of its own in every test.

import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import type { BlsCore } from '../../../signer/bls/bls.ts';
import { openBlsCore } from '../../../signer/bls/open-either.ts';
import { KeystorePool } from '../../../signer/keys/keystores/pool.ts';
import { KeyStore } from '../../../signer/keys/store.ts';
import { makeKeyDirectory } from '../../support/keys.ts';
import { recordingLog } from '../../support/recording-log.ts';

export const clock = { now: () => 0, monotonic: () => 0 };

export let directory: ReturnType<typeof makeKeyDirectory>;
export let log: ReturnType<typeof recordingLog>;
export let core: BlsCore;
export let store: KeyStore;
export let pool: KeystorePool;

beforeEach(async () => {
  log = recordingLog();
  directory = makeKeyDirectory();
  core = await openBlsCore({ prefer: 'portable', cores: 1, log: recordingLog() });
  store = new KeyStore({}, { vault: core, clock });
  pool = new KeystorePool({ keystoreLoadConcurrency: 2, memoryLimitBytes: 2 ** 33, cores: 2 }, { log });
});

afterEach(async () => {
  await pool.close();
  await core.close();
  directory.remove();
});

export const at = (name: string) => join(directory.path, name);
