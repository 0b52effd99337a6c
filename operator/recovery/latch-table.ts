// The one row of the state table that recovery deletes, as `operator recover` sees it. The folder operator/ reaches no
// table by itself: the program that the command belongs to hands this in (bin/strongroom.ts).

/** What the row SEAL_OVERRIDE says of itself; one that was made by hand may say nothing. */
export interface LatchRow {
  readonly sealedAt: string | null;
  readonly reason: string | null;
  readonly accessor: string | null;
}

export interface LatchTable {
  read(): Promise<LatchRow | undefined>;
  /** On the condition that the row still says exactly this. */
  delete(latch: LatchRow): Promise<'deleted' | 'changed'>;
  close(): void;
}

/** @param table the name or the ARN of the state table; region and credentials come from the AWS environment */
export type OpenLatchTable = (table: string) => Promise<LatchTable>;
