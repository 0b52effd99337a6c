// Step "keys": the store, and a load of every source, which continues in the background.

import { availableParallelism } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../common/observe/log.ts';
import { SignerError } from '../api/errors.ts';
import type { KeysLoading } from '../api/health.ts';
import type { AwsAccess } from '../aws/access.ts';
import type { Config } from '../config/options.ts';
import type { TakeOut } from '../keys/files/key-files.ts';
import type { FilesystemLoad, LoadProgress } from '../keys/files/load-report.ts';
import type { KeptKeystores, KeyFileSource } from '../keys/files/source.ts';
import { KeystorePool, memoryLimitBytes } from '../keys/keystores/pool.ts';
import { KeyStore } from '../keys/store.ts';
import type { SecretKeyVault } from '../keys/vault.ts';
import type { SlashingBackend } from '../slashing/types.ts';
import { TenureBook } from '../tenure.ts';
import type { Custody } from './custody.ts';
import type { OpenedKeyTable, openConfiguredKeyTable } from './key-table.ts';
import type { SecretMemory } from './secret-key-memory.ts';
import type { Telemetry } from './telemetry.ts';
import type { SignerState, World } from './world.ts';

export interface LoadingKeys {
  readonly keys: KeyStore;
  readonly pool: KeystorePool;
  readonly table: OpenedKeyTable | undefined;
  readonly imported: KeptKeystores | undefined;
  /** Undefined when the signer starts sealed, and without key files. @throws as the first load */
  readonly reload: ((takeOut: TakeOut) => Promise<FilesystemLoad>) | undefined;
  readonly loaded: Promise<void>;
  readonly progress: () => KeysLoading | undefined;
}

export type OpenKeyFiles = (config: Pick<Config['key_sources'], 'filesystem' | 'memory'>) => Promise<KeyFileSource>;

interface LoadingKeysParts {
  readonly aws: AwsAccess;
  readonly custody: Custody | undefined;
  readonly memory: SecretMemory;
  readonly openKeyFiles: OpenKeyFiles | undefined;
  readonly slashing: Pick<SlashingBackend, 'tenures'>;
  readonly state: SignerState;
  readonly telemetry: Telemetry;
}

export async function startLoadingKeys(
  { dynamodb, filesystem, memory: kept }: Config['key_sources'],
  { aws, custody, memory, openKeyFiles, slashing, state, telemetry }: LoadingKeysParts,
  world: World,
  opened: AsyncDisposableStack,
): Promise<LoadingKeys> {
  const source = await openKeyFiles?.({ filesystem, memory: kept }); // a folder that is not there ends the start, here
  const { clock } = world;
  const log = world.logger.module('keys');
  // One damaged record keeps no other key from being loaded; no check of its own key passes.
  const tenures = new TenureBook((publicKeys) => slashing.tenures(publicKeys, true));
  // An enclave takes no share before its attested status says for whom it is.
  const keys = new KeyStore({}, { vault: watched(memory, world.enclave === undefined), clock, tenures });
  opened.defer(() => keys.seal());
  const pool = openPool(filesystem, world, opened);
  if (custody?.chamber.state === 'Sealed') {
    keys.seal();
    const nothing = { table: undefined, imported: undefined, reload: undefined } as const;
    return { keys, pool, ...nothing, loaded: Promise.resolve(), progress: () => undefined };
  }
  const stop = new AbortController();
  custody?.chamber.onSealed(() => {
    keys.seal();
    stop.abort(new SignerError('sealed'));
  });
  const table = custody && (await openTable(dynamodb, { aws, custody, store: keys, telemetry }, world, opened));
  const keyFiles = source?.keyFiles({ store: keys, pool, log, clock, signal: stop.signal });
  const imported = source?.imported;
  opened.defer(() => imported?.wipe());
  // First: a copy carries the tenure that the store said before its source was read.
  const tenuresKnown = learned(tenures, stop.signal, log);
  const files = tenuresKnown.then(() => keyFiles?.load() ?? NO_FILES);
  const memories = tenuresKnown.then(() => imported?.load({ store: keys, pool, log }, stop.signal) ?? 0);
  const rows = tenuresKnown.then(() => table?.loader.load());
  let reloading: Promise<unknown> | undefined;
  opened.defer(async () => {
    stop.abort(new Error('the signer shuts down'));
    await table?.loader.stop();
    await Promise.allSettled([files, rows, memories, reloading]);
  });
  const logLoad = async ({ failures, seconds }: FilesystemLoad): Promise<void> => {
    state.keyFailures = failures.length + (await memories);
    telemetry.keyFilesLoaded(seconds, failures.length);
    memory.watch.check();
  };
  const loaded = Promise.all([files, rows, memories]).then(async ([load]) => {
    await logLoad(load);
    keys.completeFirstLoad();
    void table?.loader.keepRefreshing();
  });
  loaded.catch(() => undefined); // who awaits it learns of a failure; a start that ends earlier does not wait
  const reload =
    keyFiles &&
    (async (takeOut: TakeOut): Promise<FilesystemLoad> => {
      await loaded;
      const again = keyFiles.reload(takeOut);
      reloading = again;
      const load = await again;
      await keys.renewTenures();
      await logLoad(load);
      return load;
    });
  return { keys, pool, table, imported, reload, loaded, progress: () => progressOf(keys, keyFiles?.progress) };
}

