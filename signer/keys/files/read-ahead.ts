// Keystores and passwords that were read ahead: the key cache opens with the passwords of all of them or not at all.

import { inParallel } from '../../parallel.ts';
import { MAX_DESCRIPTOR_BYTES } from './descriptor.ts';
import { digestPassword, keystoreName } from './key-cache.ts';
import { type KeystoreFile, type KeystorePlace, readKeystoreFile } from './keystore-file.ts';
import type { OrderedPlace } from './load-report.ts';

/** Small files read at once. */
const READS_AT_ONCE = 16;
/** Keystores with their passwords in memory; those beyond are read once more when their turn comes. */
export const MOST_HELD = 4_096;

export class ReadAhead {
  /** By the order of its place. */
  readonly #read = new Map<number, KeystoreFile>();

  /** @returns the digests of the passwords by keystoreName, which the caller wipes @throws the signal's reason */
  async passwords(places: readonly KeystoreAt[], signal: AbortSignal | undefined): Promise<Map<string, Buffer>> {
    const digests = new Map<string, Buffer>();
    try {
      await inParallel(places, READS_AT_ONCE, async (place) => {
        signal?.throwIfAborted();
        const read = await readKeystoreFile(place);
        const isHeld = this.#read.size < MOST_HELD;
        if (isHeld) this.#read.set(place.order, read);
        if ('refused' in read) return;
        const name = keystoreName(read.keystore);
        digests.get(name)?.fill(0); // the same keystore at another place
        digests.set(name, digestPassword(read.password));
        if (!isHeld) read.password.fill(0);
      });
      return digests;
    } catch (error) {
      for (const digest of digests.values()) digest.fill(0);
      throw error;
    }
  }

  /** What was read, or what is there now; the caller wipes the password. */
  async take(place: KeystoreAt): Promise<KeystoreFile> {
    const ahead = this.#read.get(place.order);
    this.#read.delete(place.order);
    return ahead ?? readKeystoreFile(place);
  }

  /** Wipes what was read and not taken, because the scan was ended before. */
  wipe(): void {
    for (const read of this.#read.values()) if (!('refused' in read)) read.password.fill(0);
    this.#read.clear();
  }
}

/**
 * Where a key is described: a file, and the document in it, counted from 1. The order of places is that of the files as
 * they were listed.
 */
export type KeystoreAt = OrderedPlace & KeystorePlace;

/** A file of MAX_DESCRIPTOR_BYTES has fewer documents than bytes. */
export function orderOf(fileOrder: number, document: number): number {
  return fileOrder * (MAX_DESCRIPTOR_BYTES + 1) + document;
}

/** A keystore that lies in a folder of keystores and that no file describes. */
export function inFolder(place: KeystorePlace, fileOrder: number): KeystoreAt {
  return { ...place, file: place.keystoreFile, document: 1, order: orderOf(fileOrder, 1) };
}
