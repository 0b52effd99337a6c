// What a program of the tree ends with (specification/operating.md#exit-codes). Scripts decide by it.

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
  /** EX_SOFTWARE of sysexits(3) */
  bug: 70,
  /** EX_CONFIG */
  configuration: 78,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
