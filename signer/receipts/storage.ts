// Where logs of receipts are kept, as the log, its routes and a start see it: a folder of the host
// (service/receipts-folder.ts) or the state table (state-table.ts). A person who can write there can withhold a log,
// but not forge one of another boot. The reader judges what is read back.

export interface ReceiptFile {
  /** In the folder of the boot (specification/receipts.md#tiles). */
  readonly path: string;
  readonly content: Uint8Array;
}

/** Each method rejects when the storage cannot be used. */
export interface ReceiptStorage {
  /** Those with a checkpoint: a start that ended before its first head was kept has none. The latest heads first. */
  boots(): Promise<readonly string[]>;
  /** Undefined: there is no such file. @param path one that isReceiptPath() takes */
  read(boot: string, path: string): Promise<Buffer | undefined>;
  /**
   * Durable when it resolves. Each file is whole or not there; the last one is there only with all before it. After
   * that the contents may be written over.
   */
  write(boot: string, files: readonly ReceiptFile[]): Promise<void>;
  /** Of files that others replace; one that is not there is removed already. */
  remove(boot: string, paths: readonly string[]): Promise<void>;
}
