// Slashing protection in PostgreSQL: the complete history, shared by any number of signers. It trusts the database to
// be durable and to lock as documented, and notices when rows were altered or are gone, and when the database is a copy
// that lost commits; it never trusts an answer that did not come.

import { strict as assert } from 'node:assert';
import { encodeHex } from '../../../common/formats/hex.ts';
import type { Clock } from '../../../common/observe/clock.ts';
import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { eventLoopTurns, type Turns } from '../../parallel.ts';
import { historyCodes, type RowIntegrity } from '../history/codes.ts';
import { higherMarks } from '../history/rules.ts';
import { NEW_STORE } from '../incarnation.ts';
import { floorFields, higherFloor, type JumpFloor } from '../jump.ts';
import { exportHistories } from '../operations/export.ts';
import { mergeStaged } from '../operations/import.ts';
import { operationsThrough, type StoreOperations, storeOperations } from '../operations/operations.ts';
import { newPruneCursor } from '../operations/pruning.ts';
import { type Snapshot, STEP_ENTRIES, unlessAborted } from '../operations/store.ts';
import type {
  BatchLimits,
  EntryCounts,
  OnJump,
  PublicKeyHex,
  SlashingBackend,
  ValidatorHistory,
  Verdict,
} from '../types.ts';
import { type CheckTools, checkBatch } from './check.ts';
import { BATCHES_IN_FLIGHT } from './connection/address.ts';
import {
  BEGIN_JUMP,
  type Connection,
  type PostgresConnectionOptions,
  PostgresConnections,
} from './connection/connections.ts';
import { floorOf, identityOfServer, lineage, questionsFor, warnOfUnsafeSettings } from './connection/server.ts';
import { highestMarks, postgresStore, raise, stagedOn } from './store.ts';
import { checkBinding, migrate, stepWork } from './tables/migrate.ts';
import { type StoreReader, storeReader } from './tables/store.ts';

export interface PostgresBackendOptions extends PostgresConnectionOptions {
  readonly genesisValidatorsRoot: Uint8Array;
  /** For the same network; the caller wipes it after the backend is closed. */
  readonly integrity: RowIntegrity;
  /** What the store is raised to when the database turns out to be a copy that may have lost commits. */
  readonly jumpFloor: JumpFloor;
  readonly onJump?: OnJump;
}

/**
 * Connect, bring the schema up to date, and bind the database to the network.
 * @throws SignerError slashing_unavailable, with a hint when the database is of another network or program version;
 *         slashing_integrity when its codes were made with another key, or its record fails its code
 */
export async function openPostgresBackend(
  options: PostgresBackendOptions,
  tools: { readonly log: Log; readonly clock: Clock },
): Promise<SlashingBackend> {
  const codes = historyCodes(options.integrity);
  const connections = new PostgresConnections(options, tools);
  const store = await connections.useUnhurried(async (connection): Promise<StoreReader> => {
    await confirmWritable(connection);
    const questions = await questionsFor(connection, tools.log);
    const server = () => identityOfServer(connection, questions);
    const isNew = await migrate(connection, stepWork({ ...options, codes, server }));
    await checkBinding(connection, options);
    if (isNew) tools.log.warn({ database: options.address.database }, NEW_STORE);
    const reader = storeReader(codes, questions);
    await reader.read(connection);
    await warnOfUnsafeSettings(connection, tools.log);
    return reader;
  });
  return postgresBackend(connections, { codes, store, lineage: lineage() }, options, tools);
}

const BATCH_SIZE = 256;
const BATCH_INTERVAL_MS = 1;

