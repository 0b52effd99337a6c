// Step "keys": the store, and a load that goes on in the background. A directory that is not there ends the start; bad
// files are counted and make /healthcheck DOWN, and the keys that are loaded sign meanwhile.

import { readdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { SignerError } from '../api/errors.ts';
import type { SignerState, World } from '../boot.ts';
import type { Config } from '../config/options.ts';
import { loadFilesystemKeys } from '../keys/filesystem.ts';
import { KeystorePool, memoryLimitBytes } from '../keys/keystore-pool.ts';
import { KeyStore } from '../keys/store.ts';
import type { BlsCore } from '../signing/bls.ts';
import type { Custody } from './chamber.ts';
import type { Telemetry } from './telemetry.ts';

export interface LoadingKeys {
  readonly keys: KeyStore;
  /** Resolves when the first load is complete. */
  readonly loaded: Promise<void>;
  /** The one pool of this process, which imports share. */
  readonly pool: KeystorePool;
}

export interface LoadingKeysParts {
  readonly config: Config;
  readonly core: BlsCore;
  /** Undefined without a signer state. */
  readonly custody: Custody | undefined;
  readonly state: SignerState;
}

export async function startLoadingKeys(
  { config, core, custody, state }: LoadingKeysParts,
  { logger, clock }: World,
  telemetry: Telemetry,
  opened: AsyncDisposableStack,
): Promise<LoadingKeys> {
  const { paths, keystore_load_concurrency, raw_load_concurrency } = config.key_sources.filesystem;
  for (const path of paths) await assertDirectory(path);
  const log = logger.module('keys');
  const keys = new KeyStore({}, { vault: core, clock });
  opened.defer(() => keys.seal());
  const pool = new KeystorePool(
    {
      keystoreLoadConcurrency: keystore_load_concurrency,
      memoryLimitBytes: memoryLimitBytes(),
      cores: availableParallelism(),
    },
    { log },
  );
  if (custody?.chamber.state === 'Sealed') {
    keys.seal();
    return { keys, loaded: Promise.resolve(), pool };
  }
  const stop = new AbortController();
  const load = loadFilesystemKeys(
    { paths, rawLoadConcurrency: raw_load_concurrency },
    { store: keys, pool, log, clock, signal: stop.signal },
  );
  custody?.chamber.onSealed(() => {
    keys.seal();
    stop.abort(new SignerError('sealed'));
  });
  opened.defer(async () => {
    stop.abort(new Error('the signer shuts down'));
    await pool.close();
    await load.catch(() => undefined);
  });
  const loaded = load.then(({ failures, seconds }) => {
    state.keyFailures = failures.length;
    telemetry.keyFilesLoaded(seconds, failures.length);
    keys.completeFirstLoad();
  });
  loaded.catch(() => undefined); // whoever waits for it hears of a failure; a start that ends earlier does not wait
  return { keys, loaded, pool };
}

async function assertDirectory(path: string): Promise<void> {
  try {
    await readdir(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new Error(
      `key_sources.filesystem.paths: the directory ${path} cannot be read (${code}); create it or correct the path`,
      { cause: error },
    );
  }
}
