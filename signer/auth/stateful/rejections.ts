// Tells the log and the metrics which rows of the state table the signer does not believe. Alone, because it remembers
// what was told: stateful.ts keeps the rows that are believed.

import type { Log } from '../../../common/observe/log.ts';
import type { AuthHeadRejected, HeadProblem, RejectedRow } from './load.ts';
import type { RowKind } from './rows.ts';

export interface RejectionHooks {
  readonly onRowRejected?: (row: RowKind) => void;
  /** What is held stays, and `refresh` fails until the head is put right. */
  readonly onHeadRejected?: (problem: HeadProblem) => void;
}

const MAX_LOGGED_ROWS = 20;
const MAX_SHOWN_CHARACTERS = 100;

const HEAD_ADVICE =
  'the row AUTH_REVISION is not believed: policies and tokens stay as they are and signing will stop. Find out who wrote the ' +
  'state table; restart every replica to accept a table that was restored on purpose';

export class Rejections {
  readonly #log: Log;
  readonly #hooks: RejectionHooks;
  #reportedHead: HeadProblem | undefined;
  #reportedRows = '';

  constructor(log: Log, hooks: RejectionHooks) {
    this.#log = log;
    this.#hooks = hooks;
  }

  rows(rejected: readonly RejectedRow[]): void {
    for (const { kind } of rejected) this.#hooks.onRowRejected?.(kind);
    const report = JSON.stringify(rejected);
    if (report === this.#reportedRows) return; // counted each time, logged once
    this.#reportedRows = report;
    for (const { pk, why } of rejected.slice(0, MAX_LOGGED_ROWS)) {
      this.#log.error(
        { pk: pk.slice(0, MAX_SHOWN_CHARACTERS), why },
        'an auth row is not believed and counts as missing',
      );
    }
    if (rejected.length > MAX_LOGGED_ROWS) {
      this.#log.error({ rows: rejected.length }, 'more auth rows are not believed than are logged');
    }
  }

  /** Counted each time, logged once for as long as the problem stays. */
  head({ problem, detail }: AuthHeadRejected, heldRevision: number): void {
    this.#hooks.onHeadRejected?.(problem);
    if (this.#reportedHead === problem) return;
    this.#reportedHead = problem;
    this.#log.error({ problem, revision: detail?.['revision'], held: heldRevision }, HEAD_ADVICE);
  }

  headIsGood(): void {
    this.#reportedHead = undefined;
  }
}