function postgresBackend(
  connections: PostgresConnections,
  tools: CheckTools,
  options: PostgresBackendOptions,
  { log, clock }: { readonly log: Log; readonly clock: Clock },
): SlashingBackend {
  const maxInFlight = Math.min(BATCHES_IN_FLIGHT, options.poolSize);
  const batchLimits: BatchLimits = { maxMessages: BATCH_SIZE, maxInFlight, minIntervalMs: BATCH_INTERVAL_MS };
  const recover = afterDoubt(connections, tools, options, { log, clock });
  const turns = eventLoopTurns(STEP_ENTRIES);
  const pruned = newPruneCursor();
  const use = <Result>(work: (store: StoreOperations) => Promise<Result>): Promise<Result> =>
    connections.use((connection) => work(storeOperations(postgresStore(connection, tools, turns), pruned)));
  return {
    name: 'postgres',
    batchLimits,

    async checkAndRecord(messages, floors): Promise<Verdict[]> {
      assert.equal(messages.length, floors.length);
      const check = () => connections.use((connection) => checkBatch(connection, tools, messages, floors));
      const verdicts = await check();
      if (verdicts !== 'doubtful') return verdicts;
      await recover();
      const again = await check();
      if (again === 'doubtful') throw new SignerError('slashing_unavailable');
      return again;
    },

    ...operationsThrough((name, given) => use((store): Promise<unknown> => store[name](...given))),

    checkHealth: (signal) =>
      unlessAborted(signal, () => connections.use((connection) => confirmUsable(connection, tools))),

    async importHistories(histories, { strategy = 'by_key' } = {}) {
      // A fault of the source is not one of the database: it is passed on as it is.
      const faults: unknown[] = [];
      try {
        return await connections.useUnhurried(async (connection) => {
          const { staged, named } = await stagedOn(connection, watched(histories, faults));
          const merged = await mergeStaged(postgresStore(connection, tools, turns), staged, strategy);
          return { ...merged, blocks: named.blocks, attestations: named.attestations };
        });
      } catch (error) {
        throw faults.length > 0 ? faults[0] : error;
      }
    },

    exportHistories: (publicKeys) => exported({ connections, tools, turns, recover }, publicKeys),

    async status() {
      const { rows } = await connections.use((connection) => connection.query<EntryCounts>(TOTALS));
      assert(rows[0] !== undefined);
      return { ...rows[0], genesisValidatorsRoot: encodeHex(options.genesisValidatorsRoot) };
    },

    close: (waitMs) => connections.close(waitMs),
  };
}

const TOTALS = `
  SELECT count(*) FILTER (WHERE blocks + attestations > 0) AS validators,
         coalesce(sum(blocks), 0)::bigint AS blocks, coalesce(sum(attestations), 0)::bigint AS attestations
  FROM strongroom.validators`;

async function confirmUsable(connection: Connection, { store, lineage }: CheckTools): Promise<void> {
  const expected = lineage.known;
  const [, { place }] = await Promise.all([confirmWritable(connection), store.read(connection)]);
  // Also a signer that has nothing to sign remembers how far the log had come.
  lineage.seen(expected, place);
}

/** A standby answers queries too, and cannot record. */
export async function confirmWritable(connection: Connection): Promise<void> {
  const { rows } = await connection.query("SELECT current_setting('transaction_read_only') = 'off' AS writable");
  if (rows[0]?.writable !== true) {
    throw new SignerError('slashing_unavailable', { hint: 'the slashing database does not accept writes' });
  }
}

async function* watched(
  histories: AsyncIterable<ValidatorHistory>,
  faults: unknown[],
): AsyncGenerator<ValidatorHistory> {
  try {
    yield* histories;
  } catch (error) {
    faults.push(error);
    throw error;
  }
}

interface Exporting {
  readonly connections: PostgresConnections;
  readonly tools: CheckTools;
  readonly turns: Turns;
  readonly recover: () => Promise<void>;
}

/**
 * On a connection of its own for as long as the reader takes. Nothing is read of a database that may have lost commits:
 * the key that leaves it would take too little along. After a doubt the store is raised first: the file has the floor.
 */
async function* exported(
  { connections, tools, turns, recover }: Exporting,
  publicKeys: readonly PublicKeyHex[] | undefined,
): AsyncGenerator<ValidatorHistory> {
  const session = await connections.openUnhurried();
  const { connection } = session;
  const store = postgresStore(connection, tools, turns);
  const snapshot = async (): Promise<Snapshot> => {
    for (let attempt = 1; ; attempt++) {
      const expected = tools.lineage.known;
      const rows = await store.snapshot();
      const { record, place } = await tools.store.read(connection);
      if (!tools.lineage.isDoubtful(expected, place, record)) return rows;
      await rows.close();
      if (attempt > 1) throw new SignerError('slashing_unavailable');
      await recover();
    }
  };
  try {
    yield* exportHistories({ ...store, snapshot }, publicKeys);
  } catch (error) {
    throw session.fault(error);
  } finally {
    await session.close();
  }
}

// What follows when a batch finds that the database may have lost commits: one jump, however many batches found it.

const REPEAT_LINE_MS = 60_000;

/** Rejects with `slashing_unavailable` when the store could not be raised. */
function afterDoubt(
  connections: PostgresConnections,
  tools: CheckTools,
  { jumpFloor, onJump }: Pick<PostgresBackendOptions, 'jumpFloor' | 'onJump'>,
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
