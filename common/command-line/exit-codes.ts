// What a program ends with (specification/operating.md#exit-codes). Scripts decide by it.

export const EXIT = {
  ok: 0,
  /** Wrong usage, a fault on this machine, a start that failed, a check that found a difference. */
  failed: 1,
  /** The signer refused or failed, or a service did; a file is refused as a whole; files cannot be compared. */
  refused: 2,
  sealed: 3,
  authentication: 4,
  evidenceNotAuthentic: 5,
  evidenceNotExpected: 6,
  notConfirmed: 7,
  noReferenceValues: 8,
  /** Slashable messages stand in what was imported, or between it and the records; everything was merged. */
  conflicts: 9,
  /** The image is the record's, but the record names no commit or changed sources: no reader can get them. */
  unknownSources: 10,
  /** Receipts: a log was altered, or part of it withheld. */
  receiptsBroken: 11,
  /** Receipts: the log itself says that something may be missing. */
  receiptsGaps: 12,
  /** Receipts: what was asked for is not in the log. */
  notInReceipts: 13,
  /** Evidence: authentic and expected in what was compared; configuration, ceremony or TLS key was not. */
  partlyCompared: 14,
  bug: 70,
  configuration: 78,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
