// What follows when a batch finds that the database may have lost commits: one jump, however many batches found it, and
// a line in the log that says why none is possible, but not one a request.

import type { Clock } from '../../../observe/clock.ts';
import type { Log } from '../../../observe/log.ts';
import type { JumpFloor } from '../jump.ts';
import type { OnJump } from '../types.ts';
import type { PostgresConnections } from './connection/connections.ts';
import type { CheckTools } from './operations/check.ts';
import { jumpAfterDoubt } from './operations/jump.ts';

/** Between two lines that say the same. */
const REPEAT_LINE_MS = 60_000;

interface Recovery {
  readonly connections: PostgresConnections;
  readonly tools: CheckTools;
  readonly jumpFloor: JumpFloor;
  readonly onJump?: OnJump;
}

/** Rejects with `slashing_unavailable` when the store could not be raised: nothing may be signed then. */
export function afterDoubt(
  { connections, tools, jumpFloor, onJump }: Recovery,
  { log, clock }: { readonly log: Log; readonly clock: Clock },
): () => Promise<void> {
  let underWay: Promise<void> | undefined;
  let toldAt = Number.NEGATIVE_INFINITY;

  async function recover(): Promise<void> {
    try {
      const jumped = await connections.use((connection) => jumpAfterDoubt(connection, tools, jumpFloor, log));
      if (jumped) onJump?.('other_server');
    } catch (error) {
      if (clock.monotonic() - toldAt >= REPEAT_LINE_MS) {
        toldAt = clock.monotonic();
        log.error({ err: error }, 'the slashing database may have lost commits, and nothing is signed over it');
      }
      throw error;
    }
  }

  return () => {
    underWay ??= recover().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}
