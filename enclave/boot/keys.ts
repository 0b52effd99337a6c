// Step "keys": the store, and a load of every source, which continues in the background. A missing directory or table
// ends the start. Bad files are counted, and make /healthcheck DOWN. Refused rows of the table are counted. Meanwhile
// the signer signs with the keys that are loaded. A key that two sources have stays with the source that loaded it
// first.

import { availableParallelism } from 'node:os';
import { SignerError } from '../api/errors.ts';
import type { Config } from '../config/options.ts';
import { ImportedKeystores } from '../keys/files/imported-keystores.ts';
import { KeyFiles, type TakeOut } from '../keys/files/key-files.ts';
import { type KeyFolders, listKeyFiles } from '../keys/files/listing.ts';
import type { FilesystemLoad } from '../keys/files/load-report.ts';
import { KeystorePool, memoryLimitBytes } from '../keys/keystores/pool.ts';
import { KeyStore } from '../keys/store.ts';
import type { SecretKeyVault } from '../keys/vault.ts';
import type { AwsAccess } from './credentials.ts';
import type { Custody } from './custody.ts';
import { type OpenedKeyTable, openConfiguredKeyTable } from './keys/key-table.ts';
import type { SecretMemory } from './secret-key-memory.ts';
import type { Telemetry } from './telemetry.ts';
import type { SignerState, World } from './world.ts';

export interface LoadingKeys {
  readonly keys: KeyStore;
  /** The one pool of this process, which imports share. */
  readonly pool: KeystorePool;
  /** Undefined without `key_sources.dynamodb`, and when the signer starts sealed. */
  readonly table: OpenedKeyTable | undefined;
  /** Undefined without `key_sources.memory.persist_dir`, and when the signer starts sealed. */
  readonly imported: ImportedKeystores | undefined;
  /**
   * Read the key folders again, after the first load. Undefined when the signer starts sealed.
   * @throws as the first load
   */
  readonly reload: ((takeOut: TakeOut) => Promise<FilesystemLoad>) | undefined;
  /** Resolves when the first load is complete. */
  readonly loaded: Promise<void>;
}

export interface LoadingKeysParts {
  readonly aws: AwsAccess;
  /** Undefined without a signer state. */
  readonly custody: Custody | undefined;
  readonly memory: SecretMemory;
  readonly state: SignerState;
  readonly telemetry: Telemetry;
}

export async function startLoadingKeys(
  { dynamodb, filesystem, memory: kept }: Config['key_sources'],
  { aws, custody, memory, state, telemetry }: LoadingKeysParts,
  world: World,
  opened: AsyncDisposableStack,
): Promise<LoadingKeys> {
  const folders = keyFolders(filesystem);
  await listKeyFiles(folders); // a folder that is not there ends the start, here
  const { clock } = world;
  const log = world.logger.module('keys');
  const keys = new KeyStore({}, { vault: watched(memory), clock });
  opened.defer(() => keys.seal());
  const pool = openPool(filesystem, world, opened);
  if (custody?.chamber.state === 'Sealed') {
    keys.seal();
    return { keys, pool, table: undefined, imported: undefined, reload: undefined, loaded: Promise.resolve() };
  }
  const stop = new AbortController();
  custody?.chamber.onSealed(() => {
    keys.seal();
    stop.abort(new SignerError('sealed'));
  });
  const table =
    custody === undefined
      ? undefined
      : await openConfiguredKeyTable(dynamodb, { aws, custody, store: keys, telemetry }, world, opened);
  const keyFiles = new KeyFiles(
    { ...folders, rawLoadConcurrency: filesystem.raw_load_concurrency, cache: filesystem.cache },
    { store: keys, pool, log, clock, signal: stop.signal },
  );
  const imported = importedKeystores(kept);
  opened.defer(() => imported?.wipe());
  const files = keyFiles.load();
  const memories = imported?.load({ store: keys, pool, log }, stop.signal) ?? Promise.resolve(0);
  const rows = table?.loader.load();
  let reloading: Promise<unknown> | undefined;
  opened.defer(async () => {
    stop.abort(new Error('the signer shuts down'));
    await table?.loader.stop();
    await Promise.allSettled([files, rows, memories, reloading]);
  });
  const told = async ({ failures, seconds }: FilesystemLoad): Promise<void> => {
    state.keyFailures = failures.length + (await memories);
    telemetry.keyFilesLoaded(seconds, failures.length);
    memory.watch.check();
  };
  const loaded = Promise.all([files, rows, memories]).then(async ([load]) => {
    await told(load);
    keys.completeFirstLoad();
    void table?.loader.keepRefreshing();
  });
  loaded.catch(() => undefined); // whoever waits for it hears of a failure; a start that ends earlier does not wait
  const reload = async (takeOut: TakeOut): Promise<FilesystemLoad> => {
    await loaded;
    const again = keyFiles.reload(takeOut);
    reloading = again;
    const load = await again;
    await told(load);
    return load;
  };
  return { keys, pool, table, imported, reload, loaded };
}

/** Whatever brings a key, its memory is looked at. */
function watched({ core, watch }: SecretMemory): SecretKeyVault {
  return {
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
    {
      keystoreLoadConcurrency,
      memoryLimitBytes: memoryLimitBytes(),
      cores: availableParallelism(),
    },
    { log: logger.module('keys') },
  );
  opened.defer(() => pool.close());
  return pool;
}

/** The rules of the configuration see to it that there are both, or neither. */
function importedKeystores({
  persist_dir: folder,
  persist_secret: secret,
}: Config['key_sources']['memory']): ImportedKeystores | undefined {
  return folder === undefined || secret === undefined ? undefined : new ImportedKeystores(folder, secret.reveal());
}

function keyFolders({ keystores, paths }: Config['key_sources']['filesystem']): KeyFolders {
  const { path, passwords_path: folder, password_file: file } = keystores;
  if (path === undefined) return { paths };
  if (folder !== undefined) return { paths, keystores: { path, passwords: { folder } } };
  if (file !== undefined) return { paths, keystores: { path, passwords: { file } } };
  // a rule of the configuration refuses it before
  throw new Error('key_sources.filesystem.keystores.path: there are no passwords');
}
