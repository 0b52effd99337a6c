// The folder of imported keystores (`key_sources.memory.persist_dir`). A key is on disk before it is answered as
// imported, and its file is gone before it is answered as deleted, whenever the process stops. One that was not
// answered yet may be there or not; a repeated request finishes it.

import { readdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder } from '../../../common/command-line/sync-folder.ts';
import { errorCode } from '../../../common/formats/error-code.ts';
import { openKeystores, parseItem, wipeKeystores } from '../keystores/read.ts';
import { writeDurably } from './durable-files.ts';
import { ADD_REFUSALS, type KeyFilesParts } from './folder-scan.ts';
import { type ImportedKeystore, ImportedKeystoreCipher } from './imported-keystore.ts';
import { readSmallFile } from './small-files.ts';

const NAME = /^[0-9a-f]{96}\.json$/;
/** A file on its way into place, which a stopped process left. */
const PARTIAL = /^[0-9a-f]{96}\.json\.new$/;
const MAX_FILE_BYTES = 2 ** 20;
const LOAD_AT_ONCE = 16;

type ImportedParts = Pick<KeyFilesParts, 'store' | 'pool' | 'log'>;

export class ImportedKeystores {
  readonly #folder: string;
  readonly #cipher: ImportedKeystoreCipher;

  constructor(folder: string, secret: Uint8Array) {
    this.#folder = folder;
    this.#cipher = new ImportedKeystoreCipher(secret);
  }

  /** @returns how many files could not be loaded @throws Error when the folder cannot be read */
  async load(parts: ImportedParts, signal: AbortSignal): Promise<number> {
    const names = await this.#list();
    for (const name of names.filter((one) => PARTIAL.test(one))) await unlink(join(this.#folder, name));
    const files = names.filter((name) => NAME.test(name)).sort();
    let failures = 0;
    for (let at = 0; at < files.length; at += LOAD_AT_ONCE) {
      const loads = files.slice(at, at + LOAD_AT_ONCE).map((name) => this.#loadOne(name, parts, signal));
      for (const isLoaded of await Promise.all(loads)) failures += isLoaded ? 0 : 1;
    }
    parts.log.info({ keys: files.length - failures, failures }, 'imported keys were loaded');
    return failures;
  }

  /**
   * Durable when it resolves, with those keys that had no file before. On rejection their files are gone again, if that
   * can be.
   */
  async keep(keystores: readonly ImportedKeystore[]): Promise<readonly string[]> {
    const before = new Set(await this.#list());
    const created = keystores.filter(({ publicKey }) => !before.has(fileOf(publicKey)));
    const publicKeys = created.map(({ publicKey }) => publicKey);
    try {
      for (const keystore of keystores) {
        const path = this.#pathOf(keystore.publicKey);
        await writeDurably(`${path}.new`, await this.#cipher.encrypt(keystore));
        await rename(`${path}.new`, path);
      }
      if (keystores.length > 0) await syncFolder(this.#folder);
    } catch (error) {
      await this.remove(publicKeys).catch(() => undefined);
      throw error;
    }
    return publicKeys;
  }

  /**
   * Durable when it resolves. A key without a file is no fault: an earlier request may have removed it, and not yet for
   * good.
   */
  async remove(publicKeys: readonly string[]): Promise<void> {
    for (const publicKey of publicKeys) {
      await unlink(this.#pathOf(publicKey)).catch((error: unknown) => {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
      });
    }
    if (publicKeys.length > 0) await syncFolder(this.#folder);
  }

  wipe(): Promise<void> {
    return this.#cipher.wipe();
  }

  async #list(): Promise<string[]> {
    try {
      return await readdir(this.#folder);
    } catch (error) {
      const code = errorCode(error) ?? 'unreadable';
      const remedy = 'create it, for the user of the signer alone (mode 0700)';
      throw new Error(`key_sources.memory.persist_dir: ${this.#folder} cannot be read (${code}): ${remedy}`, {
        cause: error,
      });
    }
  }

  async #loadOne(name: string, { store, pool, log }: ImportedParts, signal: AbortSignal): Promise<boolean> {
    const failed = (reason: string): false => {
      log.warn({ file: join(this.#folder, name), reason }, 'an imported key cannot be loaded');
      return false;
    };
    const file = await readSmallFile(join(this.#folder, name), MAX_FILE_BYTES);
    if ('refused' in file) return failed(file.refused);
    const found = await this.#cipher.decrypt(file.content.toString('utf8'));
    if ('refused' in found) return failed(found.refused);
    let opened: Awaited<ReturnType<typeof openKeystores>> = [];
    try {
      if (name !== fileOf(found.publicKey)) return failed('its name is not that of its key');
      const parsed = parseItem(found);
      opened = await openKeystores([parsed], { pool, store }, signal, 'load');
      const [item] = opened;
      if (item?.kind !== 'opened') return failed(item?.message ?? 'it holds no key');
      if (item.publicKey !== found.publicKey) return failed('it holds another key than it names');
      const added = store.add(item.secretKey, 'memory', item.share ?? found.publicKey);
      if (parsed.kind === 'parsed') store.noteDerivationPath(found.publicKey, parsed.keystore.path);
      if (added.outcome !== 'refused') return true;
      return failed(added.reason === 'sealed' ? added.reason : ADD_REFUSALS[added.reason]);
    } finally {
      wipeKeystores(opened);
      found.password.fill(0);
    }
  }

  #pathOf(publicKey: string): string {
    return join(this.#folder, fileOf(publicKey));
  }
}

function fileOf(publicKey: string): string {
  return `${publicKey.slice(2)}.json`;
}
