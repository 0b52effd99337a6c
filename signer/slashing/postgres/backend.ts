// Slashing protection in PostgreSQL: the complete history, shared by any number of signers. It trusts the database to
// be durable and to lock as documented, and notices when rows were altered or are gone, and when the database is a copy
// that lost commits; it never trusts an answer that did not come.

import { strict as assert } from 'node:assert';
import { encodeHex } from '../../../common/formats/hex.ts';
import type { Clock, Testimony } from '../../../common/observe/clock.ts';
import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { eventLoopTurns } from '../../parallel.ts';
import { historyCodes, type RowIntegrity } from '../history/codes.ts';
import { NEW_STORE } from '../incarnation.ts';
import { exportHistories } from '../operations/export.ts';
import { mergeStaged } from '../operations/import.ts';
import { stageHistories } from '../operations/import-text.ts';
import { operationsThrough, type StoreOperations, storeOperations } from '../operations/operations.ts';
import { newPruneCursor } from '../operations/pruning.ts';
import { type Snapshot, STEP_ENTRIES } from '../operations/store.ts';
import {
  type BatchLimits,
  type DoubtCause,
  type EntryCounts,
  type SlashingBackend,
  type SlashingVerdict,
  StoreInDoubt,
} from '../types.ts';
import { type CheckTools, checkBatch } from './check.ts';
import { BATCHES_IN_FLIGHT } from './connection/address.ts';
import {
  type Connection,
  type PostgresConnectionOptions,
  PostgresConnections,
  type UnhurriedSession,
} from './connection/connections.ts';
import { lineage } from './connection/lineage.ts';
import { questionsFor, warnOfUnsafeSettings } from './connection/server.ts';
import { look, postgresStore, stage, stagedOn } from './store.ts';
import { bindAndRecord, checkBinding, migrateSchema } from './tables/migrate.ts';
import { type StoreReader, storeReader } from './tables/store.ts';

interface PostgresBackendOptions extends PostgresConnectionOptions {
  readonly genesisValidatorsRoot: Uint8Array;
  /** For the same network; the caller wipes it after the backend is closed. */
  readonly integrity: RowIntegrity;
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
    const isNew = await migrateSchema(connection, () => bindAndRecord(connection, { ...options, codes, questions }));
    await checkBinding(connection, options);
    if (isNew) tools.log.warn({ database: options.address.database }, NEW_STORE);
    const reader = storeReader(codes, questions);
    await reader.read(connection);
    await warnOfUnsafeSettings(connection, tools.log);
    return reader;
  });
  return postgresBackend(connections, { codes, store, lineage: lineage() }, options);
}

const BATCH_SIZE = 256;
const BATCH_INTERVAL_MS = 1;

function postgresBackend(
  connections: PostgresConnections,
  tools: CheckTools,
  options: PostgresBackendOptions,
): SlashingBackend {
  const maxInFlight = Math.min(BATCHES_IN_FLIGHT, options.poolSize);
  const batchLimits: BatchLimits = { maxMessages: BATCH_SIZE, maxInFlight, minIntervalMs: BATCH_INTERVAL_MS };
  const turns = eventLoopTurns(STEP_ENTRIES);
  const pruned = newPruneCursor();
  const use = <Result>(work: (store: StoreOperations) => Promise<Result>): Promise<Result> =>
    connections.use((connection) => work(storeOperations(postgresStore(connection, tools, turns), pruned)));
  /** Nothing is decided over a database that may have lost commits. */
  const inDoubt = (cause: DoubtCause): StoreInDoubt => {
    const { systemIdentifier, objects, timeline } = tools.lineage.known ?? NOWHERE;
    const facts = { system_identifier: systemIdentifier, objects, timeline };
    const isOver = () => connections.use(async (connection) => (await look(connection, tools)).doubt === undefined);
    return new StoreInDoubt({ cause, facts: { signed_over: facts }, isOver });
  };
  return {
    name: 'postgres',
    batchLimits,
    witness: { name: 'the slashing database', ask: () => connections.use(timeOn) },

    async checkAndRecord(messages, floors): Promise<SlashingVerdict[]> {
      assert.equal(messages.length, floors.length);
      const verdicts = await connections.use((connection) => checkBatch(connection, tools, messages, floors));
      if (typeof verdicts === 'string') throw inDoubt(verdicts);
      return verdicts;
    },

    ...operationsThrough((name, given) => use((store): Promise<unknown> => store[name](...given))),

    async checkHealth() {
      // Also a signer that has nothing to sign remembers how far the log had come, and notices what was put back.
      const [, { doubt }] = await connections.use((connection) =>
        Promise.all([confirmWritable(connection), look(connection, tools)]),
      );
      if (doubt !== undefined) throw inDoubt(doubt);
    },

    /** A client that sends little holds no connection. A fault of the source is passed on as it is. */
    async importHistories(histories, { strategy = 'by_key' } = {}) {
      let session: UnhurriedSession | undefined;
      const inSession = async <Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> => {
        session ??= await connections.openUnhurried();
        return work(session.connection).catch((error: unknown) => {
          throw session?.fault(error);
        });
      };
      try {
        const named = await stageHistories(histories, (parts) => inSession((connection) => stage(connection, parts)));
        const merged = await inSession(async (connection) =>
          mergeStaged(postgresStore(connection, tools, turns), await stagedOn(connection), strategy),
        );
        return { ...merged, blocks: named.blocks, attestations: named.attestations };
      } finally {
        await session?.close();
      }
    },

    /**
     * On a connection of its own for as long as the reader takes. Nothing is read of a database that may have lost
     * commits: the key that leaves it would take too little along. After a doubt the store is raised first: the file
     * has the floor.
     */
    async *exportHistories(publicKeys) {
      const session = await connections.openUnhurried();
      const { connection } = session;
      const store = postgresStore(connection, tools, turns);
      const snapshot = async (): Promise<Snapshot> => {
        const rows = await store.snapshot();
        const { doubt } = await look(connection, tools);
        if (doubt === undefined) return rows;
        await rows.close();
        throw inDoubt(doubt);
      };
      try {
        yield* exportHistories({ ...store, snapshot }, publicKeys);
      } catch (error) {
        throw session.fault(error);
      } finally {
        await session.close();
      }
    },

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

/** A server of this machine goes by this machine's clock, which it cannot confirm. */
async function timeOn(connection: Connection): Promise<Testimony | undefined> {
  const { rows } = await connection.query<Testimony>(`
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS time,
           inet_server_addr() IS DISTINCT FROM inet_client_addr() AS confirms`);
  return rows[0];
}

const NOWHERE = { systemIdentifier: null, objects: 'none', timeline: null };

/** A standby answers queries too, and cannot record. */
export async function confirmWritable(connection: Connection): Promise<void> {
  const { rows } = await connection.query("SELECT current_setting('transaction_read_only') = 'off' AS writable");
  if (rows[0]?.writable !== true) {
    throw new SignerError('slashing_unavailable', { hint: 'the slashing database does not accept writes' });
  }
}
