// What signers of one store agree on through its record: who it is, how far it has counted, and the floor that a jump
// raises. A jump has the lock that every batch shares, so it waits for the batches that began and all later ones see
// it.

import type { Log } from '../../../../observe/log.ts';
import { SignerError } from '../../../api/errors.ts';
import { higherMarks } from '../../history/state.ts';
import { floorFields, higherFloor, JUMP_REVISIONS, type JumpFloor } from '../../jump.ts';
import type { HighWaterMarks, StoreFloor, StoreIdentity } from '../../types.ts';
import { type Connection, commit } from '../connection/connections.ts';
import { BEGIN, BEGIN_JUMP } from '../connection/transactions.ts';
import { type StoreReading, type StoreRecord, writeStore } from '../tables/store.ts';
import type { CheckTools } from './check.ts';

// Not verified head by head: a mark that somebody raised makes a clock look wrong, and then nothing is signed.
const HIGHEST = `
  SELECT max(highest_slot) AS "blockSlot", max(highest_source_epoch) AS "sourceEpoch",
         max(highest_target_epoch) AS "targetEpoch"
  FROM strongroom.validators`;

export function identityOf({ id, revision, floor }: StoreRecord): StoreIdentity {
  return { id, revision, floor };
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

export async function advance(connection: Connection, { codes, store }: CheckTools, atLeast = 0): Promise<number> {
  const [, { record }] = await Promise.all([connection.query(BEGIN), store.lock(connection)]);
  const revision = Math.max(record.revision + 1, atLeast);
  await Promise.all([writeStore(connection, codes, { ...record, revision }), commit(connection)]);
  return revision;
}

export async function jump(
  connection: Connection,
  tools: CheckTools,
  floor: StoreFloor,
  atLeast = 0,
): Promise<StoreIdentity> {
  const [, reading] = await Promise.all([connection.query(BEGIN_JUMP), tools.store.lock(connection)]);
  return identityOf(await raise(connection, tools, reading, floor, atLeast));
}

/**
 * After a doubt about the server: look again, where no batch is under way, and raise the store when no other signer
 * did; says whether it did so.
 * @throws SignerError slashing_unavailable when no floor can be believed; nothing is changed then
 */
export async function jumpAfterDoubt(
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
  const raised = await raise(connection, tools, reading, floor, 0);

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

/** The record is locked, and no batch is under way. */
async function raise(
  connection: Connection,
  { codes, lineage }: CheckTools,
  { record, place }: StoreReading,
  floor: StoreFloor,
  atLeast: number,
): Promise<StoreRecord> {
  const raised: StoreRecord = {
    ...record,
    revision: Math.max(record.revision + JUMP_REVISIONS, atLeast),
    floor: higherFloor(record.floor, floor),
    server: { systemIdentifier: place.systemIdentifier, timeline: place.timeline },
  };
  await Promise.all([writeStore(connection, codes, raised), commit(connection)]);
  lineage.adopt(place, raised);
  return raised;
}

function floorOf({ blockSlot, sourceEpoch, targetEpoch }: HighWaterMarks): StoreFloor {
  return { slot: blockSlot ?? 0, sourceEpoch: sourceEpoch ?? 0, targetEpoch: targetEpoch ?? 0 };
}
