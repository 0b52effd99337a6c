// The keys of `key_sources.filesystem`. A bad file never stops the others; a folder that is not there stops everything.
// A later scan derives and decrypts only what is new or changed. A key whose file is gone is taken out, whichever scan
// loaded it; one whose file cannot be read stays, because a validator must not miss duties for a file that is being
// written.

import { eventLoopTurns } from '../../parallel.ts';
import { FolderScan, type KeyFilesParts } from './folder-scan.ts';
import { HeldPlaces } from './held-places.ts';
import { KeyCache } from './key-cache.ts';
import { type KeyFolders, listKeyFiles } from './listing.ts';
import { type FilesystemLoad, type LoadProgress, LoadReport } from './load-report.ts';

interface KeyFilesOptions extends KeyFolders {
  /** `key_sources.filesystem.raw_load_concurrency`: descriptor files read at once. */
  readonly rawLoadConcurrency: number;
  /** `key_sources.filesystem.cache`: a file for the keys of keystores (key-cache.ts). */
  readonly cache?: string | undefined;
}

/** Ends the work with the keys before it resolves: none of them signs here any more. */
export type TakeOut = (publicKeys: readonly string[]) => Promise<void>;

const NO_FOLDER = 'the folder does not exist: create it, or correct the path, and reload';
/** Keys that are asked about in one turn of the event loop. */
const KEYS_IN_A_TURN = 4096;

export class KeyFiles {
  readonly #options: KeyFilesOptions;
  readonly #parts: KeyFilesParts;
  #held = new HeldPlaces();
  #report: LoadReport | undefined;

  constructor(options: KeyFilesOptions, parts: KeyFilesParts) {
    this.#options = options;
    this.#parts = parts;
  }

  /** Of the look under way. */
  get progress(): LoadProgress | undefined {
    return this.#report?.progress;
  }

  /** @throws Error when a folder cannot be listed, SignerError `sealed`, the signal's reason when stopped */
  async load(): Promise<FilesystemLoad> {
    const { report } = await this.#look(this.#options);
    return report.finish(0);
  }

  /**
   * New keys are loaded, then keys whose files are gone are taken out. @throws as load(); then nothing was taken out
   */
  async reload(takeOut: TakeOut): Promise<FilesystemLoad> {
    const { store } = this.#parts;
    // A folder that is gone would take its keys out.
    const { look, report } = await this.#look({ ...this.#options, mayBeMissing: false });
    const gone = await this.#goneSince(look);
    const loaded = [...gone].filter((publicKey) => store.find(publicKey)?.source === 'filesystem');
    if (loaded.length > 0) await takeOut(loaded);
    store.forgetFilesOf(gone);
    return report.finish(loaded.length);
  }

  /** By what the store has, so that the keys of a look that failed midway are among them. */
  async #goneSince(look: FolderScan): Promise<ReadonlySet<string>> {
    const gone = new Set<string>();
    const turns = eventLoopTurns(KEYS_IN_A_TURN);
    for (const publicKey of this.#parts.store.inFiles()) {
      if (!look.describes(publicKey)) gone.add(publicKey);
      await turns.turn(1);
    }
    return gone;
  }

  async #look(options: KeyFilesOptions): Promise<{ readonly look: FolderScan; readonly report: LoadReport }> {
    const listing = await listKeyFiles(options);
    const report = new LoadReport(this.#parts);
    this.#report = report;
    for (const folder of listing.missing) report.fail({ file: folder, document: 1, order: 0 }, NO_FOLDER);
    const { cache: cacheFile, rawLoadConcurrency } = options;
    const cache = cacheFile === undefined ? undefined : new KeyCache(cacheFile, this.#parts);
    const look = new FolderScan(this.#held, { ...this.#parts, cache }, report);
    try {
      await look.run(listing, rawLoadConcurrency);
      await cache?.save();
      this.#held = look.found;
    } catch (error) {
      this.#held.putAll(look.found); // those keys sign: a file of theirs that is damaged later costs none of them
      throw error;
    } finally {
      this.#report = undefined;
      cache?.wipe();
      await this.#parts.pool.endIdleWorkers();
    }
    return { look, report };
  }
}