/** Loaded, with the clients of AWS, by a signer that may have a key table. */
const openTable: typeof openConfiguredKeyTable = async (...given) =>
  (await import('./key-table.ts')).openConfiguredKeyTable(...given);

/** Before the keystores are counted, and while a key table is read, only what is loaded is known. */
function progressOf(
  keys: Pick<KeyStore, 'state' | 'countBySource'>,
  ofFiles: LoadProgress | undefined,
): KeysLoading | undefined {
  if (keys.state !== 'loading') return undefined;
  if (ofFiles === undefined || ofFiles.total === 0) {
    const { filesystem, dynamodb, memory } = keys.countBySource();
    return { done: filesystem + dynamodb + memory, total: null, remaining_seconds: null };
  }
  const { done, total, remainingSeconds } = ofFiles;
  return { done, total, remaining_seconds: remainingSeconds === undefined ? null : Math.ceil(remainingSeconds) };
}

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;

async function learned(tenures: TenureBook, signal: AbortSignal, log: Log): Promise<void> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      return await tenures.learn();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SignerError) || error.status !== 503) throw error;
      log.warn({ err: error }, 'the slashing store does not say the tenures of keys: no key is loaded before');
    }
    await pause(pauseMs, undefined, { signal });
  }
}

const NO_FILES: FilesystemLoad = { loaded: 0, kept: 0, removed: 0, duplicates: [], failures: [], seconds: 0 };

function watched({ core, watch }: SecretMemory, takesShares: boolean): SecretKeyVault {
  const { sharePublicKey } = core;
  return {
    ...(takesShares && sharePublicKey !== undefined ? { sharePublicKey: sharePublicKey.bind(core) } : {}),
    addKey(secretKey) {
      const added = core.addKey(secretKey);
      watch.keyAdded();
      return added;
    },
    async addKeys(secretKeys) {
      const held = await core.addKeys(secretKeys);
      watch.keyAdded();
      return held;
    },
    removeKey: (handle) => core.removeKey(handle),
    wipe: () => core.wipe(),
  };
}

function openPool(
  { keystore_load_concurrency: keystoreLoadConcurrency }: Config['key_sources']['filesystem'],
  { logger }: World,
  opened: AsyncDisposableStack,
): KeystorePool {
  const pool = new KeystorePool(
    { keystoreLoadConcurrency, memoryLimitBytes: memoryLimitBytes(), cores: availableParallelism() },
    { log: logger.module('keys') },
  );
  opened.defer(() => pool.close());
  return pool;
}
