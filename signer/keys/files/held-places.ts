// The result of one scan of the key folders: the next scan keeps what is unchanged and loads only the rest.

import type { KeyPlace } from './load-report.ts';

export interface KeptKey {
  readonly publicKey: string;
  readonly contents?: string;
}

type HeldEntry = KeptKey | string | undefined;

/** The keys of a scan, by file. A raw key is its text alone, in a file of its own, too: there may be a million. */
export class HeldPlaces {
  readonly #files = new Map<string, string | HeldEntry[]>();
  readonly #contents = new Map<string, string>();

  /** All that the file with these contents describes has been put. */
  putContents(file: string, contents: string): void {
    this.#contents.set(file, contents);
  }

  /** Undefined when it describes more than has been put, or a keystore. */
  contentsOf(file: string): string | undefined {
    return this.#contents.get(file);
  }

  put({ file, document }: KeyPlace, { publicKey, contents }: KeptKey): void {
    const held = contents === undefined ? publicKey : { publicKey, contents };
    // Most files have one document: an array that begins empty would take room for sixteen more.
    if (document === 1 && !Array.isArray(this.#files.get(file))) {
      this.#files.set(file, typeof held === 'string' ? held : [held]);
      return;
    }
    const longer = this.#documentsOf(file);
    while (longer.length < document) longer.push(undefined);
    longer[document - 1] = held;
    this.#files.set(file, longer);
  }

  at({ file, document }: KeyPlace): KeptKey | undefined {
    return heldOf(this.#documentsOf(file)[document - 1]);
  }

  *inFile(file: string): Generator<[document: number, held: KeptKey]> {
    for (const [index, kept] of this.#documentsOf(file).entries()) {
      const held = heldOf(kept);
      if (held !== undefined) yield [index + 1, held];
    }
  }

  /** The highest that was put. */
  documentsIn(file: string): number {
    return this.#documentsOf(file).length;
  }

  #documentsOf(file: string): HeldEntry[] {
    const kept = this.#files.get(file);
    return typeof kept === 'string' ? [kept] : (kept ?? []);
  }

  /** Over what is here, place by place. */
  putAll(later: HeldPlaces): void {
    for (const file of later.#files.keys()) {
      this.#contents.delete(file);
      for (const [document, held] of later.inFile(file)) this.put({ file, document }, held);
    }
  }
}

function heldOf(kept: HeldEntry): KeptKey | undefined {
  return typeof kept === 'string' ? { publicKey: kept } : kept;
}
