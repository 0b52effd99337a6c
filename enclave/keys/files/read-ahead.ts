// Keystores and passwords that were read before they are loaded: the key cache opens with the passwords of all of them
// or not at all. Each password is handed on once, or wiped.

import { inParallel } from '../../parallel.ts';
import { digestPassword, keystoreName } from './key-cache.ts';
import { type KeystoreFile, readKeystoreFile } from './keystore-file.ts';
import { type KeystoreAt, placeName } from './places.ts';

/** Small files read at once. */
const READS_AT_ONCE = 16;

export class ReadAhead {
  /** What was read ahead, by its place, until somebody takes it. */
  readonly #read = new Map<string, KeystoreFile>();

  /**
   * Reads every keystore.
   * @returns the digests of the passwords by keystoreName, which the caller wipes
   * @throws the signal's reason; no digest is left then
   */
  async passwords(places: readonly KeystoreAt[], signal: AbortSignal | undefined): Promise<Map<string, Buffer>> {
    const digests = new Map<string, Buffer>();
    try {
      await inParallel(places, READS_AT_ONCE, async (place) => {
        signal?.throwIfAborted();
        const read = await readKeystoreFile(place);
        this.#read.set(placeName(place), read);
        if ('refused' in read) return;
        const name = keystoreName(read.keystore);
        digests.get(name)?.fill(0); // the same keystore at another place
        digests.set(name, digestPassword(read.password));
      });
      return digests;
    } catch (error) {
      for (const digest of digests.values()) digest.fill(0);
      throw error;
    }
  }

  /** What was read, or what is there now; the caller wipes the password. */
  async take(place: KeystoreAt): Promise<KeystoreFile> {
    const name = placeName(place);
    const ahead = this.#read.get(name);
    this.#read.delete(name);
    return ahead ?? readKeystoreFile(place);
  }

  /** What nobody took: the look was ended before. */
  wipe(): void {
    for (const read of this.#read.values()) if (!('refused' in read)) read.password.fill(0);
    this.#read.clear();
  }
}
