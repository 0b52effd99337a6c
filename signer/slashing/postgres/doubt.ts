// What follows when a batch finds that the database may have lost commits: one jump, however many batches found it.

import type { Clock } from '../../../common/observe/clock.ts';
import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { higherMarks } from '../history/state.ts';
import { floorFields, higherFloor, type JumpFloor } from '../jump.ts';
import type { HighWaterMarks, OnJump, StoreFloor, StoreIdentity } from '../types.ts';
import type { CheckTools } from './check.ts';
import { BEGIN_JUMP, type Connection, commit, type PostgresConnections } from './connection/connections.ts';
import { floorOf } from './lineage.ts';
import { identityOf, type StoreReading, type StoreRecord, writeStore } from './tables/store.ts';

// Not verified head by head: a mark that somebody raised makes a clock look wrong, and then nothing is signed.
const HIGHEST = `
  SELECT max(highest_slot) AS "blockSlot", max(highest_source_epoch) AS "sourceEpoch",
         max(highest_target_epoch) AS "targetEpoch"
  FROM strongroom.validators`;

const REPEAT_LINE_MS = 60_000;

interface Recovery {
  readonly connections: PostgresConnections;
  readonly tools: CheckTools;
  readonly jumpFloor: JumpFloor;
  readonly onJump?: OnJump;
}

/** Rejects with `slashing_unavailable` when the store could not be raised. */
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

export async function highestMarks(connection: Connection): Promise<HighWaterMarks> {
  const { rows } = await connection.query<HighWaterMarks>(HIGHEST);
  const [marks] = rows;
  if (marks === undefined) throw new Error('a maximum has a row');
  if (Object.values(marks).some((mark) => mark !== null && !Number.isSafeInteger(mark))) {
    throw new SignerError('slashing_integrity', { hint: 'a key has signed a slot or an epoch that cannot be' });
  }
  return marks;
}

/** Where no batch is under way. @throws SignerError slashing_unavailable when no floor can be believed */
async function jumpAfterDoubt(
  connection: Connection,
  tools: CheckTools,
  jumpFloor: JumpFloor,
  log: Log,
): Promise<boolean> {
  const { store, lineage } = tools;
  const expected = lineage.known;
  const [, reading, marks] = await Promise.all([
    connection.query(BEGIN_JUMP),
    store.lock(connection),
    highestMarks(connection),
  ]);
  const { record, place } = reading;
  if (!lineage.isDoubtful(expected, place, record)) {
    await connection.query('ROLLBACK');
    return false;
  }
  // What this process recorded may be among what was lost.
  const highest = higherMarks(marks, lineage.recorded);
  const floor = higherFloor(jumpFloor(highest), floorOf(lineage.recorded));
  const from = expected ?? record.server;
  const raised = await raise(connection, tools, reading, floor);

  log.warn(
    {
      from: { system_identifier: from.systemIdentifier, timeline: from.timeline },
      to: { system_identifier: place.systemIdentifier, timeline: place.timeline },
      floor: raised.floor && floorFields(raised.floor),
    },
    'the slashing database is not the one that was signed over, and commits may be lost (a failover, a promoted ' +
      'standby, a restored backup): everything up to the present is refused, which costs each validator at most a vote',
  );
  return true;
}

export async function raise(
  connection: Connection,
  { codes, lineage }: CheckTools,
  { record, place }: StoreReading,
  floor: StoreFloor,
): Promise<StoreIdentity> {
  const raised: StoreRecord = {
    ...record,
    revision: record.revision + 1,
    floor: higherFloor(record.floor, floor),
    server: { systemIdentifier: place.systemIdentifier, timeline: place.timeline },
  };
  await Promise.all([writeStore(connection, codes, raised), commit(connection)]);
  lineage.adopt(place, raised);
  return identityOf(raised);
}
